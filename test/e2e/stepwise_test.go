package e2e

import "testing"

// TestStepwise goes from 3.4 to 3.7 by one commit, and back to 3.6 by another,
// while clients write: quorate goes through 3.5 and 3.6 on its own, and ensures
// that 3.7 finds no entry of 3.5 in the write-ahead log.
func TestStepwise(t *testing.T) {
	t.Parallel()
	takesLong(t)
	w := newWorld(t, "stepwise")
	want := spec{version: "3.4.34", replicas: 3, backup: "Required"}
	w.create(want)
	history, writer := w.recordHistory("history/"), w.load()

	// 53, 55, 71: three minors by one commit.
	from := w.daemon.Log.Mark()
	want.version, want.more = "3.7.3", "    path: Stepwise\n"
	w.apply("Upgrade to 3.7.3, stepwise", want)
	w.expectVersion(3, want.version)
	w.expectClusterVersion("3.7")
	w.expectOrder(from,
		"back up", "3.5.35", "end the roll", "back up", "3.6.16", "add to the log", "has saved its state", "end the roll",
		"back up", "3.7.3", "end the roll", "3.7.3 is applied")
	w.checkHistory(history)

	// Down by one minor, by etcd's downgrade API.
	from = w.daemon.Log.Mark()
	want.version, want.more = "3.6.16", ""
	w.apply("Downgrade to 3.6.16", want)
	w.expectVersion(3, want.version)
	w.expectClusterVersion("3.6")
	w.expectOrder(from, "back up", "enable the downgrade 3.7 → 3.6", "restart orders-", "restart orders-", "restart orders-")
	w.checkHistory(history)
	w.expectProgress(history)
	w.finishLoad(writer)
	w.expectIdle(want.version)
}
