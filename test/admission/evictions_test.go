package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/schema"
)

// evict asks the API server to evict a member's pod, without doing so.
func (w *world) evict(member string) error {
	return w.kube.PolicyV1().Evictions(w.namespace).Evict(w.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: member, Namespace: w.namespace},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
}

// mayEvict waits until the API server would grant an eviction, which the disruption controller allows.
func (w *world) mayEvict() {
	w.Helper()
	err := w.evict("orders-0")
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); err = w.evict("orders-0") {
		time.Sleep(20 * time.Millisecond)
	}
	w.must(err)
}

// serves reports whether a pod is ready: one that is not is down anyhow, and may be evicted.
func serves(p corev1.Pod) bool { return p.DeletionTimestamp == nil && len(p.Status.Conditions) > 0 }

// stay is how many pods the budget keeps.
func (w *world) stay() int {
	w.Helper()
	budget, err := w.kube.PolicyV1().PodDisruptionBudgets(w.namespace).Get(w.Context(), "orders", metav1.GetOptions{})
	w.must(err)
	return budget.Spec.MinAvailable.IntValue()
}

// 394: before a member is restarted the budget keeps every pod, and from then on the API server
// grants no eviction until the roll is over; then it does again.
func TestNoEvictionIsGrantedInARoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "evictions")
	w.untilIdle()
	w.mayEvict()
	before := w.pods()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	refused := 0
	w.until("the roll to end", func(p decision.Plan) bool {
		closed := w.stay() == 3
		if *w.set().Spec.UpdateStrategy.RollingUpdate.Partition < 3 && !closed {
			t.Error("a member is restarted, and the budget is open")
		}
		for member, pod := range w.pods() {
			err := w.evict(member)
			if now := w.pods()[member]; !closed || w.stay() != 3 || !serves(pod) || !serves(now) || pod.UID != now.UID {
				continue
			}
			if refused++; !apierrors.IsTooManyRequests(err) {
				t.Errorf("in the midst of the roll the eviction of %s is answered with %v", member, err)
			}
		}
		return p.Idle()
	})
	if refused == 0 {
		t.Error("no eviction was refused")
	}
	for name, pod := range w.pods() {
		if pod.UID == before[name].UID {
			t.Errorf("%s was not restarted", name)
		}
	}
	w.mayEvict()
}

// 394: from the very answer to the change of a budget on, the API server grants no eviction: it waits
// for the disruption controller, whatever that has allowed before. quorate rests on that.
func TestABudgetIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "at-once")
	w.untilIdle()
	budgets := w.kube.PolicyV1().PodDisruptionBudgets(w.namespace)
	keep := func(pods int) {
		t.Helper()
		_, err := budgets.Patch(t.Context(), "orders", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, pods), metav1.PatchOptions{})
		w.must(err)
	}
	for range 3 {
		keep(2)
		w.mayEvict()
		keep(3)
		if err := w.evict("orders-0"); !apierrors.IsTooManyRequests(err) {
			t.Errorf("after the budget was closed an eviction is answered with %v", err)
		}
	}
}

// 392: where a policy forbids a budget that keeps every pod, a roll restarts no member and says why;
// a revert ends it, and it goes on when the budget is exempt.
func TestARollWaitsForItsBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "no-lock")
	w.untilIdle()
	before := w.pods()
	unchanged := func() {
		t.Helper()
		for name, pod := range w.pods() {
			if pod.UID != before[name].UID {
				t.Errorf("%s was restarted", name)
			}
		}
	}
	stop := w.refuse("policy", "poddisruptionbudgets", `object.spec.minAvailable != 3`, "every budget lets a pod go")
	upgrade := func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" }
	was := w.wish.Spec.Version
	w.commit(upgrade)
	p := w.untilHeld("fight", "PodDisruptionBudget orders is not taken as quorate applies it", "every budget lets a pod go")
	if p.Hold.Kind != decision.Refused || !strings.Contains(p.Hold.Do, "policy") {
		t.Errorf("it is %s", p.Hold)
	}
	unchanged()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = was })
	w.untilIdle()
	unchanged()
	w.commit(upgrade)
	w.untilHeld("fight", "every budget lets a pod go")
	stop()
	w.restart()
	w.untilIdle()
	for name, pod := range w.pods() {
		if pod.Annotations[naming.AnnotationVersion] != "3.6.17" {
			t.Errorf("%s was not upgraded", name)
		}
	}
}
