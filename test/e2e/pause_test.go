package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// TestPauseInTheMiddleOfAnUpgrade lets quorate only observe when one of three members
// is upgraded. Nothing continues, and a member that restarts meanwhile keeps its
// release; then the rollout continues where it was (73).
func TestPauseInTheMiddleOfAnUpgrade(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "pause")
	want := spec{version: "3.5.35", replicas: 3, soak: "3s"}
	w.create(want)
	history, pods := w.recordHistory("history/"), w.watchPods()
	want.version = "3.6.16"
	w.commit("Upgrade", want)
	w.await("the first restart", rollLimit, lab.Done("restart orders-2"))
	want.mode = "Observe"
	w.commit("Look on only", want)
	hold := w.awaitHold("Observe", rollLimit, "quorate would")
	t.Logf("quorate says: %s", hold.Hold())
	from := w.daemon.Log.Mark()

	was := w.uids()["orders-0"]
	w.deletePod("orders-0")
	w.awaitAnother("orders-0", was)
	w.eventually("orders-0 to be back with its old release", rollLimit, func(ctx context.Context) (bool, error) {
		members, err := w.cluster.Members(ctx, w.namespace, name)
		return err == nil && len(members) == 3 && members[0].Version == "3.5.35" && members[1].Version == "3.5.35" && members[2].Version == "3.6.16", nil
	})
	time.Sleep(2 * quiet) // longer than the soak
	if steps := w.lines(from, lab.Step()); len(steps) > 0 {
		t.Errorf("quorate acted: %s", steps[0].Raw)
	}
	w.expectRoll(pods, "orders-2", "orders-0")
	w.expectClusterVersion("3.5")
	w.expectProgress(history)

	want.mode = "Enforce"
	w.apply("Go on", want)
	w.expectRoll(pods, "orders-1", "orders-0")
	w.expectVersion(3, want.version)
	w.expectClusterVersion("3.6")
	w.checkHistory(history)
}
