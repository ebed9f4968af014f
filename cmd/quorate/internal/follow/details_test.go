package follow

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/sources"
)

// pausing is a target that keeps a poll until it is let go.
type pausing struct{ begun, goes chan struct{} }

func (p pausing) SetDesired([]desired.Cluster) {
	p.begun <- struct{}{}
	<-p.goes
}
func (pausing) SetNeeded(map[string]string, string) {}
func (pausing) SetBackups([]desired.Backup)         {}

// What people see of Git: who wrote the commit in force, why another one is held, how it
// is approved, and since when nothing could be read. 245: the held one too.
// 220: a poll says how long it lasts.
func TestDetailsOfTheRepository(t *testing.T) {
	f := cmdtest.NewRepository(t)
	repository, err := sources.New(sources.Config{URL: f.Dir, Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	kube, target := fake.NewClientset(), pausing{make(chan struct{}, 1), make(chan struct{})}
	p := New(Config{Repository: repository, Kube: kube, Namespace: "quorate-system", Limits: Limits{Clusters: 1}}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	f.Commit("orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.Commit("users.yaml", desiredtest.ClusterFile("users", "3.6.16"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Once(t.Context(), target)
	}()
	<-target.begun
	if lasting := p.Lasting(time.Now().Add(time.Hour)); lasting < time.Hour {
		t.Errorf("the poll under way lasts %s", lasting)
	}
	close(target.goes)
	<-ended
	if lasting := p.Lasting(time.Now().Add(time.Hour)); lasting != 0 {
		t.Errorf("between two polls one lasts %s", lasting)
	}
	first := p.Details()
	if first.Commit != f.Head() || first.Author != "Ada <ada@example.com>" || first.Subject != "Change users.yaml" || first.When.IsZero() ||
		first.LastSuccess.IsZero() || first.Source != repository.Source() || first.Reference != "branch main" || first.Approve != "" {
		t.Errorf("details are %+v", first)
	}
	f.Commit("orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.Commit("users.yaml", desiredtest.ClusterFile("users", "3.6.17"))
	p.Once(t.Context(), target)
	held := p.Details()
	if held.HeldAuthor != "Ada <ada@example.com>" || held.HeldSubject != "Change users.yaml" || held.HeldWhen.IsZero() {
		t.Errorf("the held commit is %+v", held)
	}
	if held.Commit != first.Commit || held.HeldCommit != f.Head() || held.Reason != heldTooManyChanges || !held.LastSuccess.After(first.LastSuccess) ||
		!strings.HasPrefix(held.Approve, "kubectl -n quorate-system annotate --overwrite configmap quorate-git-") || !strings.HasSuffix(held.Approve, " quorate.dev/approve="+first.Commit+".."+f.Head()) {
		t.Errorf("held details are %+v", held)
	}
	back := f.Away()
	for range minShownFailures {
		p.Once(t.Context(), target)
	}
	if gone := p.Details(); gone.Failures != minShownFailures || gone.Held == "" || gone.Reason != "" || gone.Approve != "" || gone.HeldAuthor != "" || !gone.LastSuccess.Equal(held.LastSuccess) {
		t.Errorf("without the repository: %+v", gone)
	}
	back()
}
