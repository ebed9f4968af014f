package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/pods"
)

// 391: a pod whose eviction was granted goes, as one that is being deleted, until it is another
// one, or the API server cannot be about to delete it any more.
func TestAnEvictionThatWasGrantedIsADeletion(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	created, deleting := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon.Add(-time.Second))
	granted := func(member string, at time.Time) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{}
		b.Status.DisruptedPods = map[string]metav1.Time{member: metav1.NewTime(at)}
		return b
	}
	for name, c := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		change func(*corev1.Pod)
		want   time.Time // since when it goes
	}{
		"no budget":                     {budget: nil},
		"another pod's":                 {budget: granted("orders-2", noon)},
		"its own":                       {budget: granted("orders-1", noon.Add(-time.Minute)), want: noon.Add(-time.Minute)},
		"by a clock that is ahead":      {budget: granted("orders-1", noon.Add(time.Minute)), want: noon.Add(time.Minute)},
		"of long ago":                   {budget: granted("orders-1", noon.Add(-3*time.Minute))},
		"of a pod that was there first": {budget: granted("orders-1", noon.Add(-time.Minute)), change: func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Second)) }},
		"of a pod that is deleted":      {budget: granted("orders-1", noon.Add(-time.Minute)), change: func(p *corev1.Pod) { p.DeletionTimestamp = &deleting }, want: deleting.Time},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-1", CreationTimestamp: created}}
		if c.change != nil {
			c.change(p)
		}
		v := &View{}
		v.Observed.Pods = append(v.Observed.Pods, pods.Describe(p))
		v.describeEvictions(gathered{liveCluster: liveCluster{budget: c.budget, pods: []*corev1.Pod{p}}}, noon)
		if got := v.Observed.Pods[0]; got.Terminating == c.want.IsZero() || !got.GoingSince.Equal(c.want) {
			t.Errorf("%s: goes %t since %s, want %s", name, got.Terminating, got.GoingSince, c.want)
		}
	}
}
