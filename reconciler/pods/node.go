package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// ShutTo is why a node takes no new pod with these tolerations, "" where it does.
func ShutTo(node *corev1.Node, tolerations []corev1.Toleration) string {
	if node == nil {
		return ""
	}
	taints := slices.Clone(node.Spec.Taints)
	if node.Spec.Unschedulable { // Kubernetes adds that taint a moment later
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range taints {
		tolerated := taint.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, true)
		})
		switch {
		case tolerated:
		case taint.Key == corev1.TaintNodeUnschedulable:
			return "is cordoned"
		default:
			return "has the taint " + taint.ToString() + ", which the members do not tolerate"
		}
	}
	return ""
}
