package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/test/lab"
)

// TestTwoOfFiveLost loses two volumes of five: quorate asks first, because that has
// mostly one cause, and replaces one after the other when Git says so (83, 88).
func TestTwoOfFiveLost(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "five")
	want := spec{version: "3.6.16", replicas: 5, backup: "Required", more: soonRepaired}
	w.create(want)
	history, sizes, before, pods := w.recordHistory("history/"), w.watchMembers(), w.record(), w.uids()

	w.mark = w.daemon.Log.Mark()
	from := w.mark
	w.loseVolume("orders-1")
	w.loseVolume("orders-3")
	hold := w.awaitHold("Unhealthy", rollLimit, "orders-1 has lost its data", "orders-3 has lost its data", "two members are lost at once", "spec.repair.mode to OneByOne")
	t.Logf("quorate says: %s", hold.Hold())
	time.Sleep(2 * quiet) // longer than the grace
	for _, l := range w.lines(w.mark, lab.Step()) {
		t.Errorf("quorate acted: %s", l.Raw)
	}
	w.expectProgress(history)

	want.more = soonRepaired + "    mode: OneByOne\n"
	w.apply("Replace them", want)
	w.expectSizes(sizes, "5", "4", "4+1", "5", "4", "4+1", "5")
	after := w.record()
	for member, id := range after.Members {
		if lost := member == "orders-1" || member == "orders-3"; lost == (before.Members[member] == id) {
			t.Errorf("%s was %s and is %s", member, before.Members[member], id)
		}
	}
	w.expectOrder(from, "back up", "remove orders-3", "promote orders-3", "back up", "remove orders-1", "promote orders-1")
	w.expectNoOther(pods, w.uids(), "orders-1", "orders-3")
	w.expectVersion(5, want.version)
	w.expectRecord(5)
	w.checkHistory(history)
}

// TestLearnerTooLate adds a member whose pod Kubernetes does not create: the learner
// is removed when its time is over, the next try waits, and Git can change its mind
// at any moment (43). The times are minutes, so the test moves them back.
func TestLearnerTooLate(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "late")
	want := spec{version: "3.6.16", replicas: 1}
	w.create(want)
	history, sizes := w.recordHistory("history/"), w.watchMembers()
	w.allowPods("1")

	want.replicas = 2
	w.commit("Add a member", want)
	w.awaitHold("Waiting", rollLimit, "orders-1 joins: its pod does not exist yet")
	w.editRecord(func(r *record.Record) { r.Joining.Since = r.Joining.Since.Add(-time.Hour) })
	w.awaitHold("Stopped", rollLimit, "orders-1 could not join, 1 time in a row", "check its pod and its node")
	w.expectSizes(sizes, "1", "1+1", "1")
	w.expectProgress(history)

	// The second try, which Git abandons.
	w.editRecord(func(r *record.Record) { r.FailedJoin.At = r.FailedJoin.At.Add(-time.Hour) })
	w.awaitHold("Waiting", rollLimit, "orders-1 joins: its pod does not exist yet")
	want.replicas = 1
	w.apply("Go without it", want)
	w.expectSizes(sizes, "1", "1+1", "1")
	w.expectProgress(history)

	w.must(w.cluster.Client.CoreV1().ResourceQuotas(w.namespace).Delete(t.Context(), "pods", metav1.DeleteOptions{}))
	want.replicas = 3
	w.commit("Add two", want)
	w.eventually("the cluster to grow", changeLimit, func(context.Context) (bool, error) {
		if r := w.record(); r.FailedJoin != nil && time.Since(r.FailedJoin.At) < time.Hour {
			w.editRecord(func(r *record.Record) { r.FailedJoin.At = r.FailedJoin.At.Add(-time.Hour) })
		}
		return len(w.record().Members) == 3, nil
	})
	w.awaitDone(changeLimit)
	w.expectSizes(sizes, "1", "1+1", "2", "2+1", "3")
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	w.checkHistory(history)
}

// allowPods lets the namespace have no more pods than that.
func (w *world) allowPods(most string) {
	w.Helper()
	_, err := w.cluster.Client.CoreV1().ResourceQuotas(w.namespace).Create(w.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(most)}},
	}, metav1.CreateOptions{})
	w.must(err)
}

// editRecord changes the cluster's record behind quorate's back, as only time does.
func (w *world) editRecord(change func(*record.Record)) {
	w.Helper()
	maps := w.cluster.Client.CoreV1().ConfigMaps(w.namespace)
	cm, err := maps.Get(w.Context(), name+"-record", metav1.GetOptions{})
	w.must(err)
	rec, err := record.Read(cm)
	w.must(err)
	change(&rec)
	text, err := json.Marshal(rec)
	w.must(err)
	cm.Data[guard.RecordFile] = string(text)
	_, err = maps.Update(w.Context(), cm, metav1.UpdateOptions{})
	w.must(err)
}
