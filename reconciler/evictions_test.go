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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
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

// 555: where an only member has left its node for another one, its pod is kept for a while by
// nothing: kubectl drain, which asks by name every 5 s, sees it go, and never asks for the pod of
// that name on another node. What votes, the budget keeps at any time.
func TestADrainTakesThePodOfTheMemberThatHasLeft(t *testing.T) {
	for name, drains := range map[string]bool{"drained": true, "cordoned": false} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				d := cordon(w)
				w.Until(func(p decision.Plan) bool {
					d.keepsVoters()
					if drains && p.Hold != nil && strings.Contains(p.Hold.Message, "may evict orders-0") {
						time.Sleep(5 * time.Second)
						d.ask()
					}
					return p.Idle() && d.left
				})
				want := []string{"delete the pod of orders-0"}
				if drains {
					want = nil
				}
				deleted := slices.DeleteFunc(w.Lines("step started", "action"), func(a string) bool { return a != "delete the pod of orders-0" })
				if d.evicted != drains || !slices.Equal(deleted, want) {
					t.Errorf("evicted: %t, quorate does %q, want %q", d.evicted, deleted, want)
				}
				if b := budgetOf(w); b.Spec.MinAvailable.IntVal != 1 || len(b.Spec.Selector.MatchExpressions) > 0 {
					t.Errorf("in the end the budget says %v", b.Spec)
				}
			}, clustertest.SetReplicas(1), func(c *schema.EtcdCluster) { c.Spec.Upgrade.MaxSurge = 1 })
		})
	}
}

// draining is a drain of the node of orders-0, as kubectl does it.
type draining struct {
	*reconcilertest.World
	left, evicted bool
}

// cordon cordons the node of orders-0, which comes back on another one.
func cordon(w *reconcilertest.World) *draining {
	w.Helper()
	w.Put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Unschedulable: true}})
	pod := w.Pod("orders-0")
	pod.Spec.NodeName = "n1"
	w.Put(reconcilertest.PodsResource(), pod)
	w.Starting = func(p *corev1.Pod) { p.Spec.NodeName = "n2" }
	w.ProtectClaims()
	w.Put(reconcilertest.ClaimsResource(), clustertest.Claim("data-orders-0", func(c *corev1.PersistentVolumeClaim) {
		c.Namespace, c.Labels = "shop", naming.OwnLabels(w.Wish.EtcdCluster)
	}))
	w.Settle()
	return &draining{World: w}
}

// covered reports whether the budget keeps a pod.
func (d *draining) covered(pod *corev1.Pod) bool {
	d.Helper()
	selector, err := metav1.LabelSelectorAsSelector(budgetOf(d.World).Spec.Selector)
	if err != nil {
		d.Fatal(err)
	}
	return selector.Matches(labels.Set(pod.Labels))
}

// keepsVoters wants the budget to keep the pod of each member, whatever it does with others.
func (d *draining) keepsVoters() {
	d.Helper()
	members := d.Record().Members
	for name := range members {
		if pod := d.Pod(name); !d.covered(pod) || budgetOf(d.World).Spec.MinAvailable.IntVal < int32(len(members)) {
			d.Errorf("a drain may take %s, which votes", name)
		}
	}
	d.left = d.left || members["orders-0"] == ""
}

// ask asks for the eviction of orders-0 by name.
func (d *draining) ask() {
	d.Helper()
	if pod := d.Pod("orders-0"); d.covered(pod) || pod.Spec.NodeName != "n1" {
		d.Errorf("the drain may not take the pod on %s", pod.Spec.NodeName)
		return
	}
	d.evicted = true
	if err := d.API.CoreV1().Pods("shop").Delete(d.Context(), "orders-0", metav1.DeleteOptions{}); err != nil {
		d.Fatal(err)
	}
	d.Settle()
}
