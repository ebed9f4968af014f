package e2e

import (
	"context"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Somebody scales all members away while an upgrade has stopped at its first member, whose image no registry has: all come
// back with that image, and the revert brings them back, one after the other.
func TestScaledToNothingInAStoppedUpgrade(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "nothing")
	want := spec{version: "3.5.35", replicas: 3, backup: "Required"}
	w.create(want)
	history, members := w.recordHistory("history/"), w.record().Members
	want.version = "3.6.99"
	w.commit("Upgrade to a release that does not exist", want)
	w.awaitHold("Stopped", rollLimit, "the roll stopped at orders-2", "3.6.99")
	history.Stop()

	w.must(w.daemon.Stop())
	scaled := []byte(`{"spec":{"replicas":0}}`)
	_, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Patch(t.Context(), name, types.MergePatchType, scaled, metav1.PatchOptions{})
	w.must(err)
	w.eventually("no pod to be left", changeLimit, func(context.Context) (bool, error) { return len(w.uids()) == 0, nil })
	w.start()
	w.awaitHold("Unhealthy", holdLimit, "there is no quorum", "Image")

	want.version = "3.5.35"
	w.commit("Revert", want)
	w.awaitIdle("3.5.35", 2*rollLimit)
	w.expectVersion(3, "3.5.35")
	if after := w.record().Members; !maps.Equal(members, after) {
		t.Errorf("the members were %v and are %v", members, after)
	}
	w.checkHistory(history)
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
