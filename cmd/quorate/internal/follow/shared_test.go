package follow

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired/desiredtest"
)

// second is another process that follows the same repository in the same cluster. It accepts
// commits while leads is true.
func (f *followed) second(leads *bool) *followed {
	f.Helper()
	g := &followed{Repository: f.Repository, log: f.log, kube: f.kube}
	g.leads = func() error {
		if !*leads {
			return errors.New("another accepts commits")
		}
		return nil
	}
	g.restart()
	return g
}

// One process accepts commits, and the others apply what it has accepted, and no other.
func TestOneProcessAcceptsAndTheOthersFollow(t *testing.T) {
	f, leads := follow(t), false
	g := f.second(&leads)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	g.pollOnce(nil, 0, 0, 0)
	if g.p.Ready() || len(f.kube.Actions()) > 1 {
		t.Errorf("before a commit is accepted, the other has one in force: %v", f.kube.Actions())
	}
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.kube.ClearActions()
	g.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	if !g.p.Ready() || g.p.State().Commit != f.p.State().Commit {
		t.Errorf("the other follows %+v", g.p.State())
	}
	for _, a := range f.kube.Actions() {
		if a.GetVerb() != "get" {
			t.Errorf("one that follows writes: %v", a)
		}
	}
	if testutil.ToFloat64(g.p.lastSuccess) != 0 {
		t.Error("one that follows counts as one that reads the repository")
	}
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	g.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	// What has errors is held by what the accepted commit has before.
	f.Commit("clusters/orders.yaml", "kind: EtcdCluster\n")
	f.pollOnce([]string{"shop/orders held"}, 0, 1, 0)
	g.pollOnce([]string{"shop/orders held"}, 0, 1, 0)
}

// It takes over where the other one was: a commit that is accepted by then is applied, though
// this process had another one in force, and one that was held is held again.
func TestAFollowerTakesOver(t *testing.T) {
	f, leads := follow(t), false
	g := f.second(&leads)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	first := f.Head()
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	g.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	leads = true
	g.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	f.reset(first)
	g.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)
	g.wantHeld(heldHistory, first)
}

// What it has in force is what the next commit is measured against, also where the ConfigMap was deleted.
func TestAFollowerTakesOverWhatWasDeleted(t *testing.T) {
	f, leads := follow(t), false
	g := f.second(&leads)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	first := f.Head()
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	second := f.Head()
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	g.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	remove := func() {
		cm := f.stored()
		if err := f.kube.CoreV1().ConfigMaps(cm.Namespace).Delete(t.Context(), cm.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	f.reset(first)
	g.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	leads = true
	g.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)
	g.wantHeld(heldHistory, first)
	f.reset(second)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.18"))
	g.pollOnce([]string{"shop/orders 3.6.18"}, 0, 0, 0)
	// It is stored again, also without a newer one.
	leads = false
	g.pollOnce([]string{"shop/orders 3.6.18"}, 0, 0, 0)
	remove()
	leads = true
	g.pollOnce([]string{"shop/orders 3.6.18"}, 0, 0, 0)
	if is := f.stored().Data[keyCommit]; is != f.Head() {
		t.Errorf("the ConfigMap has %s", is)
	}
}

// A process that was paused between its look at the repository and the write does not undo
// what another has accepted meanwhile.
func TestAPausedProcessUndoesNoCommit(t *testing.T) {
	f, leads := follow(t), true
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	old := *f.p.accepted
	g := f.second(&leads)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	g.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	newest := f.Head()
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.18"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 1, 0, 1)
	if !strings.Contains(f.log.String(), "another quorate has accepted a commit meanwhile") || f.stored().Data[keyCommit] != newest {
		t.Errorf("the ConfigMap has %s\n%s", f.stored().Data[keyCommit], f.log)
	}
	if _, err := f.p.store.save(t.Context(), old, "another"); !errors.Is(err, errOvertaken) {
		t.Errorf("saved over another commit: %v", err)
	}
	// It reads what is accepted, and continues with that.
	f.pollOnce([]string{"shop/orders 3.6.18"}, 0, 0, 0)
	leads = false
	g.pollOnce([]string{"shop/orders 3.6.18"}, 0, 0, 0)
}

// commitLarge commits files that are too large to be stored.
func (f *followed) commitLarge() {
	f.Helper()
	for i := range 10 {
		var noise strings.Builder
		for range 16 << 10 {
			fmt.Fprintf(&noise, "# %x\n", rand.Uint64())
		}
		f.Commit(fmt.Sprintf("clusters/noise-%d.yaml", i), noise.String())
	}
}

// Files that are too large to be stored are read from the repository, if they are still there.
func TestAFollowerReadsLargeFilesFromTheRepository(t *testing.T) {
	f, leads := follow(t), false
	g := f.second(&leads)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.commitLarge()
	f.p.Once(t.Context(), f.r)
	if stored, err := f.p.store.load(t.Context()); err != nil || len(stored.snapshot.Files) > 0 || stored.snapshot.Author == "" {
		t.Fatalf("stored is %+v, %v", stored.snapshot, err)
	}
	f.log.Reset()
	g.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.p.Once(t.Context(), f.r)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.18"))
	g.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 1)
	if !strings.Contains(f.log.String(), "too large to be stored") {
		t.Errorf("the log says\n%s", f.log)
	}
	f.p.Once(t.Context(), f.r)
	g.pollOnce([]string{"shop/orders 3.6.18"}, 0, 0, 0)
}

// So are those of a commit that a tag names: it is applied once, like any other.
func TestAFollowerReadsLargeFilesOfATagOnce(t *testing.T) {
	f, leads := follow(t), false
	g := f.second(&leads)
	f.semver, g.semver = "1.x", "1.x"
	f.restart()
	g.restart()
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.commitLarge()
	f.Git("tag", "v1.0.0")
	f.p.Once(t.Context(), f.r)
	g.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.Git("tag", "v1.0.1") // not accepted yet
	g.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	if strings.Contains(f.log.String(), "commit followed") {
		t.Errorf("it is applied again:\n%s", f.log)
	}
	// Which tag it was accepted by is stored with it: another one at the same commit is judged after a restart, too.
	stored, err := f.p.store.load(t.Context())
	if err != nil || stored.snapshot.Tag != f.p.tag() || g.p.tag() != f.p.tag() || f.p.tag().Name != "v1.0.0" {
		t.Errorf("the tag is %+v, stored is %+v (%v), and followed %+v", f.p.tag(), stored, err, g.p.tag())
	}
}
