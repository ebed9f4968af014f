package e2e

import (
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestKilledAtEachStep kills quorate with SIGKILL right after it has said that
// it begins a step, and right after it has said that the step is done, at every
// step of a cluster's creation and of its upgrade.
func TestKilledAtEachStep(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "crash")
	want := spec{version: "3.5.35", replicas: 3, backup: "Required"}
	w.commit("Add orders", want)
	w.start()

	// 30: while the cluster is created.
	w.killThroughout(want.version, 12)
	w.expectVersion(3, want.version)
	w.expectRecord(3)

	// 65, 153: while it is upgraded.
	writer, history, pods := w.load(), w.recordHistory("history/"), w.watchPods()
	w.must(w.cluster.MoveLeader(t.Context(), w.namespace, name, "orders-1"))
	want.version = "3.6.16"
	w.commit("Upgrade", want)
	w.killThroughout(want.version, 14)
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
	w.expectVersion(3, want.version)
	w.finishLoad(writer)
	w.checkHistory(history)
	// The kill during the backup may have left one that nothing refers to.
	if keys := w.backups(shared.store); len(keys) < 1 || len(keys) > 2 {
		t.Errorf("backups %q, want one, and at most one more", keys)
	}
	rec := w.record()
	if b := rec.Backup; b == nil || b.ClusterID != rec.ClusterID || b.For != want.version {
		t.Errorf("the recorded backup is %+v", b)
	}
}

// killThroughout kills and restarts quorate after each new "step" and "done"
// line, until the cluster is what Git says. There must be at least so many.
func (w *world) killThroughout(version string, least int) {
	w.Helper()
	idle, seen := lab.Idle(w.key(), version), map[string]bool{}
	for {
		line := w.await("the next step", rollLimit, func(l lab.LogLine) bool {
			return idle(l) || (l.Msg == "step started" || l.Msg == "step done") && !seen[l.Msg+l.Action]
		})
		if idle(line) {
			break
		}
		seen[line.Msg+line.Action] = true
		w.daemon.Kill()
		w.must(w.daemon.Start())
	}
	if len(seen) < least {
		w.Errorf("killed %d times, want at least %d: %v", len(seen), least, seen)
	}
}
