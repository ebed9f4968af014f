package e2e

import (
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestTwoDaemons lets two daemons without a lease reconcile one cluster, as after a
// slip in a deployment, and upgrades it: what one has done the other finds done, and
// no two members are away at once (66).
func TestTwoDaemons(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "two")
	want := spec{version: "3.5.21", replicas: 3, backup: "Required"}
	w.create(want)
	v := w.standBy()
	v.awaitIdle(want.version, holdLimit)
	history, pods := w.recordHistory("history/"), w.watchPods()

	want.version = "3.5.35"
	w.commit("Upgrade", want)
	v.head = w.head
	w.awaitDone(rollLimit)
	v.awaitDone(rollLimit)
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	w.checkHistory(history)
	both := len(w.lines(0, lab.Step("restart "))) + len(v.lines(0, lab.Step("restart ")))
	t.Logf("%d restarts were begun by the two", both)
}
