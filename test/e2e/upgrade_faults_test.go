package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/lab"
)

// TestNoSpaceBeforeAnUpgrade asks for an upgrade of a cluster that is full: it gets
// space first, and only then does a member restart (59).
func TestNoSpaceBeforeAnUpgrade(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "full")
	want := spec{version: "3.5.35", replicas: 3, backup: "Required", more: "  etcd:\n    quotaBackendBytes: 16Mi\n"}
	w.create(want)
	history := w.recordHistory("history/")
	client, err := w.cluster.Dial(t.Context(), w.namespace, name)
	w.must(err)
	t.Cleanup(func() { _ = client.Close() })
	w.must(w.daemon.Stop())
	w.fillDatabase(client)

	want.version = "3.6.16"
	w.commit("Upgrade", want)
	from := w.mark
	w.must(w.daemon.Start())
	w.awaitDone(changeLimit)
	w.expectOrder(from, "back up", "compact", "defragment", "defragment", "defragment", "disarm", "start the roll", "restart orders-2", "restart orders-1", "restart orders-0")
	w.expectVersion(3, want.version)
	w.expectClusterVersion("3.6")
	w.checkHistory(history)
	w.expectProgress(history)
}

// TestDrainDuringAnUpgrade drains the node of a member that is still to be rolled. The
// budget keeps the drain from taking a second member away, and the roll waits for the
// one that the drain has taken. It runs alone, because other tests have pods there (68).
func TestDrainDuringAnUpgrade(t *testing.T) {
	takesLong(t)
	w := newWorld(t, "drain")
	want := spec{version: "3.5.21", replicas: 3, soak: "3s"}
	w.create(want)
	history, pods, node := w.recordHistory("history/"), w.watchPods(), w.nodeOf("orders-0")
	t.Cleanup(func() { w.uncordon(node) })
	want.version = "3.5.35"
	w.commit("Upgrade", want)
	w.await("the first restart", rollLimit, lab.Done("restart orders-2"))
	w.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m", "--pod-selector="+clusterSelector)

	// Its volume is on that node, so that its pod waits, and the roll with it.
	w.eventually("orders-0 to wait for its node", rollLimit, func(ctx context.Context) (bool, error) {
		p, err := w.cluster.Client.CoreV1().Pods(w.namespace).Get(ctx, "orders-0", metav1.GetOptions{})
		return err == nil && p.Spec.NodeName == "", nil
	})
	hold := w.await("a hold about orders-0", rollLimit, func(l lab.LogLine) bool { return l.Msg == "on hold" && strings.Contains(l.Hold(), "orders-0") })
	t.Logf("quorate says: %s", hold.Hold())
	from := w.daemon.Log.Mark()
	time.Sleep(2 * quiet)
	for _, l := range w.lines(from, lab.Step("restart ")) {
		t.Errorf("a second member was taken away: %s", l.Raw)
	}
	w.uncordon(node)
	w.awaitIdle(want.version, rollLimit)
	replaced, problems := pods.take()
	t.Logf("replaced: %v", replaced)
	for _, p := range problems {
		t.Error(p)
	}
	if !slices.Contains(replaced, "orders-1") || !slices.Contains(replaced, "orders-2") {
		t.Errorf("replaced were only %v", replaced)
	}
	w.expectVersion(3, want.version)
	w.checkHistory(history)
	w.expectProgress(history)
}

// uncordon lets pods come to a node again, also when the test has failed.
func (w *world) uncordon(node string) {
	_, err := w.cluster.Client.CoreV1().Nodes().Patch(context.Background(), node, "application/merge-patch+json",
		[]byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
	if err != nil {
		w.Errorf("uncordon %s: %v", node, err)
	}
}
