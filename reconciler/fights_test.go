package reconciler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/schema"
)

// 50: Git wins, and who lost is told in an Event and in a metric.
func TestCorrectionSaysWho(t *testing.T) {
	formed(t, func(w *world) {
		w.scale(5, "kubectl-edit")
		w.mustPass()
		if n := *w.set().Spec.Replicas; n != 3 {
			t.Errorf("%d replicas", n)
		}
		wantMetrics(t, w.registry, map[string]float64{"quorate_drift_corrections_total{cluster=orders,kind=StatefulSet,manager=kubectl-edit}": 1})
		told := slices.DeleteFunc(w.drainEvents(), func(e string) bool { return !strings.HasPrefix(e, "Warning DriftCorrected ") })
		if len(told) != 1 || !strings.Contains(told[0], "StatefulSet orders: kubectl-edit had changed .spec.replicas; Git wins") {
			t.Errorf("Events %q", told)
		}
	})
}

// A budget follows the number of members: that is no correction of anybody.
func TestWhatFollowsFromTheMembersCorrectsNobody(t *testing.T) {
	formed(t, func(w *world) {
		budget := action.ApplyObject{ObjectKind: "PodDisruptionBudget", Name: "orders"}
		for own, want := range map[bool]string{true: "", false: "somebody had changed .spec.minAvailable"} {
			w.drainEvents()
			v := w.look()
			v.drifts["PodDisruptionBudget/orders"] = drift.Drift{Fields: []string{".spec.minAvailable"}, Own: own}
			w.r.reporter.ReportCorrection(v, budget)
			told := strings.Join(w.drainEvents(), "\n")
			if strings.Contains(told, "DriftCorrected") != (want != "") || !strings.Contains(told, want) {
				t.Errorf("own %t: Events %q", own, told)
			}
		}
	})
}

// A deleted object comes back; Kubernetes does not say who deleted it.
func TestDeletedServiceComesBackAndIsCounted(t *testing.T) {
	formed(t, func(w *world) {
		if err := w.api.CoreV1().Services("shop").Delete(w.Context(), "orders-client", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.mustPass()
		wantMetrics(t, w.registry, map[string]float64{"quorate_drift_corrections_total{cluster=orders,kind=Service,manager=unknown}": 1})
		told := slices.DeleteFunc(w.drainEvents(), func(e string) bool { return !strings.HasPrefix(e, "Warning DriftCorrected ") })
		if len(told) != 1 || !strings.Contains(told[0], "Service orders-client: somebody had deleted it; Git wins") {
			t.Errorf("Events %q", told)
		}
	})
}

// 85: a StatefulSet that is gone cannot bear an Event: the record does.
func TestDeletedSetIsToldOnTheRecord(t *testing.T) {
	formed(t, func(w *world) {
		if err := w.api.AppsV1().StatefulSets("shop").Delete(w.Context(), "orders", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.mustPass()
		wantMetrics(t, w.registry, map[string]float64{"quorate_drift_corrections_total{cluster=orders,kind=StatefulSet,manager=unknown}": 1})
		if told := strings.Join(w.drainEvents(), "\n"); !strings.Contains(told, "Warning DriftCorrected StatefulSet orders: somebody had deleted it; Git wins") {
			t.Errorf("Events %s", told)
		}
	})
}

// What Git deleted and brings back, nobody has deleted beside it.
func TestRevivedClusterIsNoCorrection(t *testing.T) {
	formed(t, func(w *world) {
		w.wish.Spec.State = schema.StateDeleted
		w.untilIdle()
		w.wish.Spec.State = schema.StateRunning
		w.untilIdle()
		for series := range gather(t, w.registry) {
			if strings.HasPrefix(series, "quorate_drift_corrections_total") {
				t.Errorf("%s", series)
			}
		}
	})
}

// What a commit changes is nobody's drift.
func TestCommitIsNoCorrection(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"), placedLabels)
		w.untilIdle()
		for series := range gather(t, w.registry) {
			if strings.HasPrefix(series, "quorate_drift_corrections_total") {
				t.Errorf("%s", series)
			}
		}
	}, clustertest.SetVersion("3.6.12"))
}

// 50: somebody who undoes what quorate does is left alone longer each time, and
// the hold names them.
func TestFightIsReportedAsAHold(t *testing.T) {
	formed(t, func(w *world) {
		for range 3 {
			w.scale(5, "autoscaler")
			w.mustPass()
		}
		w.api.ClearActions()
		for range 20 {
			w.scale(5, "autoscaler")
			w.api.ClearActions()
			w.mustPass()
			if writes := w.api.writes(); len(writes) > 0 {
				t.Fatalf("writes %q in the truce", writes)
			}
			time.Sleep(time.Second)
		}
		holds := w.lines("hold", "message")
		if len(holds) != 1 || !strings.Contains(holds[0], "StatefulSet orders: .spec.replicas was put back 3 times and changed again by autoscaler each time") {
			t.Errorf("holds %q", holds)
		}
		wantMetrics(t, w.registry, map[string]float64{
			"quorate_drift_corrections_total{cluster=orders,kind=StatefulSet,manager=autoscaler}": 3,
			"quorate_cluster_hold{cluster=orders,kind=Waiting}":                                   1,
		})
		time.Sleep(drift.TruceFirst)
		w.mustPass()
		if n := *w.set().Spec.Replicas; n != 3 {
			t.Errorf("%d replicas after the truce", n)
		}
	})
}

// Everybody may call themselves what they like: the label stays bounded.
func TestManagersAreBounded(t *testing.T) {
	formed(t, func(w *world) {
		for i := range 60 {
			w.r.reporter.metrics.Corrected(w.wish, "Service", strings.Repeat("m", i+1))
		}
		n := 0
		for series := range gather(t, w.registry) {
			if strings.HasPrefix(series, "quorate_drift_corrections_total") {
				n++
			}
		}
		if n != maxManagers+1 {
			t.Errorf("%d series", n)
		}
		wantMetrics(t, w.registry, map[string]float64{"quorate_drift_corrections_total{cluster=orders,kind=Service,manager=other}": 60 - maxManagers})
	})
}

// placedLabels adds a label to every object.
func placedLabels(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} }
