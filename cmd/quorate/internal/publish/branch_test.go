package publish

import (
	"bytes"
	"context"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// reporting is a repository with a writer of its status branch.
type reporting struct {
	*testing.T
	dir  string
	w    *Branch
	kube *fake.Clientset
	log  *bytes.Buffer
	// git, list and whole are what is known.
	git   follow.State
	list  []schema.Status
	whole bool
}

func (r *reporting) Statuses() ([]schema.Status, bool) { return r.list, r.whole }

// startReporting begins to write into a new repository.
func startReporting(t *testing.T) *reporting {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "--quiet", "--bare", "--initial-branch=main", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return reportTo(t, dir, "3f2a")
}

// reportTo writes into a repository, from a Kubernetes cluster with a UID.
func reportTo(t *testing.T, dir, cluster string) *reporting {
	t.Helper()
	r := &reporting{T: t, dir: dir, log: &bytes.Buffer{}, whole: true, git: follow.State{Commit: "0a1b2c3d4e"}}
	r.kube = fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(cluster)}})
	r.w = NewBranch(BranchConfig{
		Publish: sources.PublishConfig{URL: dir, Branch: "quorate/status"}, Interval: time.Minute, Kube: r.kube, Instance: "default",
	}, func() follow.State { return r.git }, slog.New(slog.NewTextHandler(r.log, nil)), prometheus.NewRegistry())
	return r
}

func (r *reporting) once() {
	r.Helper()
	r.w.Once(r.Context(), r, false)
}

// show runs git in the repository.
func (r *reporting) show(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// commits on the status branch.
func (r *reporting) commits() int {
	r.Helper()
	cmd := exec.Command("git", "rev-list", "--count", "quorate/status")
	cmd.Dir = r.dir
	out, err := cmd.Output()
	if err != nil {
		return 0 // there is no such branch
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// 479: with --namespaces the branch belongs to the namespace of the daemon, which may read no other.
func TestTheStatusBranchBelongsToANamespace(t *testing.T) {
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "etcd", UID: "77"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "3f2a"}})
	for home, want := range map[string]string{"": "default in cluster 3f2a", "etcd": "default in namespace 77"} {
		if owner, err := statusOwner(t.Context(), kube, "default", home); err != nil || owner != want {
			t.Errorf("home %q: %q, %v; want %q", home, owner, err, want)
		}
	}
	if _, err := statusOwner(t.Context(), kube, "default", "gone"); err == nil || !strings.Contains(err.Error(), "its namespace gone") {
		t.Errorf("%v", err)
	}
}

// A branch of which nothing changes is committed again after its heartbeat, which is never shorter
// than the time in which it is checked.
func TestAQuietStatusIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startReporting(t)
		r.list = []schema.Status{cmdtest.Ready("orders")}
		config := sources.PublishConfig{URL: r.dir, Branch: "quorate/status", Heartbeat: time.Minute}
		r.w = NewBranch(BranchConfig{Publish: config, Interval: time.Minute, Kube: r.kube, Instance: "default"}, func() follow.State { return r.git }, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		for minutes, want := range []int{1: 1, 2: 1, 11: 1, 12: 2, 13: 2, 24: 3} {
			if want > 0 {
				r.once()
				if n := r.commits(); n != want {
					t.Errorf("after %d minutes there are %d commits, want %d", minutes, n, want)
				}
			}
			time.Sleep(time.Minute)
		}
		if got := r.show("log", "-1", "--format=%s%n%b", "quorate/status"); !strings.HasPrefix(got, "status: nothing has changed\n") || !strings.Contains(got, "Quorate-Heartbeat: 11m0s\n") {
			t.Errorf("the commit says %q", got)
		}
	})
}

// 139: a commit for each change that means something, none without one, also by a
// daemon that has just started.
func TestStatusIsWrittenWhenItChanges(t *testing.T) {
	r := startReporting(t)
	r.list = []schema.Status{cmdtest.Ready("orders")}
	r.once()
	if got := r.show("show", "--no-patch", "--format=%s%n%b", "quorate/status"); !strings.HasPrefix(got, "status: shop/orders ready (Idle)\n[skip ci]\n\nQuorate-Commit: 0a1b2c3d4e\n") {
		t.Errorf("the commit says %s", got)
	}
	r.once()
	again := reportTo(t, r.dir, "3f2a")
	again.list = r.list
	again.once()
	if r.commits() != 1 {
		t.Fatalf("%d commits of one state", r.commits())
	}
	r.list = []schema.Status{cmdtest.Cluster("orders", schema.PhaseStalled, "Blocked", "no quorum"), cmdtest.Ready("carts")}
	r.once()
	r.list = r.list[1:]
	r.once()
	if got, want := r.show("log", "--format=%s", "quorate/status"), "status: 1 object gone\nstatus: shop/orders stalled (Blocked) and 1 more\nstatus: shop/orders ready (Idle)"; got != want {
		t.Errorf("the commits are\n%s\nwant\n%s", got, want)
	}
	if got := r.show("ls-tree", "-r", "--name-only", "quorate/status"); got != "README.md\nclusters/shop/carts.yaml" {
		t.Errorf("the files are %s", got)
	}
	if n := testutil.ToFloat64(r.w.commits); n != 3 || testutil.ToFloat64(r.w.lastSuccess) == 0 {
		t.Errorf("%v commits were counted", n)
	}
}

