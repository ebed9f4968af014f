package schema

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The two lists of each kind of affinity, as Kubernetes spells them.
const (
	affinityRequired  = "requiredDuringSchedulingIgnoredDuringExecution"
	affinityPreferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

// affinity checks what people forget in an affinity, as the API server does.
func (v *validator) affinity(a *corev1.Affinity) {
	if a == nil {
		return
	}
	const field = "podTemplate.spec.affinity"
	if a.NodeAffinity != nil {
		v.nodeAffinity(field+".nodeAffinity", a.NodeAffinity)
	}
	if p := a.PodAffinity; p != nil {
		v.podTerms(field+".podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		v.podTerms(field+".podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// podTerms checks the terms about other pods.
func (v *validator) podTerms(field string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i, term := range required {
		v.podTerm(fmt.Sprintf("%s.%s[%d]", field, affinityRequired, i), term)
	}
	for i, term := range preferred {
		at := fmt.Sprintf("%s.%s[%d]", field, affinityPreferred, i)
		v.weight(at, term.Weight)
		v.podTerm(at+".podAffinityTerm", term.PodAffinityTerm)
	}
}

// podTerm checks one term about other pods.
func (v *validator) podTerm(field string, term corev1.PodAffinityTerm) {
	if term.TopologyKey == "" {
		v.fail(field+".topologyKey", "is missing: write a label of nodes such as kubernetes.io/hostname")
	}
	v.selector(field+".labelSelector", term.LabelSelector)
}

// weight checks how much a preference counts.
func (v *validator) weight(field string, weight int32) {
	if weight < 1 || weight > 100 {
		v.fail(field+".weight", "is %d and must be 1 to 100", weight)
	}
}

// selector checks a label selector, where one is given.
func (v *validator) selector(field string, s *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		v.fail(field, "is not a label selector: write matchLabels, or matchExpressions with key, operator In, NotIn, Exists or DoesNotExist, and values for In and NotIn only")
	}
}

// nodeAffinity checks the terms about nodes.
func (v *validator) nodeAffinity(field string, a *corev1.NodeAffinity) {
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		at := field + "." + affinityRequired + ".nodeSelectorTerms"
		if len(r.NodeSelectorTerms) == 0 {
			v.fail(at, "is missing: write at least one term with matchExpressions")
		}
		for i, term := range r.NodeSelectorTerms {
			v.nodeTerm(fmt.Sprintf("%s[%d]", at, i), term)
		}
	}
	for i, term := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		at := fmt.Sprintf("%s.%s[%d]", field, affinityPreferred, i)
		v.weight(at, term.Weight)
		v.nodeTerm(at+".preference", term.Preference)
	}
}

// nodeTerm checks the expressions of one term about nodes.
func (v *validator) nodeTerm(field string, term corev1.NodeSelectorTerm) {
	for _, list := range []struct {
		name         string
		requirements []corev1.NodeSelectorRequirement
	}{{"matchExpressions", term.MatchExpressions}, {"matchFields", term.MatchFields}} {
		for i, r := range list.requirements {
			v.nodeRequirement(fmt.Sprintf("%s.%s[%d]", field, list.name, i), r)
		}
	}
}

// nodeRequirement checks one expression about nodes: each operator takes its own
// number of values.
func (v *validator) nodeRequirement(field string, r corev1.NodeSelectorRequirement) {
	operators := []corev1.NodeSelectorOperator{
		corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
		corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
	}
	if r.Key == "" {
		v.fail(field+".key", "is missing: write a label of nodes such as topology.kubernetes.io/zone")
	}
	if !slices.Contains(operators, r.Operator) {
		oneOf(v, field+".operator", r.Operator, operators...)
		return
	}
	switch given := len(r.Values); r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if given == 0 {
			v.fail(field+".values", "is missing: operator %s needs at least one", r.Operator)
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if given != 1 {
			v.fail(field+".values", "has %d values: operator %s needs one number", given, r.Operator)
		}
	default:
		if given > 0 {
			v.fail(field+".values", "must be left out with operator %s", r.Operator)
		}
	}
}
