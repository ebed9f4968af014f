package reconciler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

func meddling(fields ...string) Drift { return Drift{Fields: fields, Manager: "meddler"} }

// 50: three times within ten minutes is a fight; then each truce is twice as long
// as the one before, up to a bound.
func TestFightBacksOff(t *testing.T) {
	var f fights
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var truces []time.Duration
	for range 8 {
		f.corrected("shop/orders", "Service orders", meddling("spec.type"), now)
		if fight := f.find("shop/orders", "Service orders", meddling("spec.type")); fight != nil {
			truces = append(truces, fight.Until.Sub(now))
			now = fight.Until
		}
		now = now.Add(time.Second)
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 16 * time.Minute}
	if !slices.Equal(truces, want) {
		t.Errorf("truces %v, want %v", truces, want)
	}
}

func TestWhatIsNoFight(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, correct := range map[string]func(f *fights){
		"now and then": func(f *fights) {
			for i := range 10 {
				f.corrected("shop/orders", "Service orders", meddling("spec.type"), start.Add(time.Duration(i)*6*time.Minute))
			}
		},
		"twice": func(f *fights) {
			f.corrected("shop/orders", "Service orders", meddling("spec.type"), start)
			f.corrected("shop/orders", "Service orders", meddling("spec.type"), start)
		},
		"several fields": func(f *fights) {
			for _, field := range []string{"a", "b", "c", "spec.type"} {
				f.corrected("shop/orders", "Service orders", meddling(field), start)
			}
		},
		"several objects": func(f *fights) {
			for _, object := range []string{"Service a", "Service b", "Service orders"} {
				f.corrected("shop/orders", object, meddling("spec.type"), start)
			}
		},
		"several managers": func(f *fights) {
			for _, manager := range []string{"kubectl-edit", "helm", "meddler"} {
				f.corrected("shop/orders", "Service orders", Drift{Fields: []string{"spec.type"}, Manager: manager}, start)
			}
		},
		"several clusters": func(f *fights) {
			for _, cluster := range []string{"shop/a", "shop/b", "shop/orders"} {
				f.corrected(cluster, "Service orders", meddling("spec.type"), start)
			}
		},
		"long ago": func(f *fights) {
			for range 3 {
				f.corrected("shop/orders", "Service orders", meddling("spec.type"), start)
			}
			f.corrected("shop/orders", "Service orders", meddling("spec.type"), start.Add(12*time.Minute))
		},
		"a forgotten cluster": func(f *fights) {
			for range 5 {
				f.corrected("shop/orders", "Service orders", meddling("spec.type"), start)
			}
			f.forget("shop/orders")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var f fights
			correct(&f)
			if fight := f.find("shop/orders", "Service orders", meddling("spec.type")); fight != nil {
				t.Errorf("got %+v", fight)
			}
		})
	}
}

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
		budget := plan.ApplyObject{Kind: "PodDisruptionBudget", Name: "orders"}
		for own, want := range map[bool]string{true: "", false: "somebody had changed .spec.minAvailable"} {
			w.drainEvents()
			v := w.look()
			v.drifts["PodDisruptionBudget/orders"] = Drift{Fields: []string{".spec.minAvailable"}, Own: own}
			w.r.reportCorrection(v, budget)
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
		w.commit(setVersion("3.6.16"), placedLabels)
		w.untilIdle()
		for series := range gather(t, w.registry) {
			if strings.HasPrefix(series, "quorate_drift_corrections_total") {
				t.Errorf("%s", series)
			}
		}
	}, setVersion("3.6.12"))
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
		time.Sleep(truceFirst)
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
			w.r.metrics.corrected(w.wish, "Service", strings.Repeat("m", i+1))
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
