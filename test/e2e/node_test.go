package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/lab"
)

// TestNodeGone removes a node permanently: its power first, and then, as the
// person does who knows that it will not come back, its Node object. The member
// is replaced on another node. It runs alone, because other tests have pods
// there.
func TestNodeGone(t *testing.T) {
	takesLong(t)
	w := newWorld(t, "node")
	w.needsClusterScoped()
	sandbox := w.cluster.Sandbox
	if sandbox == nil {
		t.Skip("only in the sandbox can a node be stopped")
	}
	want := spec{version: "3.6.16", replicas: 3, backup: "Required", more: soonRepaired}
	w.create(want)
	history, sizes := w.recordHistory("history/"), w.watchMembers()
	pods, members := w.uids(), w.record().Members
	gone := w.nodeOf("orders-2")
	if gone == w.nodeOf("orders-0") || gone == w.nodeOf("orders-1") {
		t.Fatalf("%s has more than one member", gone)
	}

	// 76: the node goes.
	w.mark = w.daemon.Log.Mark()
	t.Cleanup(func() { w.bringBack(gone) })
	w.must(sandbox.StopNode(t.Context(), gone))
	w.must(w.cluster.Client.CoreV1().Nodes().Delete(t.Context(), gone, metav1.DeleteOptions{}))
	w.expectRepaired("orders-2", members, sizes)
	if now := w.nodeOf("orders-2"); now == gone {
		t.Errorf("orders-2 is still on %s", now)
	}
	w.expectNoOther(pods, w.uids(), "orders-2")
	w.expectVersion(3, want.version)
	w.checkHistory(history)
	w.expectProgress(history)
}

// nodeOf is the node that a pod runs on.
func (w *world) nodeOf(pod string) string {
	w.Helper()
	p, err := w.cluster.Client.CoreV1().Pods(w.namespace).Get(w.Context(), pod, metav1.GetOptions{})
	w.must(err)
	return p.Spec.NodeName
}

// bringBack starts a node again, for the tests that follow.
func (w *world) bringBack(node string) {
	ctx := context.Background() // the test's own has ended
	if err := w.cluster.Sandbox.StartNode(ctx, node); err != nil {
		w.Error(err)
		return
	}
	err := lab.Poll(ctx, rollLimit, func(ctx context.Context) (bool, error) {
		n, err := w.cluster.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, nil
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	if err != nil {
		w.Errorf("%s is not ready again: %v", node, err)
	}
}
