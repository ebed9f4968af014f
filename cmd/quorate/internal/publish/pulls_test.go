package publish

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/sources/forge"
)

// proposing is a followed repository with pull requests, over a live cluster.
type proposing struct {
	*cmdtest.Repository
	p     *follow.Poller
	r     *reconciler.Reconciler
	log   *bytes.Buffer
	pulls *Pulls
	live  *fake.Clientset
	open  []forge.Pull
	// comments are the current texts, by number; written are the numbers of those that
	// changed, in order, and wrote counts them.
	comments map[int]string
	written  []int
	wrote    int
	listErr  error
	// members are asked by plans of pull requests, and planner is where that is another one.
	members *noted
	planner preview.Planner
	// restart has another process plan the pull requests.
	restart func()
}

// noted notes the clusters whose members are asked.
type noted struct {
	*etcd.Client
	asked []string
}

func (n *noted) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	n.asked = append(n.asked, cluster)
	return n.Client.Round(ctx, cluster, members, deep)
}

func (f *proposing) OpenPulls(context.Context, string) ([]forge.Pull, error) {
	return f.open, f.listErr
}

func (f *proposing) Comment(_ context.Context, pull int, marker, text string) error {
	if !strings.HasPrefix(text, marker) {
		f.Errorf("the comment does not begin with %q:\n%s", marker, text)
	}
	if f.comments[pull] != text {
		f.comments[pull] = text
		f.written = append(f.written, pull)
		f.wrote++
	}
	return nil
}

func (f *proposing) Amend(ctx context.Context, pull int, marker, text string) error {
	if !strings.HasPrefix(f.comments[pull], marker) {
		return nil
	}
	return f.Comment(ctx, pull, marker, text)
}

func propose(t *testing.T, files map[string]string) *proposing {
	t.Helper()
	f := &proposing{Repository: cmdtest.NewRepository(t), log: &bytes.Buffer{}, live: fake.NewClientset(), comments: map[int]string{}, members: &noted{Client: etcd.New()}}
	for path, text := range files {
		f.Commit(path, text)
	}
	repository, err := sources.New(sources.Config{URL: f.Dir, Branch: "main", Path: "clusters"})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(f.log, nil))
	options := reconciler.Options{Render: manifests.Options{GuardImage: "quorate:test"}, BackupURL: "s3://backups/{{ .UID }}.db"}
	f.r = reconciler.New(f.live, etcd.New(), record.NewFakeRecorder(100), report.NewMetrics(prometheus.NewRegistry()), log, options)
	if err := f.r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.p = follow.New(follow.Config{Repository: repository, Kube: fake.NewClientset(), Namespace: "quorate-system"}, log, prometheus.NewRegistry())
	f.p.Once(t.Context(), f.r)
	f.restart = func() {
		f.pulls = NewPulls(PullsConfig{
			Host: f, Repository: repository, Branch: "main", Options: preview.Options{Render: options.Render, BackupURL: options.BackupURL},
		}, f.p.State, log)
	}
	f.restart()
	return f
}

// Desired and Planner are those of the reconciler that acts.
func (f *proposing) Desired() map[string]*desired.Cluster { return f.r.Desired() }

func (f *proposing) Planner() preview.Planner {
	if f.planner != nil {
		return f.planner
	}
	return f.r.DryRun(f.members)
}

// pull opens or pushes to a pull request that writes a file; no text removes it.
func (f *proposing) pull(number int, path, text string) {
	f.Helper()
	f.Git("checkout", "--quiet", "--detach", "main")
	if text == "" {
		f.Git("rm", "--quiet", path)
		f.Git("commit", "--quiet", "-m", "Remove "+path)
	} else {
		f.Commit(path, text)
	}
	reference := "refs/pull/" + strconv.Itoa(number) + "/head"
	f.Git("update-ref", reference, "HEAD")
	f.Git("checkout", "--quiet", "main")
	p := forge.Pull{Number: number, Head: path + text, Reference: reference, Base: "main"}
	f.open = append(slices.DeleteFunc(f.open, func(o forge.Pull) bool { return o.Number == number }), p)
}

func (f *proposing) round() {
	f.Helper()
	if err := f.pulls.Once(f.Context(), f); err != nil {
		f.Fatal(err)
	}
}

func (f *proposing) wantComment(number int, says ...string) {
	f.Helper()
	for _, text := range says {
		if !strings.Contains(f.comments[number], text) {
			f.Errorf("the comment on %d does not say %q:\n%s", number, text, f.comments[number])
		}
	}
}

