package reconciler_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
)

// orphan deletes the StatefulSet, and leaves its pods.
func orphan(w *reconcilertest.World) {
	how := metav1.DeletePropagationOrphan
	if err := w.API.AppsV1().StatefulSets("shop").Delete(w.Context(), "orders", metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		w.Fatal(err)
	}
}

// 306: a record from before the members that joined last, restored from a backup of the Kubernetes
// API: no pod of a member stops, and its budget does not let another stop it, whatever it says.
func TestAnOlderRecordTakesNoPodAway(t *testing.T) {
	const unknown, other = "etcd lists orders-1 (member a1), which the record does not know: the record is older than the cluster", "the members say that they are cluster c1, the record says c0"
	for name, test := range map[string]struct {
		change     func(*reconcilertest.World)
		rule, part string
	}{
		"as it was": {func(*reconcilertest.World) {}, "resize", unknown},
		"of another cluster ID": {func(w *reconcilertest.World) {
			w.Notes(func(r *record.Record) { r.ClusterID = "c0" })
		}, "resize", other},
		"of another cluster ID, without a StatefulSet": {func(w *reconcilertest.World) {
			w.Notes(func(r *record.Record) { r.ClusterID = "c0" })
			orphan(w)
		}, "drift", other},
		"beside a StatefulSet that was changed": {func(w *reconcilertest.World) {
			w.EditSet(func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 30 })
		}, "resize", unknown},
		"beside a budget that was deleted": {func(w *reconcilertest.World) {
			if err := w.API.PolicyV1().PodDisruptionBudgets("shop").Delete(w.Context(), "orders", metav1.DeleteOptions{}); err != nil {
				w.Fatal(err)
			}
		}, "resize", unknown},
		"without a StatefulSet": {orphan, "drift", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Notes(func(r *record.Record) {
					delete(r.Members, "orders-1")
					delete(r.Members, "orders-2")
				})
				test.change(w)
				w.Settle()
				for range 20 {
					_, _ = w.Pass()
					for w.Control() {
					}
					w.Settle()
				}
				for _, member := range []string{"orders-0", "orders-1", "orders-2"} {
					if w.Pod(member) == nil {
						t.Errorf("%s is gone", member)
					}
				}
				budget, err := w.API.PolicyV1().PodDisruptionBudgets("shop").Get(w.Context(), "orders", metav1.GetOptions{})
				if err == nil && budget.Spec.MinAvailable.IntValue() < 2 {
					t.Errorf("%s may be available at the least", budget.Spec.MinAvailable)
				}
				w.WantHold(decision.Refused, test.rule, test.part)
			})
		})
	}
}
