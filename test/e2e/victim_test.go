package e2e

import "testing"

// TestUnhealthyMemberLeavesFirst shrinks a cluster whose middle member has lost its
// volume: that one goes first, and the healthy ones are kept as long as they can (41).
func TestUnhealthyMemberLeavesFirst(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "victim")
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	history, sizes, before, pods := w.recordHistory("history/"), w.watchMembers(), w.record(), w.uids()

	w.mark = w.daemon.Log.Mark()
	w.loseVolume("orders-1")
	w.awaitHold("Waiting", rollLimit, "orders-1 has lost its data", "it is replaced")
	from := w.mark
	want.replicas = 1
	w.apply("Go down to one", want)
	w.expectOrder(from, "remove orders-1 from the members", "remove orders-2 from the members")
	w.expectSizes(sizes, "3", "2", "1")
	w.expectVersion(1, want.version)
	w.expectRecord(1)
	if now := w.record(); now.Members["orders-0"] != before.Members["orders-0"] || now.ClusterID != before.ClusterID {
		t.Errorf("cluster %s with %v became %s with %v", before.ClusterID, before.Members, now.ClusterID, now.Members)
	}
	w.expectNoOther(pods, w.uids())
	w.checkHistory(history)
	w.expectProgress(history)
}
