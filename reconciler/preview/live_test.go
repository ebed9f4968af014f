package preview

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
)

// fakePlanner plans one step for each cluster, and notes what it was asked.
type fakePlanner struct {
	among, planned []string
}

func (f *fakePlanner) SetDesired(clusters []desired.Cluster) {
	if clusters != nil {
		f.among = desiredtest.Summary(clusters)
	}
}

func (f *fakePlanner) Plan(_ context.Context, c desired.Cluster) (decision.Plan, error) {
	f.planned = append(f.planned, c.Key())
	return decision.Plan{Steps: []decision.Step{{Action: action.MoveLeader{}}}}, nil
}

// revision parses files that each declare one cluster.
func revision(files map[string]string) Revision {
	return Revision{Set: desiredtest.Parse(files), Commit: "c0ffee"}
}

func changes(r *Report) []string {
	var list []string
	for _, c := range r.Clusters {
		list = append(list, c.Key()+" "+string(c.Change)+" "+c.Disruption)
	}
	return list
}

func TestLivePlansEachCluster(t *testing.T) {
	f := &fakePlanner{}
	r, err := Live(t.Context(), f, revision(map[string]string{
		"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16"), "users.yaml": desiredtest.ClusterFile("users", "3.6"),
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := changes(r); r.Head != "c0ffee" || r.Offline || r.Summary.Errors == 0 || len(got) != 2 ||
		!strings.HasPrefix(got[0], "shop/orders changed ") || !strings.HasPrefix(got[1], "shop/users held ") {
		t.Errorf("%q of %+v", got, r)
	}
	if want := []string{"shop/orders 3.6.16", "shop/users held"}; !slices.Equal(f.among, want) {
		t.Errorf("planned among %q, want %q", f.among, want)
	}
}

// A proposal is planned among what is in force, and only what it changes.
func TestProposalPlansWhatChanges(t *testing.T) {
	file := desiredtest.ClusterFile
	before := map[string]string{"orders.yaml": file("orders", "3.6.12"), "users.yaml": file("users", "3.6.12"), "carts.yaml": file("carts", "3.6.12")}
	after := map[string]string{"orders.yaml": file("orders", "3.6.16"), "users.yaml": file("users", "3.6.12")}
	inForce := map[string]*desired.Cluster{}
	for _, c := range desired.Clusters(desiredtest.Parse(map[string]string{
		"all.yaml": file("orders", "3.6.12") + "---\n" + file("users", "3.6.17") + "---\n" + file("carts", "3.6.12"),
	}), "0a1b2c3", nil) {
		inForce[c.Key()] = &c
	}
	f := &fakePlanner{}
	r, err := Proposal(t.Context(), f, inForce, revision(before), revision(after), offlineOptions())
	if err != nil {
		t.Fatal(err)
	}
	if got := changes(r); len(got) != 2 || !strings.HasPrefix(got[0], "shop/carts removed") || !strings.HasPrefix(got[1], "shop/orders changed") {
		t.Errorf("changes %q", got)
	}
	if want := []string{"shop/orders 3.6.16", "shop/users 3.6.17"}; !slices.Equal(f.among, want) || !slices.Equal(f.planned, []string{"shop/orders"}) {
		t.Errorf("planned %q among %q", f.planned, f.among)
	}
	if len(inForce) != 3 {
		t.Errorf("what is in force was changed: %v", inForce)
	}
}

// tlsFile declares orders with the user's own Secrets.
func tlsFile(version, client string) string {
	return desiredtest.ClusterFile("orders", version) + "  tls: {mode: Secrets, secrets: {server: tls-server, peer: tls-peer, client: " + client + "}}\n"
}

// Whoever may propose a change could else read the state of any cluster, or of a Secret,
// by a file that names it: what nothing in force declares is not asked about, and is no
// neighbour of what is.
func TestProposalAsksAboutNothingThatIsNotInForce(t *testing.T) {
	file := desiredtest.ClusterFile
	vault := strings.Replace(file("vault", "3.6.16"), "namespace: shop", "namespace: secrets", 1)
	late := file("orders", "3.6.16") + "  upgrade: {wave: 7}\n"
	for name, c := range map[string]struct {
		inForce, before, after string
		planned, among         []string
		change, unasked        string
	}{
		"its own cluster": {
			inForce: file("orders", "3.6.12"), before: file("orders", "3.6.12"), after: file("orders", "3.6.16"),
			planned: []string{"shop/orders"}, among: []string{"shop/orders 3.6.16"}, change: "shop/orders changed",
		},
		"another team's": {
			inForce: file("orders", "3.6.12"), before: file("orders", "3.6.12"), after: late + "---\n" + vault,
			planned: []string{"shop/orders"}, among: []string{"shop/orders 3.6.16"}, change: "secrets/vault added", unasked: "secrets/vault: the followed branch does not declare",
		},
		"another team's that is broken": {
			inForce: file("orders", "3.6.12"), before: file("orders", "3.6.12"), after: late + "---\n" + strings.Replace(vault, "replicas: 3", "replicas: -1", 1),
			planned: []string{"shop/orders"}, among: []string{"shop/orders 3.6.16"}, change: "secrets/vault held",
		},
		"one that the branch has removed since": {
			inForce: file("orders", "3.6.12"), before: file("orders", "3.6.12") + "---\n" + file("users", "3.6.12"), after: file("orders", "3.6.12") + "---\n" + file("users", "3.6.16"),
			among: []string{"shop/orders 3.6.12"}, change: "shop/users added", unasked: "shop/users: the followed branch does not declare",
		},
		"one that the branch has removed since, as it was": {
			inForce: file("orders", "3.6.12"), before: file("orders", "3.6.12") + "---\n" + file("users", "3.6.12"), after: file("orders", "3.6.16") + "---\n" + file("users", "3.6.12"),
			planned: []string{"shop/orders"}, among: []string{"shop/orders 3.6.16"}, change: "shop/orders changed",
		},
		"the Secrets of the branch": {
			inForce: tlsFile("3.6.12", "tls-client"), before: tlsFile("3.6.12", "tls-client"), after: tlsFile("3.6.16", "tls-client"),
			planned: []string{"shop/orders"}, among: []string{"shop/orders 3.6.16"}, change: "shop/orders changed",
		},
		"other Secrets": {
			inForce: tlsFile("3.6.12", "tls-client"), before: tlsFile("3.6.12", "tls-client"), after: tlsFile("3.6.16", "root-of-all"),
			among: []string{"shop/orders 3.6.12"}, change: "shop/orders changed", unasked: "shop/orders: the followed branch does not name these Secrets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inForce := map[string]*desired.Cluster{}
			for _, c := range desired.Clusters(desiredtest.Parse(map[string]string{"a.yaml": c.inForce}), "0a1b2c3", nil) {
				inForce[c.Key()] = &c
			}
			f := &fakePlanner{}
			r, err := Proposal(t.Context(), f, inForce, revision(map[string]string{"a.yaml": c.before}), revision(map[string]string{"a.yaml": c.after}), offlineOptions())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(f.planned, c.planned) || !slices.Equal(f.among, c.among) {
				t.Errorf("planned %q among %q, want %q among %q", f.planned, f.among, c.planned, c.among)
			}
			if got := changes(r); !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, c.change+" ") }) {
				t.Errorf("changes %q, want %q", got, c.change)
			}
			text := strings.Join(r.Markdown(MarkdownOptions{Limit: 60000}), "")
			if got := strings.Join(r.Unknown(), "\n"); (c.unasked == "") != (got == "") || !strings.HasPrefix(got, c.unasked) || c.unasked != "" && !strings.Contains(text, "**What was not asked**") {
				t.Errorf("unknown %q, want %q, in\n%s", got, c.unasked, text)
			}
		})
	}
}

