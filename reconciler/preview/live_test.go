package preview

import (
	"context"
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
	inForce := map[string]desired.Cluster{}
	for _, c := range desired.Clusters(desiredtest.Parse(map[string]string{
		"all.yaml": file("orders", "3.6.12") + "---\n" + file("users", "3.6.17") + "---\n" + file("carts", "3.6.12"),
	}), "0a1b2c3", nil) {
		inForce[c.Key()] = c
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
