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

// soonRepaired shortens the grace before a lost member is replaced.
const soonRepaired = "  repair:\n    after: 3s\n"

// TestRepair loses a pod, a volume and the data on a volume, one after the
// other, while clients write. What Kubernetes repairs is left to it; a
// member whose data is lost is replaced by a new one, after a backup.
func TestRepair(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "repair")
	want := spec{version: "3.6.16", replicas: 3, backup: "Required", more: soonRepaired}
	w.create(want)
	history, sizes := w.recordHistory("history/"), w.watchMembers()
	for _, tc := range []struct {
		name, member string
		lose         func(w *world, member string)
		repaired     bool
	}{
		{"75, 87: a pod deleted", "orders-1", (*world).deletePod, false},
		{"77: a volume lost", "orders-2", (*world).loseVolume, true},
		{"78: the leader's volume wiped", "orders-0", (*world).wipeVolume, true},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T, v.mark = t, w.daemon.Log.Mark()
			v.must(v.cluster.MoveLeader(t.Context(), v.namespace, name, "orders-0"))
			pods, members := v.uids(), v.record().Members
			tc.lose(&v, tc.member)
			if tc.repaired {
				v.expectRepaired(tc.member, members, sizes)
			} else {
				v.expectLeftAlone(tc.member, pods, members, sizes)
			}
			v.expectNoOther(pods, v.uids(), tc.member)
			v.expectVersion(3, want.version)
			v.expectRecord(3)
			v.checkHistory(history)
			v.expectProgress(history)
		})
		if !ok {
			return // the next loss would meet another cluster
		}
	}
}

// deletePod deletes a member's pod, as a drained node does.
func (w *world) deletePod(member string) {
	w.Helper()
	w.must(w.cluster.Client.CoreV1().Pods(w.namespace).Delete(w.Context(), member, metav1.DeleteOptions{}))
}

// loseVolume deletes a member's claim, and its pod, without which the claim
// would stay.
func (w *world) loseVolume(member string) {
	w.Helper()
	w.must(w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Delete(w.Context(), "data-"+member, metav1.DeleteOptions{}))
	w.deletePod(member)
}

// wipeVolume removes the data from a member's volume, and restarts its pod.
func (w *world) wipeVolume(member string) {
	w.Helper()
	if w.cluster.Sandbox == nil {
		w.Skip("only in the sandbox can a volume be reached")
	}
	w.must(w.cluster.WipeVolume(w.Context(), w.namespace, "data-"+member))
	w.deletePod(member)
}

// expectLeftAlone wants a member to come back unchanged, without any step of
// quorate's.
func (w *world) expectLeftAlone(member string, pods, members map[string]string, sizes *memberWatch) {
	w.Helper()
	from := w.mark
	w.awaitAnother(member, pods[member])
	time.Sleep(2 * quiet) // longer than the grace
	if steps := w.lines(from, lab.Step()); len(steps) > 0 {
		w.Errorf("quorate acted although Kubernetes repairs this: %s", steps[0].Raw)
	}
	if now := w.record().Members; now[member] != members[member] {
		w.Errorf("%s was %s and is %s", member, members[member], now[member])
	}
	w.expectSizes(sizes, "3")
}

// expectRepaired waits until a member is replaced by a new one of its name, and
// wants that to have been done in the one safe order. Without a watch the sizes of
// the member list are not compared.
func (w *world) expectRepaired(member string, members map[string]string, sizes *memberWatch) {
	w.Helper()
	from := w.mark
	w.awaitReplaced(member, members, sizes)
	w.expectOrder(from, "back up", "remove "+member+" from the members", "delete the volume claim data-"+member,
		"add "+member+" as a learner", "promote "+member)
}

// awaitReplaced waits until a member of three has another ID, and the cluster is
// whole: the others are the same.
func (w *world) awaitReplaced(member string, members map[string]string, sizes *memberWatch) {
	w.Helper()
	from := w.mark
	w.eventually(member+" to be replaced", changeLimit, func(context.Context) (bool, error) {
		now := w.record().Members
		return len(now) == 3 && now[member] != members[member], nil
	})
	w.mark = from
	acted := false
	w.await("the cluster to be whole again", rollLimit, func(l lab.LogLine) bool {
		acted = acted || l.Msg == "step done"
		return acted && l.Msg == "cluster is up to date" && l.Cluster == w.key()
	})
	for other, id := range w.record().Members {
		if other != member && id != members[other] {
			w.Errorf("%s was %s and is %s", other, members[other], id)
		}
	}
	if sizes != nil {
		w.expectSizes(sizes, "3", "2", "2+1", "3")
	}
}

// expectOrder wants steps whose actions have these parts, in this order.
func (w *world) expectOrder(from int, parts ...string) {
	w.Helper()
	var actions []string
	for _, l := range w.lines(from, lab.Step()) {
		actions = append(actions, l.Action)
	}
	rest := actions
	for _, part := range parts {
		n := slices.IndexFunc(rest, func(action string) bool { return strings.Contains(action, part) })
		if n < 0 {
			w.Errorf("no step %q in its place, the steps were\n  %s", part, strings.Join(actions, "\n  "))
			return
		}
		rest = rest[n+1:]
	}
}

// TestMajorityLost loses two of three volumes: what a cluster
// made of the rest would have lost is unknown, so quorate tells what a person can do,
// and does nothing.
func TestMajorityLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "majority")
	want := spec{version: "3.6.16", replicas: 3, more: soonRepaired}
	w.create(want)
	before, pods := w.record(), w.uids()
	w.mark = w.daemon.Log.Mark()
	from := w.mark

	// 84, 88: more than one candidate, and no quorum.
	w.loseVolume("orders-1")
	w.loseVolume("orders-2")
	w.awaitGuarded("orders-1", "orders-2")
	hold := w.await("a hold about the quorum", holdLimit, func(l lab.LogLine) bool {
		return l.Msg == "on hold" && strings.Contains(l.Hold(), "quorum")
	})
	t.Logf("quorate says: %s", hold.Hold())
	time.Sleep(3 * quiet) // longer than the grace
	w.expectNoStep(from)
	after := w.record()
	if len(after.Members) != 3 || after.ClusterID != before.ClusterID {
		t.Errorf("the record has members %v of cluster %s", after.Members, after.ClusterID)
	}
	w.expectNoOther(pods, w.uids(), "orders-1", "orders-2")
}

// awaitAnother waits for a member to have another pod than the one with the UID, ready.
func (w *world) awaitAnother(member, uid string) {
	w.Helper()
	w.eventually(member+" to be back", rollLimit, func(ctx context.Context) (bool, error) {
		pod, err := w.cluster.Client.CoreV1().Pods(w.namespace).Get(ctx, member, metav1.GetOptions{})
		return err == nil && string(pod.UID) != uid && lab.Ready(pod), nil
	})
}
