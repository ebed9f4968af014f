package reconciler_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestFailedPassesAreCounted(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.API.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server is away")
		})
		w.R.Next(w.Context())
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_pass_failures_total{etcd_cluster=orders}": 1})
		if n, err := testutil.GatherAndCount(w.Registry, "quorate_pass_duration_seconds"); n != 1 || err != nil {
			t.Errorf("%d histograms, %v", n, err)
		}
	})
}

// 139: two looks between which nothing has happened give the same bytes, whatever
// the members measure.
func TestStatusSaysNothingThatTicks(t *testing.T) {
	away := func(member string) func(w *reconcilertest.World) {
		return func(w *reconcilertest.World) {
			w.Etcd.Version = func(m string) string {
				if m == member {
					return ""
				}
				return w.VersionOf(m)
			}
		}
	}
	for name, spoil := range map[string]func(w *reconcilertest.World){
		"at rest":       func(*reconcilertest.World) {},
		"a member away": away("orders-1"),
		"a quorum away": func(w *reconcilertest.World) { w.Etcd.Version = func(string) string { return "" } },
		"an alarm":      func(*reconcilertest.World) {},
		"another wish":  func(w *reconcilertest.World) { w.Commit(clustertest.SetReplicas(2)) },
		"only observing": func(w *reconcilertest.World) {
			w.Commit(func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve }, clustertest.SetVersion("3.6.17"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Restless()
				spoil(w)
				w.R.SetDesired([]desired.Cluster{w.Wish})
				look := func() {
					v, p, err := w.R.Decide(w.Context(), w.Wish)
					if err != nil {
						t.Fatal(err)
					}
					w.R.Reporter.Planned(v, p, nil)
				}
				look()
				before := w.StatusYAML()
				for range 3 {
					time.Sleep(time.Minute)
					look()
				}
				if after := w.StatusYAML(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
			})
		})
	}
}

// A failure is shown when it lasts, in the same words while only numbers differ, and
// goes with the first pass that succeeds.
func TestStatusOfFailures(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		w.R.Reporter.Failed(w.Wish, errors.New("back up: request 1: no such bucket"))
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
		w.R.Reporter.Failed(w.Wish, errors.New("back up: request 2: no such bucket"))
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Failed")
		before := w.StatusYAML()
		w.R.Reporter.Failed(w.Wish, errors.New("back up: request 3: no such bucket"))
		w.MustPass() // looks, and would fail again later
		if after := w.StatusYAML(); after != before || !strings.Contains(after, "request 1") {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		w.R.Next(w.Context())
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
	})
}

// A step that did not disrupt the cluster again when it was decided, and does when it
// is looked at again, has no place among those that may: it is decided again.
func TestStepThatBeginsMeanwhileIsDecidedAnew(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
		w.Until(func(p decision.Plan) bool {
			if len(p.Steps) == 0 {
				return false
			}
			_, backup := p.Steps[0].Action.(action.TakeBackup)
			return !backup
		})
		before, p, err := w.R.Decide(w.Context(), w.Wish)
		if err != nil {
			t.Fatal(err)
		}
		if !w.R.TakesPlace(before, p.Steps[0].Action) {
			t.Fatalf("%s does not begin", p.Steps[0])
		}
		w.API.ClearActions()
		stale := *before
		stale.Observed.Set = nil // the caches do not show it yet
		if w.R.TakesPlace(&stale, p.Steps[0].Action) {
			t.Fatalf("%s begins", p.Steps[0])
		}
		if err := w.R.CarryOut(w.Context(), &stale, p.Steps[0]); !errors.Is(err, state.ErrChanged) || len(w.API.Writes()) > 0 {
			t.Errorf("%v, and it wrote %q", err, w.API.Writes())
		}
	})
}

// A cluster that Git no longer names when its turn comes is not looked at.
func TestClusterThatIsNoLongerNamedIsLeftAlone(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.R.SetDesired(nil)
		synctest.Wait()
		w.API.ClearActions()
		w.Log.Reset()
		if !w.R.Next(w.Context()) || len(w.API.Requests()) > 0 || w.Log.Len() > 0 {
			t.Errorf("asked for %q, and said %s", w.API.Requests(), w.Log)
		}
	})
}

