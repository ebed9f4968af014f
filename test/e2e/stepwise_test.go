package e2e

import "testing"

// TestStepwise goes from 3.4 to 3.7 and back to 3.6 by three commits, while
// clients write. From 3.5 on one commit is enough: quorate walks through 3.6 by
// itself, and sees to it that 3.7 finds nothing of 3.5's in the write-ahead log.
func TestStepwise(t *testing.T) {
	t.Parallel()
	takesLong(t)
	w := newWorld(t, "stepwise")
	want := spec{version: "3.4.34", replicas: 3, backup: "Required"}
	w.create(want)
	history, writer := w.recordHistory("history/"), w.load()

	// The sandbox has no later 3.4, by which a stepwise path would go.
	want.version = "3.5.35"
	w.carryOut("Upgrade to 3.5.35", want)
	w.expectVersion(3, want.version)
	w.checkHistory(history)

	// 53, 55, 71: two minors by one commit.
	from := w.daemon.Log.Mark()
	want.version, want.more = "3.7.3", "    path: Stepwise\n"
	w.carryOut("Upgrade to 3.7.3, stepwise", want)
	w.expectVersion(3, want.version)
	w.expectClusterVersion("3.7")
	w.expectOrder(from, "back up", "3.6.16", "end the roll", "back up", "3.7.3", "end the roll")
	w.checkHistory(history)

	// Down by one minor, by etcd's downgrade API.
	from = w.daemon.Log.Mark()
	want.version, want.more = "3.6.16", ""
	w.carryOut("Downgrade to 3.6.16", want)
	w.expectVersion(3, want.version)
	w.expectClusterVersion("3.6")
	w.expectOrder(from, "back up", "restart orders-", "restart orders-", "restart orders-")
	w.checkHistory(history)
	w.expectProgress(history)
	w.finishLoad(writer)
	w.expectIdle(want.version)
}
