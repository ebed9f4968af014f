package reconciler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

var budgets = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")

func budgetOf(w *reconcilertest.World) *policyv1.PodDisruptionBudget {
	w.Helper()
	object, err := w.API.Tracker().Get(budgets, "shop", "orders")
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if err != nil || !ok {
		w.Fatalf("%T: %v", object, err)
	}
	return budget
}

// 390: the budget keeps every pod from the first restart of a roll to the last, and is written
// twice for that, which nobody takes for a drift, also where drift is left as it is.
func TestTheBudgetIsClosedOnceForAWholeRoll(t *testing.T) {
	for _, mode := range []schema.DriftMode{schema.DriftCorrect, schema.DriftDetect} {
		t.Run(string(mode), func(t *testing.T) {
			reconcilertest.Formed(t, rollBehindItsBudget, clustertest.SetVersion("3.6.12"), func(c *schema.EtcdCluster) { c.Spec.Drift.Mode = mode })
		})
	}
}

func rollBehindItsBudget(w *reconcilertest.World) {
	w.Commit(clustertest.SetVersion("3.6.16"))
	w.Until(func(p decision.Plan) bool {
		if stay := budgetOf(w).Spec.MinAvailable.IntVal; stay != 3 && len(p.Steps) > 0 && strings.HasPrefix(p.Steps[0].String(), "restart") {
			w.Errorf("%d must stay, and next is: %s", stay, p.Steps[0])
		}
		return p.Idle()
	})
	steps := slices.DeleteFunc(w.Lines("step started", "action"), func(a string) bool { return strings.HasPrefix(a, "move the leader") })
	want := []string{
		"start the roll 3.6.12 → 3.6.16", "apply PodDisruptionBudget orders",
		"restart orders-2 3.6.12 → 3.6.16", "restart orders-1 3.6.12 → 3.6.16", "restart orders-0 3.6.12 → 3.6.16",
		"end the roll", "apply PodDisruptionBudget orders", "record that 3.6.16 is applied",
	}
	if !slices.Equal(steps[1:], want) {
		w.Errorf("after the backup it does %q, want %q", steps[1:], want)
	}
	if stay := budgetOf(w).Spec.MinAvailable.IntVal; stay != 2 {
		w.Errorf("after the roll %d must stay", stay)
	}
	if drifts := w.Lines("drift corrected", "object"); len(drifts) > 0 {
		w.Errorf("told as drift: %q", drifts)
	}
}

// 391: of an eviction that was granted before the budget was closed, the caches may know nothing:
// it is read before a member stops, and none stops until it has come to its end.
func TestNoMemberStopsWhileAnEvictionIsOnItsWay(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Until(func(p decision.Plan) bool {
			return len(p.Steps) > 0 && strings.HasPrefix(p.Steps[0].String(), "restart")
		})
		granted := budgetOf(w).DeepCopy()
		granted.Status.DisruptedPods = map[string]metav1.Time{"orders-1": metav1.Now()}
		lags := true
		w.API.PrependReactor("get", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) { return lags, granted, nil })
		set := w.Set()
		if _, err := w.Pass(); !errors.Is(err, state.ErrChanged) {
			w.Errorf("with caches that lag behind: %v", err)
		}
		lags = false
		w.Put(budgets, granted)
		time.Sleep(time.Minute) // what has failed is tried again later
		p := w.Until(func(p decision.Plan) bool { return p.Hold != nil && p.Hold.Rule == "member" })
		if !strings.Contains(p.Hold.Message, "orders-1 is shutting down") || w.Set().ResourceVersion != set.ResourceVersion {
			w.Errorf("%s", p.Text())
		}
		w.UntilIdle()
	}, clustertest.SetVersion("3.6.12"))
}

// 393: while a roll waits for its window nodes are drained, and before it goes on the budget keeps
// every pod again.
func TestNodesAreDrainedWhileARollWaitsForItsWindow(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Until(func(decision.Plan) bool { return observe.Partition(w.Set()) == 2 })
		if stay := budgetOf(w).Spec.MinAvailable.IntVal; stay != 3 {
			w.Errorf("in the midst of the roll %d must stay", stay)
		}
		w.Commit(func(c *schema.EtcdCluster) {
			c.Spec.Maintenance = []schema.MaintenanceWindow{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC"}}
		})
		w.Until(func(p decision.Plan) bool { return p.Hold != nil && p.Hold.Rule == "window" })
		if stay := budgetOf(w).Spec.MinAvailable.IntVal; stay != 2 {
			w.Errorf("outside of the window %d must stay", stay)
		}
		time.Sleep(2*time.Hour + 10*time.Minute)
		w.Until(func(decision.Plan) bool { return observe.Partition(w.Set()) == 1 })
		if stay := budgetOf(w).Spec.MinAvailable.IntVal; stay != 3 {
			w.Errorf("inside of the window %d must stay", stay)
		}
		w.UntilIdle()
	}, clustertest.SetVersion("3.6.12"))
}

// 400: a node is drained that the member which restarts next could not come back to, as the roll
// waits for that; once the node takes pods again, the budget keeps every pod before the roll goes on.
func TestANodeIsDrainedThatARollWaitsFor(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		node := func(cordoned bool) {
			w.Put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "host-1"}}, Spec: corev1.NodeSpec{Unschedulable: cordoned},
			})
		}
		reconcilertest.Tie(w, corev1.ClaimBound, "host-1")
		pod := w.Pod("orders-1")
		pod.Spec.NodeName = "n1"
		w.Put(reconcilertest.PodsResource(), pod)
		node(false)
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Until(func(decision.Plan) bool { return observe.Partition(w.Set()) == 2 })
		node(true)
		w.Until(func(p decision.Plan) bool {
			return p.Hold != nil && strings.Contains(p.Hold.Message, "orders-1 could not come back")
		})
		for range 5 {
			w.MustPass()
		}
		if stay := budgetOf(w).Spec.MinAvailable.IntVal; stay != 2 {
			w.Errorf("while the roll waits for the node, %d must stay", stay)
		}
		if n := len(slices.DeleteFunc(w.Lines("step started", "action"), func(a string) bool { return a != "apply PodDisruptionBudget orders" })); n != 2 {
			w.Errorf("the budget was written %d times, want it closed and opened once", n)
		}
		node(false)
		w.Until(func(decision.Plan) bool { return observe.Partition(w.Set()) == 1 })
		if stay := budgetOf(w).Spec.MinAvailable.IntVal; stay != 3 {
			w.Errorf("as the roll goes on %d must stay", stay)
		}
	}, clustertest.SetVersion("3.6.12"))
}
