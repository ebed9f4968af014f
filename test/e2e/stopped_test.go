package e2e

import (
	"maps"
	"testing"
	"time"
)

// TestBadImageStopsTheRoll asks for a release that no registry has.
func TestBadImageStopsTheRoll(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "image")
	want := spec{version: "3.5.35", replicas: 3}
	w.create(want)
	writer, pods, before := w.load(), w.watchPods(), w.uids()

	// 61: it stops at one member.
	want.version = "3.5.99"
	w.commit("Upgrade to a release that does not exist", want)
	w.awaitHold("Waiting", holdLimit, "orders-2", "ImagePullBackOff")
	w.awaitHold("Stopped", holdLimit, "the roll stopped at orders-2", "3.5.99", "Image", "revert the commit")
	time.Sleep(quiet)
	w.expectRoll(pods, "orders-2")
	after := w.uids()
	delete(before, "orders-2")
	delete(after, "orders-2")
	if !maps.Equal(before, after) {
		t.Errorf("pods were %v and are %v", before, after)
	}
	w.expectEvents("HoldStopped")

	// A revert fixes it, and changes nothing else.
	want.version = "3.5.35"
	w.commit("Revert", want)
	w.awaitIdle("3.5.35", rollLimit)
	w.expectRoll(pods, "orders-2")
	w.expectVersion(3, "3.5.35")
	w.finishLoad(writer)
}

// TestRollback reverts an upgrade while two of three members are still old.
func TestRollback(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "rollback")
	want := spec{version: "3.5.35", replicas: 3, backup: "Required", soak: "10m"}
	w.create(want)
	writer, pods := w.load(), w.watchPods()
	want.version = "3.6.16"
	w.commit("Upgrade", want)
	w.awaitHold("Waiting", rollLimit, "orders-2 is back and soaks for 10m")
	w.expectRoll(pods, "orders-2")
	w.expectClusterVersion("3.5")

	// 62: the way back is open, and leaves the others alone.
	want.version, want.soak = "3.5.35", "0s"
	w.commit("Revert", want)
	w.awaitIdle("3.5.35", rollLimit)
	w.expectRoll(pods, "orders-2")
	w.expectVersion(3, "3.5.35")
	w.expectBackups("3.5.35 before 3.6.16")
	w.finishLoad(writer)
}
