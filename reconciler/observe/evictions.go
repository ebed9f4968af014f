package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/quorate/quorate/reconciler/plan/situation"
)

// grantCounts is how long an eviction that was granted may still stop a pod: longer than any
// request to the API server lasts, and than the disruption controller itself waits.
const grantCounts = 3 * time.Minute

// disruptions is how many pods others may stop at once: none while quorate stops them.
//
// That a budget says so is enough: the API server grants no eviction before the disruption
// controller has seen the last change of the budget, also while that controller is down, and
// notes in the budget what it has granted before.
func (o *Observer) disruptions(v *View) int32 {
	if situation.Exclusive(v.Cluster.Spec, v.Observed, o.Now()) {
		return 0
	}
	return Disruptions(*v.Record, v.Cluster.EtcdCluster)
}

// describeEvictions has pods go whose eviction was granted, as those that are being deleted.
func (v *View) describeEvictions(g gathered, now time.Time) {
	for i, p := range g.pods { // described in this order
		if at := evicted(g.budget, p, now); !at.IsZero() {
			v.Observed.Pods[i].Terminating, v.Observed.Pods[i].GoingSince = true, at
		}
	}
}

// evicted is when the eviction of a pod was granted that the API server has not begun to
// delete yet, or is about to; the zero time for none. A pod of the same name that was created
// since is another one.
func evicted(budget *policyv1.PodDisruptionBudget, p *corev1.Pod, now time.Time) time.Time {
	if budget == nil || p.DeletionTimestamp != nil {
		return time.Time{}
	}
	at := budget.Status.DisruptedPods[p.Name]
	if at.IsZero() || p.CreationTimestamp.After(at.Time) || now.Sub(at.Time) >= grantCounts {
		return time.Time{}
	}
	return at.Time
}