// What was not observed yet is left out, for a while.
func TestStatusWaitsUntilAllIsKnown(t *testing.T) {
	r := startReporting(t)
	r.list, r.whole = []schema.Status{cmdtest.Ready("orders")}, false
	r.once()
	r.git.Commit, r.whole = "", true
	r.once()
	if n := r.commits(); n != 0 {
		t.Fatalf("%d commits", n)
	}
	r.git.Commit, r.whole = "0a1b2c3d4e", false
	r.w.Once(t.Context(), r, true)
	if n := r.commits(); n != 1 {
		t.Errorf("%d commits when it has waited long enough", n)
	}
}

// 139: what changes all the time makes no more than one commit in an interval, and
// the last state is written in the end.
func TestStatusIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startReporting(t)
		ctx, stop := context.WithCancel(t.Context())
		churn := &churning{}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.w.Run(ctx, churn)
		}()
		time.Sleep(10*time.Minute + 30*time.Second)
		stop()
		<-ended
		if n := r.commits(); n < 9 || n > 11 {
			t.Errorf("%d commits in ten minutes", n)
		}
	})
}

// churning is never the same twice.
type churning struct{ passes int }

func (c *churning) Statuses() ([]schema.Status, bool) {
	c.passes++
	return []schema.Status{cmdtest.Cluster("orders", schema.PhaseReconciling, "RestartMember", strconv.Itoa(c.passes))}, true
}

// 137: what quorate writes is not followed, by a flag or by default.
func TestOwnCommitsAreNotFollowed(t *testing.T) {
	f, said := cmdtest.NewRepository(t), &bytes.Buffer{}
	repository, err := sources.New(sources.Config{URL: f.Dir, Branch: "main", Path: "clusters"})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(said, nil))
	kube := fake.NewClientset()
	p := follow.New(follow.Config{Repository: repository, Kube: kube, Namespace: "quorate-system"}, log, prometheus.NewRegistry())
	target := reconciler.New(kube, etcd.New(), record.NewFakeRecorder(10), report.NewMetrics(prometheus.NewRegistry()), log, reconciler.Options{})
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	p.Once(t.Context(), target)
	r := reportTo(t, f.Dir, "3f2a")
	r.git, r.list = p.State(), []schema.Status{cmdtest.Ready("orders")}
	r.once()
	if r.git.Commit == "" || r.commits() != 1 {
		t.Fatalf("nothing was written: %s", r.log)
	}
	said.Reset()
	p.Once(t.Context(), target)
	if text := said.String(); text != "" {
		t.Errorf("the poll says %s", text)
	}
}

// 142: two Kubernetes clusters that follow one repository do not write to one
// branch; the second one says why, once, and continues.
func TestStatusBranchOfAnotherQuorate(t *testing.T) {
	r := startReporting(t)
	r.list = []schema.Status{cmdtest.Ready("orders")}
	r.once()
	other := reportTo(t, r.dir, "77aa")
	other.list = []schema.Status{cmdtest.Ready("carts")}
	other.once()
	other.once()
	if n := r.commits(); n != 1 {
		t.Errorf("%d commits", n)
	}
	if text := other.log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "it belongs to another quorate, default in cluster 3f2a; name another branch") {
		t.Errorf("it said %s", text)
	}
	if n := testutil.ToFloat64(other.w.failures); n != 2 || !other.w.next.After(time.Now()) {
		t.Errorf("%v failures, next at %s", n, other.w.next)
	}
	// The other one's branch is deleted.
	r.show("branch", "--quiet", "-D", "quorate/status")
	other.once()
	if text := other.log.String(); !strings.Contains(text, "status branch updated again") || testutil.ToFloat64(other.w.failures) != 0 {
		t.Errorf("it said %s", text)
	}
}

func TestStatusNeedsToKnowItsCluster(t *testing.T) {
	r := startReporting(t)
	r.w.kube = fake.NewClientset()
	r.list = []schema.Status{cmdtest.Ready("orders")}
	r.once()
	if text := r.log.String(); !strings.Contains(text, "let quorate get it, as deploy/base does") || r.commits() != 0 {
		t.Errorf("it said %s", text)
	}
}