func (f *proposing) wantWritten(n int) {
	f.Helper()
	if f.wrote != n {
		f.Errorf("comments were written %d times, want %d", f.wrote, n)
	}
	f.wrote = 0
}

// changes are the requests to the API server that change something.
func (f *proposing) changes() []string {
	var found []string
	for _, a := range f.live.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
			found = append(found, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	return found
}

// 132: what a pull request proposes is planned and never done, a deletion neither,
// and the daemon that acts does not notice.
func TestPullRequestIsPlannedAndNeverCarriedOut(t *testing.T) {
	f := propose(t, map[string]string{
		"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12"), "clusters/users.yaml": desiredtest.ClusterFile("users", "3.6.12"),
	})
	orders := f.r.Desired()["shop/orders"]
	cmdtest.Await(t, func() bool { // the caches follow after a moment
		_, err := f.r.Pass(t.Context(), *orders)
		return err == nil && len(f.changes()) > 3
	})
	f.live.ClearActions()
	f.log.Reset()
	said := f.r.Desired()
	deleted := strings.Replace(desiredtest.ClusterFile("orders", "3.6.12"), "spec:\n", "spec:\n  state: Deleted\n", 1)
	f.pull(1, "clusters/orders.yaml", deleted)
	f.pull(2, "clusters/ledger.yaml", desiredtest.ClusterFile("ledger", "3.6.16"))
	f.pull(3, "clusters/orders.yaml", "")
	f.round()
	f.wantComment(1, "1 cluster changes", "shop/orders", "spec.state: Running → Deleted")
	f.wantComment(2, "shop/ledger", "added", "create")
	f.wantComment(3, "shop/orders", "removed", "left as it is")
	f.wantWritten(3)
	if did := f.changes(); len(did) > 0 {
		t.Errorf("a pull request did %q", did)
	}
	if now := f.r.Desired(); len(now) != 2 || now["shop/orders"].Spec.State != said["shop/orders"].Spec.State {
		t.Errorf("now Git says %+v", now)
	}
	if f.log.Len() > 0 {
		t.Errorf("the daemon said\n%s", f.log)
	}
}

// Whoever may open a pull request could else read the state of any cluster, by a file that
// names it.
func TestPullRequestTellsNothingOfWhatTheBranchDoesNotDeclare(t *testing.T) {
	f := propose(t, map[string]string{
		"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.16"), "clusters/vault.yaml": desiredtest.ClusterFile("vault", "3.6.12"),
	})
	vault := f.r.Desired()["shop/vault"]
	cmdtest.Await(t, func() bool {
		_, err := f.r.Pass(t.Context(), *vault)
		return err == nil && slices.Contains(f.changes(), "patch statefulsets")
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "vault-0", Namespace: "shop", Labels: naming.OwnLabels(vault.EtcdCluster)}, Status: corev1.PodStatus{PodIP: "127.0.0.1"}}
	if _, err := f.live.CoreV1().Pods("shop").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cmdtest.Await(t, func() bool { // the caches follow after a moment
		_, err := f.Planner().Plan(t.Context(), *vault)
		return err == nil && slices.Contains(f.members.asked, "shop/vault")
	})
	f.pull(1, "clusters/vault.yaml", desiredtest.ClusterFile("vault", "3.6.16"))
	f.round()
	f.wantComment(1, "shop/vault", "version: 3.6.12 → 3.6.16") // while the branch declares it
	if strings.Contains(f.comments[1], "was not asked") {
		t.Errorf("its own cluster was not asked about:\n%s", f.comments[1])
	}

	f.Git("rm", "--quiet", "clusters/vault.yaml") // it is left running, as another team's would
	f.Git("commit", "--quiet", "-m", "Remove vault")
	f.p.Once(t.Context(), f.r)
	f.members.asked = nil
	f.live.ClearActions()
	f.pull(2, "clusters/stolen.yaml", desiredtest.ClusterFile("vault", "3.6.16"))
	f.round()
	f.wantComment(2, "shop/vault", "added", "create", "the followed branch does not declare this cluster", "neither Kubernetes nor members were asked")
	for _, secret := range []string{"3.6.12", "hold (", "restart vault"} {
		if strings.Contains(f.comments[2], secret) {
			t.Errorf("it tells %q:\n%s", secret, f.comments[2])
		}
	}
	if did := f.live.Actions(); len(did) > 0 || len(f.members.asked) > 0 {
		t.Errorf("the API server was asked %v, members of %q", did, f.members.asked)
	}
}

