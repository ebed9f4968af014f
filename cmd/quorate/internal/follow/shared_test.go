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

// Files that are too large to be stored are read from the repository, if they are still there.
func TestAFollowerReadsLargeFilesFromTheRepository(t *testing.T) {
	f, leads := follow(t), false
	g := f.second(&leads)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	for i := range 10 {
		var noise strings.Builder
		for range 16 << 10 {
			fmt.Fprintf(&noise, "# %x\n", rand.Uint64())
		}
		f.Commit(fmt.Sprintf("clusters/noise-%d.yaml", i), noise.String())
	}
	f.p.Once(t.Context(), f.r)
	if _, there := f.stored().BinaryData[keySnapshot]; there {
		t.Fatal("the files are stored")
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
