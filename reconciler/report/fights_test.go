package report_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
)

// 50: Git wins, and who lost is told in an Event and in a metric.
func TestCorrectionSaysWho(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Scale(5, "kubectl-edit")
		w.MustPass()
		if n := *w.Set().Spec.Replicas; n != 3 {
			t.Errorf("%d replicas", n)
		}
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_drift_corrections_total{etcd_cluster=orders,kind=StatefulSet}": 1})
		told := slices.DeleteFunc(w.DrainEvents(), func(e string) bool { return !strings.HasPrefix(e, "Warning DriftCorrected ") })
		if len(told) != 1 || !strings.Contains(told[0], "StatefulSet orders: kubectl-edit had changed .spec.replicas (5, wanted 3); Git wins") {
			t.Errorf("Events %q", told)
		}
	})
}

// A budget follows the number of members: that is no correction of anybody.
func TestWhatFollowsFromTheMembersCorrectsNobody(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		budget := action.ApplyObject{ObjectKind: "PodDisruptionBudget", Name: "orders"}
		for own, want := range map[bool]string{true: "", false: "an unknown writer had changed .spec.minAvailable"} {
			w.DrainEvents()
			v := w.Look()
			v.Drifts[observe.ObjectName{Kind: "PodDisruptionBudget", Name: "orders"}] = drift.Drift{Fields: []string{".spec.minAvailable"}, Changes: []drift.Change{{Path: ".spec.minAvailable"}}, Own: own}
			w.R.Reporter.ReportCorrection(v, budget)
			told := strings.Join(w.DrainEvents(), "\n")
			if strings.Contains(told, "DriftCorrected") != (want != "") || !strings.Contains(told, want) {
				t.Errorf("own %t: Events %q", own, told)
			}
		}
	})
}

// A deleted object comes back; Kubernetes does not say who deleted it.
func TestDeletedServiceComesBackAndIsCounted(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if err := w.API.CoreV1().Services("shop").Delete(w.Context(), "orders-client", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_drift_corrections_total{etcd_cluster=orders,kind=Service}": 1})
		told := slices.DeleteFunc(w.DrainEvents(), func(e string) bool { return !strings.HasPrefix(e, "Warning DriftCorrected ") })
		if len(told) != 1 || !strings.Contains(told[0], "Service orders-client: an unknown writer had deleted it; Git wins") {
			t.Errorf("Events %q", told)
		}
	})
}

// 85: a StatefulSet that is gone cannot bear an Event: the record does.
func TestDeletedSetIsToldOnTheRecord(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if err := w.API.AppsV1().StatefulSets("shop").Delete(w.Context(), "orders", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_drift_corrections_total{etcd_cluster=orders,kind=StatefulSet}": 1})
		if told := strings.Join(w.DrainEvents(), "\n"); !strings.Contains(told, "Warning DriftCorrected StatefulSet orders: an unknown writer had deleted it; Git wins") {
			t.Errorf("Events %s", told)
		}
	})
}

// What Git deleted and brings back, nobody has deleted beside it.
func TestRevivedClusterIsNoCorrection(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Wish.Spec.State = schema.StateDeleted
		w.UntilIdle()
		w.Wish.Spec.State = schema.StateRunning
		w.UntilIdle()
		for series, n := range reconcilertest.Gather(t, w.Registry) {
			if strings.HasPrefix(series, "quorate_drift_corrections_total") && n != 0 || strings.HasPrefix(series, "quorate_drift_last") {
				t.Errorf("%s %v", series, n)
			}
		}
	})
}

// What a commit changes is nobody's drift.
func TestCommitIsNoCorrection(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"), report.PlacedLabels)
		w.UntilIdle()
		for series, n := range reconcilertest.Gather(t, w.Registry) {
			if strings.HasPrefix(series, "quorate_drift_corrections_total") && n != 0 || strings.HasPrefix(series, "quorate_drift_last") {
				t.Errorf("%s %v", series, n)
			}
		}
	}, clustertest.SetVersion("3.6.12"))
}

// 50: somebody who undoes what quorate does is left alone longer each time, and
// the hold names them.
func TestFightIsReportedAsAHold(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		for range 3 {
			w.Scale(5, "autoscaler")
			w.MustPass()
			time.Sleep(time.Second) // what does not last is not put back at once
		}
		w.API.ClearActions()
		for range 20 {
			w.Scale(5, "autoscaler")
			w.API.ClearActions()
			w.MustPass()
			if writes := w.API.Writes(); len(writes) > 0 {
				t.Fatalf("writes %q in the truce", writes)
			}
			time.Sleep(time.Second)
		}
		holds := w.Lines("on hold", "reason")
		if len(holds) != 1 || !strings.Contains(holds[0], "StatefulSet orders: .spec.replicas was put back again and again, and changed again by autoscaler each time (3 times; ") {
			t.Errorf("holds %q", holds)
		}
		s := w.Status(schema.KindCluster, "orders").Status.Cluster.Drift
		if len(s) != 1 || s[0].Fight != "autoscaler changes .spec.replicas again each time that it is put back" || s[0].Since != "" || !strings.HasPrefix(s[0].Correction, "tried again at 2000-01-01T") {
			t.Errorf("the status is %+v", s)
		}
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_drift_corrections_total{etcd_cluster=orders,kind=StatefulSet}": 3,
			"quorate_cluster_hold{etcd_cluster=orders,kind=Waiting}":                1,
		})
		time.Sleep(drift.TruceFirst)
		w.MustPass()
		if n := *w.Set().Spec.Replicas; n != 3 {
			t.Errorf("%d replicas after the truce", n)
		}
	})
}

// Everybody may call themselves what they like: the label stays bounded.
func TestManagersAreBounded(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		for i := range 60 {
			w.R.Reporter.Metrics.Corrected(w.Wish, "Service", strings.Repeat("m", i+1))
		}
		n := 0
		for series := range reconcilertest.Gather(t, w.Registry) {
			if strings.HasPrefix(series, "quorate_drift_last_timestamp_seconds") {
				n++
			}
		}
		if n != report.MaxManagers+1 {
			t.Errorf("%d series", n)
		}
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_drift_corrections_total{etcd_cluster=orders,kind=Service}":                    60,
			"quorate_drift_last_timestamp_seconds{etcd_cluster=orders,kind=Service,manager=other}": 1000,
		})
	})
}