// I4: a record that the caches do not show yet is no reason to make another.
func TestRecordThatTheCachesMissIsNotMadeAgain(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		v, p, err := w.R.Decide(w.Context(), w.Wish)
		if err != nil {
			t.Fatal(err)
		}
		w.MustDo(action.CreateRecord{})
		before := w.Record()
		w.API.ClearActions()
		if err := w.R.CarryOut(w.Context(), v, p.Steps[0]); !errors.Is(err, state.ErrChanged) {
			t.Errorf("error %v", err)
		}
		if writes := w.API.Writes(); len(writes) > 0 || w.Record().Token != before.Token {
			t.Errorf("writes %q", writes)
		}
	})
}

// An API server that cannot be asked again is a reason not to act.
func TestNoActionWithoutFreshData(t *testing.T) {
	for _, resource := range []string{"configmaps", "statefulsets", "pods"} {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			w.Commit(clustertest.SetVersion("3.6.16"))
			v, p, err := w.R.Decide(w.Context(), w.Wish)
			if err != nil || len(p.Steps) == 0 {
				t.Fatalf("plan %s, %v", p.Text(), err)
			}
			w.API.PrependReactor("*", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.GetVerb() == "get" || a.GetVerb() == "list", nil, errors.New("the API server is away")
			})
			if err := w.R.CarryOut(w.Context(), v, p.Steps[0]); err == nil || !strings.Contains(err.Error(), "away") {
				t.Errorf("%s: error %v", resource, err)
			}
			if len(w.Etcd.Calls) > 0 {
				t.Errorf("%s: calls %q", resource, w.Etcd.Calls)
			}
		}, clustertest.SetVersion("3.6.12"))
	}
}

// stale decides on a restart, changes the world behind that decision, and wants
// the restart not to be applied.
func stale(t *testing.T, behind func(w *reconcilertest.World)) {
	t.Helper()
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Until(func(p decision.Plan) bool {
			return p.Hold == nil && len(p.Steps) > 0 && strings.HasPrefix(p.Steps[0].Action.String(), "restart orders-2")
		})
		v, p, err := w.R.Decide(w.Context(), w.Wish)
		if err != nil || len(p.Steps) == 0 {
			t.Fatalf("plan %s, %v", p.Text(), err)
		}
		// The view is older than what happens now, as a cache would be.
		behind(w)
		w.API.ClearActions()
		if err := w.R.CarryOut(w.Context(), v, p.Steps[0]); !errors.Is(err, state.ErrChanged) {
			t.Errorf("error %v, want %v", err, state.ErrChanged)
		}
		if writes := w.API.Writes(); len(writes) > 0 {
			t.Errorf("writes %q", writes)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I3: what the caches say is not acted upon when the API server says otherwise.
func TestStaleCacheActsOnNothing(t *testing.T) {
	t.Run("the pod was replaced", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) { w.DeletePod("orders-2"); w.Settle() })
	})
	t.Run("another pod is gone", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) { w.DeletePod("orders-0") })
	})
	t.Run("another pod is not ready", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) {
			pod := w.Pod("orders-1")
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
			w.Put(reconcilertest.PodsResource(), pod)
		})
	})
	t.Run("another pod is terminating", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) {
			pod := w.Pod("orders-1")
			pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
			w.Put(reconcilertest.PodsResource(), pod)
		})
	})
	t.Run("the partition was lowered", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) {
			set := w.Set()
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(0))
			w.Put(reconcilertest.SetsResource(), set)
		})
	})
	t.Run("the StatefulSet was made anew", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) {
			set := w.Set()
			set.UID = "another"
			w.Put(reconcilertest.SetsResource(), set)
		})
	})
	t.Run("the StatefulSet is gone", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) {
			if err := w.API.Tracker().Delete(reconcilertest.SetsResource(), "shop", "orders"); err != nil {
				w.Fatal(err)
			}
		})
	})
	t.Run("the record is gone", func(t *testing.T) {
		stale(t, func(w *reconcilertest.World) {
			if err := w.API.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), "shop", "orders-record"); err != nil {
				w.Fatal(err)
			}
		})
	})
	t.Run("the record is damaged", func(t *testing.T) { stale(t, reconcilertest.Damage) })
}