func TestCommentIsKeptUpToDate(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12"), "README.md": "1"})
	f.pull(7, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pull(8, "README.md", "2")
	f.round()
	f.wantComment(7, "spec.version: 3.6.12 → 3.6.16"[5:])
	f.wantWritten(1)
	f.round() // the head is the same, and so is what is in force
	f.wantWritten(0)

	f.pull(7, "clusters/orders.yaml", "kind: EtcdCluster\napiVersion: quorate.dev/v1alpha1\nmetadata: {name: orders, namespace: shop}\nspec: {version: 3.10}\n")
	f.round()
	f.wantComment(7, "clusters/orders.yaml:4", "spec.version: YAML reads 3.10 as the number 3.1", "3 errors")
	f.wantWritten(1)

	f.pull(7, "README.md", "3") // it takes the change back
	f.round()
	f.wantComment(7, "There is nothing to do")
	f.wantWritten(1)

	// What the branch got since is no change of the pull request.
	f.pull(7, "clusters/ledger.yaml", desiredtest.ClusterFile("ledger", "3.6.16"))
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.p.Once(t.Context(), f.r)
	f.round()
	f.wantComment(7, "shop/ledger", "1 cluster changes")
	if strings.Contains(f.comments[7], "shop/orders") {
		t.Errorf("it names another cluster:\n%s", f.comments[7])
	}
}

// A comment of an earlier process is kept up to date as well, also where the pull request has taken everything back while
// none was there. What never had a comment has none.
func TestCommentOfAnEarlierProcessIsKeptUpToDate(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12"), "README.md": "1"})
	f.pull(7, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pull(8, "README.md", "2")
	f.round()
	f.wantWritten(1)
	f.restart()
	f.pull(7, "README.md", "3")
	f.round()
	f.wantComment(7, "There is nothing to do")
	f.wantWritten(1)
	if text, there := f.comments[8]; there {
		t.Errorf("a comment was written:\n%s", text)
	}
	f.round()
	f.wantWritten(0)
}

// A pull request in which a file grows too large does not seem to remove what it declared.
func TestPullRequestWithAFileThatIsTooLargeIsPlanned(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12"), "clusters/users.yaml": desiredtest.ClusterFile("users", "3.6.12")})
	f.pull(1, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12")+"# "+strings.Repeat("x", 1<<20)+"\n")
	f.round()
	f.wantComment(1, "clusters/orders.yaml", "more than 1048576 bytes", "1 error")
	if strings.Contains(f.comments[1], "removed") || strings.Contains(f.comments[1], "shop/users") {
		t.Errorf("it says of other things\n%s", f.comments[1])
	}
}

// The page shows what open pull requests would do, and drops those that are closed, or
// change nothing that quorate reads any more.
func TestPlansOfOpenPullRequestsAreKept(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	f.pull(1, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pull(2, "clusters/ledger.yaml", desiredtest.ClusterFile("ledger", "3.6.16"))
	f.pull(3, "README.md", "hello")
	f.round()
	plans := f.pulls.Plans()
	if len(plans) != 2 || plans[0].Number != 2 || plans[1].Number != 1 || plans[1].Report.Summary.Changing != 1 || plans[0].Head != f.open[1].Head || plans[0].At.IsZero() {
		t.Fatalf("the plans are %+v", plans)
	}
	f.open = f.open[1:]
	f.pull(2, "README.md", "only this")
	f.round()
	if plans := f.pulls.Plans(); len(plans) != 0 {
		t.Errorf("the plans that are left are %+v", plans)
	}
}

// Drafts wait, and forks need a flag; one that cannot be read keeps no other off.
func TestWhichPullRequestsArePlanned(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	for n := 1; n <= 4; n++ {
		f.pull(n, "clusters/ledger.yaml", desiredtest.ClusterFile("ledger", "3.6.16"))
	}
	f.open[0].Draft, f.open[1].Fork, f.open[2].Reference = true, true, "refs/pull/99/head"
	f.round()
	f.round()
	if f.wrote != 1 || f.comments[4] == "" {
		t.Errorf("commented %v", f.comments)
	}
	if n := strings.Count(f.log.String(), `msg="planning pull requests failed`); n != 1 || !strings.Contains(f.log.String(), "no refs/pull/99/head") {
		t.Errorf("%d lines:\n%s", n, f.log)
	}
	f.pulls.forks = true
	f.round()
	f.wantComment(2, "shop/ledger")

	f.listErr = errors.New("list the open pull requests: no")
	if err := f.pulls.Once(t.Context(), f); !errors.Is(err, f.listErr) {
		t.Errorf("got %v", err)
	}
}

func TestFewPullRequestsAreReadInOneRound(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	for n := 1; n <= pullsPerRound+2; n++ {
		f.pull(n, "clusters/ledger.yaml", desiredtest.ClusterFile("ledger", "3.6.16"))
	}
	f.round()
	f.wantWritten(pullsPerRound)
	f.round()
	f.wantWritten(2)
	if len(f.pulls.known) != pullsPerRound+2 {
		t.Errorf("known %v", f.pulls.known)
	}
	f.open = nil
	f.round()
	if len(f.pulls.known) != 0 {
		t.Errorf("known when all are closed: %v", f.pulls.known)
	}
	if known := (planned{head: "h", applied: "a", at: time.Now(), relevant: true}); true {
		f.pulls.known[1] = known
		p := forge.Pull{Number: 1, Head: "h"}
		if f.pulls.isDue(p, "a") || !f.pulls.isDue(p, "b") {
			t.Error("a plan does not follow what is in force")
		}
		known.at = time.Now().Add(-maxPlanAge - time.Second)
		f.pulls.known[1] = known
		if !f.pulls.isDue(p, "a") {
			t.Error("a plan is never replaced")
		}
	}
}

// stand lets the clock of the rounds stand still until it is moved.
func (f *proposing) stand() (move func(time.Duration)) {
	now := time.Now()
	f.pulls.now = func() time.Time { return now }
	return func(d time.Duration) { now = now.Add(d) }
}

// wantOrder wants that these pull requests got a comment, in this order.
func (f *proposing) wantOrder(want ...int) {
	f.Helper()
	if !slices.Equal(f.written, want) {
		f.Errorf("comments were written on %v, want %v", f.written, want)
	}
	f.written = nil
}

// Pull requests that fail again and again keep no other from its turn, and are tried less
// and less often.
func TestPullRequestsThatFailGoLast(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	move := f.stand()
	for n := 1; n <= pullsPerRound+2; n++ {
		f.pull(n, "clusters/ledger.yaml", desiredtest.ClusterFile("ledger", "3.6.16"))
		if n <= pullsPerRound {
			f.open[n-1].Reference = "refs/pull/99/head"
		}
	}
	f.round()
	f.wantOrder()
	f.round()
	f.wantOrder(6, 7)
	f.open[0].Reference = "refs/pull/1/head" // it works from now on
	f.round()
	f.wantOrder()
	move(failRest - time.Second)
	f.round()
	f.wantOrder()
	move(time.Second)
	f.round()
	f.wantOrder(1)
	f.open[1].Reference = "refs/pull/2/head"
	move(failRest)
	f.round() // it has failed twice
	f.wantOrder()
	move(failRest)
	f.round()
	f.wantOrder(2)
	f.open[2].Reference, f.open[2].Head = "refs/pull/3/head", "pushed" // a push is seen at once
	f.round()
	f.wantOrder(3)
	for range 20 {
		move(maxFailRest)
		f.round()
	}
	if failed := f.pulls.known[4].failed; failed < 10 {
		t.Errorf("one that fails was tried %d times, and never has its turn", failed)
	}
}

// slow is a planner that takes a time for each plan.
type slow struct {
	takes func() time.Duration
	move  func(time.Duration)
}

func (slow) SetDesired([]desired.Cluster) {}

func (s slow) Plan(context.Context, desired.Cluster) (decision.Plan, error) {
	s.move(s.takes())
	return decision.Plan{}, nil
}

// One that takes long goes behind others, and with many of them a round ends before its
// last place, so that what was opened meanwhile is seen.
func TestPullRequestsThatTakeLongGoLast(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	move, takes := f.stand(), roundTime
	f.planner = slow{func() time.Duration { return takes }, move}
	f.pull(1, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pull(2, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.15"))
	f.round()
	f.wantOrder(1)
	f.pull(3, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.14"))
	takes = time.Second
	f.round()
	f.wantOrder(2, 3)
	move(maxPlanAge)
	f.pull(1, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.13")) // all are due
	f.pull(2, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.11"))
	f.pull(3, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.10"))
	f.round()
	f.wantOrder(2, 3, 1)
}

// However many come from forks, which anyone may open, the repository's own have their turn.
func TestForksHaveOnePlaceOfARound(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	f.pulls.forks = true
	for n := 1; n <= 12; n++ {
		f.pull(n, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
		f.open[n-1].Fork = n <= 7
	}
	f.round()
	f.wantOrder(8, 9, 10, 11, 1)
	f.round()
	f.wantOrder(12, 2, 3, 4, 5)
	f.round()
	f.wantOrder(6, 7)
}

// hanging is a planner that never comes to an end by itself.
type hanging struct{ slow }

func (hanging) Plan(ctx context.Context, _ desired.Cluster) (decision.Plan, error) {
	<-ctx.Done()
	return decision.Plan{}, nil
}

// A pull request that takes more than its time says so.
func TestPullRequestThatTakesTooLongIsGivenUp(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	f.pulls.timeout, f.planner = 3*time.Second, hanging{}
	f.pull(1, "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.round()
	f.wantComment(1, "**quorate plan**: no change of a cluster is known, 1 error", "it cannot be planned: that takes longer than 3s; propose fewer changes at once")
	if strings.Contains(strings.ToLower(f.comments[1]), "no cluster changes") {
		t.Errorf("what is not known is said not to be: %s", f.comments[1])
	}
}

// What people may read of many pull requests is bounded.
func TestPlansThatAreKeptAreBounded(t *testing.T) {
	p := Pulls{plans: map[int]PullPlan{}}
	for n := range maxPlans + 3 {
		p.setPlan(PullPlan{Number: n, At: time.Unix(int64(n), 0), Report: &preview.Report{}})
	}
	if plans := p.Plans(); len(plans) != maxPlans || plans[maxPlans-1].Number != 3 {
		t.Errorf("%d plans are kept", len(plans))
	}
}

// What is in a file is shown literally: it mentions no user, opens nothing, commands
// nothing. A pull request that is too large says so.
func TestCommentIsNotWrittenByTheFiles(t *testing.T) {
	f := propose(t, map[string]string{"clusters/orders.yaml": desiredtest.ClusterFile("orders", "3.6.12")})
	evil := "@admin ``` </details><script>x</script> ![i](https://evil.example.com/p.png) | #1 !2\n/close\n<!-- " + f.pulls.marker + " part 1 -->"
	f.pull(1, "clusters/@admin`\n", "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: orders, namespace: shop}\nspec:\n  version: "+strconv.Quote(evil)+"\n  "+strconv.Quote(evil)+": 1\n")
	f.pull(2, "clusters/@admin`.yaml", "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: "+strconv.Quote(evil)+"\n  namespace: shop\nspec:\n  version: "+strconv.Quote(evil)+"\n  "+strconv.Quote(evil)+": 1\n")
	f.pull(3, "clusters/large.yaml", "# "+strings.Repeat("x", 1<<20))
	f.round()
	if f.comments[1] != "" {
		t.Errorf("a file that is not read made a comment:\n%s", f.comments[1])
	}
	f.wantComment(2, "error")
	f.wantComment(3, "large.yaml", "split it")
	for line := range strings.Lines(f.comments[2]) {
		bare := withoutCode(line)
		for _, sign := range []string{"@admin", "#1", "<script", "</details><"} {
			if strings.Contains(bare, sign) {
				t.Errorf("%q is not quoted: %s", sign, line)
			}
		}
		bare = strings.ReplaceAll(regexp.MustCompile("<code>.*</code>").ReplaceAllString(bare, ""), `\]`, "")
		if strings.Contains(bare, "](") || strings.Contains(bare, "https://") {
			t.Errorf("a link: %s", line)
		}
		if strings.HasPrefix(line, "/") {
			t.Errorf("a command: %s", line)
		}
	}
	if strings.Count(f.comments[2], "\n<!-- ") > 0 {
		t.Errorf("a second marker:\n%s", f.comments[2])
	}
}

// withoutCode is a line of Markdown without its code spans: from a run of backticks
// to the next run of the same length.
func withoutCode(line string) string {
	var open strings.Builder
	for {
		begin := strings.IndexByte(line, '`')
		if begin < 0 {
			return open.String() + line
		}
		if escapes := len(line[:begin]) - len(strings.TrimRight(line[:begin], `\`)); escapes%2 == 1 {
			open.WriteString(line[:begin+1])
			line = line[begin+1:]
			continue
		}
		run := len(line[begin:]) - len(strings.TrimLeft(line[begin:], "`"))
		fence, rest := line[begin:begin+run], line[begin+run:]
		end := -1
		for at := 0; at < len(rest); {
			i := strings.Index(rest[at:], fence)
			if i < 0 {
				break
			}
			i += at
			n := len(rest[i:]) - len(strings.TrimLeft(rest[i:], "`"))
			if n == run {
				end = i
				break
			}
			at = i + n
		}
		if end < 0 {
			return open.String() + line
		}
		open.WriteString(line[:begin])
		line = rest[end+run:]
	}
}
