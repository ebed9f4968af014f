package e2e

import (
	"testing"
	"time"
)

// TestObserve lets quorate observe a cluster and act only when it may.
func TestObserve(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "observe")
	before := w.settled()
	want := spec{version: "3.5.21", replicas: 1, mode: "Observe"}
	w.commit("Add orders, to be observed", want)
	w.start()
	w.awaitHold("Observe", holdLimit, "quorate would create the record")
	time.Sleep(quiet)
	w.expectObjects(before)

	want.mode = "Enforce"
	w.commit("Let it act", want)
	w.awaitIdle(want.version, createLimit)
	w.expectVersion(1, want.version)

	// 159: suspended in the presence of a change.
	before = w.settled()
	want.mode, want.version = "Observe", "3.5.35"
	w.commit("Upgrade, to be observed", want)
	w.awaitHold("Observe", holdLimit, "quorate would start the roll 3.5.21 → 3.5.35")
	time.Sleep(quiet)
	w.expectObjects(before)

	want.mode = "Enforce"
	w.commit("Let it act", want)
	w.awaitIdle(want.version, rollLimit)
	w.expectVersion(1, want.version)
}