// hurried is a planner whose time is over when it has planned one cluster.
type hurried struct {
	*fakePlanner
	over context.CancelFunc
}

func (h hurried) Plan(ctx context.Context, c desired.Cluster) (decision.Plan, error) {
	h.over()
	return h.fakePlanner.Plan(ctx, c)
}

// Members that nobody had the time to ask must not look like members that do not answer.
func TestProposalThatIsNotDoneInTimeIsNoReport(t *testing.T) {
	file := desiredtest.ClusterFile
	before := revision(map[string]string{"orders.yaml": file("orders", "3.6.12"), "users.yaml": file("users", "3.6.12")})
	after := revision(map[string]string{"orders.yaml": file("orders", "3.6.16"), "users.yaml": file("users", "3.6.16")})
	inForce := map[string]*desired.Cluster{}
	for _, c := range desired.Clusters(before.Set, "0a1b2c3", nil) {
		inForce[c.Key()] = &c
	}
	ctx, cancel := context.WithCancel(t.Context())
	h := hurried{&fakePlanner{}, cancel}
	if r, err := Proposal(ctx, h, inForce, before, after, offlineOptions()); !errors.Is(err, context.Canceled) || len(h.planned) != 1 {
		t.Errorf("%+v, %v; planned %q", r, err, h.planned)
	}
	if r, err := Proposal(ctx, h, inForce, before, after, offlineOptions()); !errors.Is(err, context.Canceled) || len(h.planned) != 1 {
		t.Errorf("without any time: %+v, %v; planned %q", r, err, h.planned)
	}
}
