package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// pod checks what is added to the pods: what people get wrong, so that they hear
// of it before Kubernetes refuses the pods of a cluster that is being restarted.
func (v *validator) pod(spec ClusterSpec) {
	t := spec.PodTemplate
	v.labels("podTemplate.metadata.labels", t.Metadata.Labels, "quorate.dev", "app.kubernetes.io")
	v.annotations("podTemplate.metadata.annotations", t.Metadata.Annotations)
	v.labels("podTemplate.spec.nodeSelector", t.Spec.NodeSelector)
	v.resources(spec)
	for i, toleration := range t.Spec.Tolerations {
		v.toleration(fmt.Sprintf("podTemplate.spec.tolerations[%d]", i), toleration)
	}
	for i, constraint := range t.Spec.TopologySpreadConstraints {
		v.spread(fmt.Sprintf("podTemplate.spec.topologySpreadConstraints[%d]", i), constraint)
	}
	v.affinity(t.Spec.Affinity)
	if name := t.Spec.PriorityClassName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		v.fail("podTemplate.spec.priorityClassName", "%s is not the name of a priority class", clip(name))
	}
	for i, secret := range t.Spec.ImagePullSecrets {
		v.secret(fmt.Sprintf("podTemplate.spec.imagePullSecrets[%d].name", i), secret.Name)
	}
	v.security(t.Spec.SecurityContext)
}

// security checks which user the members run as.
func (v *validator) security(c *corev1.PodSecurityContext) {
	if c == nil {
		return
	}
	const field = "podTemplate.spec.securityContext"
	for _, id := range []struct {
		name  string
		value *int64
	}{{"runAsUser", c.RunAsUser}, {"runAsGroup", c.RunAsGroup}, {"fsGroup", c.FSGroup}} {
		if id.value != nil && (*id.value < 0 || *id.value > math.MaxInt32) {
			v.fail(child(field, id.name), "is %d and must be 0 to %d", *id.value, math.MaxInt32)
		}
	}
	if c.RunAsUser == nil || *c.RunAsUser != 0 {
		return
	}
	if c.RunAsNonRoot != nil && *c.RunAsNonRoot {
		v.fail(field+".runAsUser", "is 0, root, which runAsNonRoot: true forbids: leave it out for user 65532")
		return
	}
	v.warn(IDRoot, field+".runAsUser", "is 0, root: etcd needs no root, leave it out for user 65532")
}

// resources checks amounts of CPU and memory.
func (v *validator) resources(spec ClusterSpec) {
	const old = "podTemplate.spec.resources"
	resources, field := spec.EtcdResources()
	limits, requests := resources.Limits, resources.Requests
	switch {
	case field == old:
		v.warn(IDOldName, old, "is the old name of etcd.resources, and means the same, while Kubernetes means the whole pod by it: move it to etcd.resources, which restarts nothing")
	case isSet(spec.PodTemplate.Spec.Resources):
		v.fail(old, "is the old name of etcd.resources, which is there, too: leave it out")
	}
	if len(resources.Claims) > 0 {
		v.fail(field+".claims", "are not possible, because a pod template of quorate declares no resource claims: leave them out")
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		v.resourceName(field+".requests", name)
		request := requests[name]
		if limit, ok := limits[name]; ok && request.Cmp(limit) > 0 {
			v.fail(child(field+".requests", string(name)), "%s is more than the limit, %s", request.String(), limit.String())
		}
		v.notNegative(child(field+".requests", string(name)), request)
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		v.resourceName(field+".limits", name)
		v.notNegative(child(field+".limits", string(name)), limits[name])
	}
	memory, limited := limits[corev1.ResourceMemory]
	if quota := spec.Etcd.QuotaBackendBytes; limited && quota != nil && memory.Sign() > 0 && memory.Cmp(*quota) < 0 {
		v.warn(IDMemory, child(field+".limits", "memory"), "%s is less than quotaBackendBytes, %s: etcd maps its database into memory, and becomes slow when it does not fit",
			memory.String(), quota.String())
	}
}

// resourceName checks that there may be such a resource: Kubernetes has a few of
// its own, and those of others have a prefix.
func (v *validator) resourceName(field string, name corev1.ResourceName) {
	known := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage)}
	text := string(name)
	switch {
	case slices.Contains(known, text), strings.HasPrefix(text, corev1.ResourceHugePagesPrefix):
	case text == string(corev1.ResourceStorage):
		v.fail(child(field, text), "is not a resource of a container: write storage.size for the volume, or ephemeral-storage")
	case !strings.Contains(text, "/") || len(validation.IsQualifiedName(text)) > 0:
		v.fail(child(field, text), "is not a resource: write cpu, memory or ephemeral-storage%s", didYouMean(text, known))
	}
}

// notNegative checks an amount of CPU or memory.
func (v *validator) notNegative(field string, q resource.Quantity) {
	if q.Sign() < 0 {
		v.fail(field, "must not be negative")
	}
}

// toleration checks one toleration as the API server does.
func (v *validator) toleration(field string, t corev1.Toleration) {
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	switch {
	case !slices.Contains([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}, t.Operator):
		v.fail(field+".operator", "%s is not one of Equal, Exists", clip(string(t.Operator)))
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		v.fail(field+".value", "must be left out with operator Exists, which takes any value")
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		v.fail(field+".key", "is missing: name the taint, or write operator: Exists to tolerate all")
	}
	if t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0 {
		v.fail(field+".key", "%s is not the key of a taint, such as example.com/dedicated", clip(t.Key))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		v.fail(field+".tolerationSeconds", "is used with effect: NoExecute only: leave it out")
	}
	if !slices.Contains(effects, t.Effect) {
		v.fail(field+".effect", "%s is not one of NoSchedule, PreferNoSchedule, NoExecute", clip(string(t.Effect)))
	}
}

// spread checks one topology spread constraint as the API server does.
func (v *validator) spread(field string, c corev1.TopologySpreadConstraint) {
	if c.MaxSkew <= 0 {
		v.fail(field+".maxSkew", "must be 1 or more")
	}
	if c.TopologyKey == "" {
		v.fail(field+".topologyKey", "is missing: write a label of nodes such as topology.kubernetes.io/zone")
	}
	if c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway {
		v.fail(field+".whenUnsatisfiable", "%s is not one of DoNotSchedule, ScheduleAnyway", clip(string(c.WhenUnsatisfiable)))
	}
	if c.MinDomains != nil && (*c.MinDomains < 1 || c.WhenUnsatisfiable != corev1.DoNotSchedule) {
		v.fail(field+".minDomains", "must be 1 or more, and is used with whenUnsatisfiable: DoNotSchedule only")
	}
	v.selector(field+".labelSelector", c.LabelSelector)
	if c.LabelSelector == nil {
		v.warn(IDSpread, field+".labelSelector", "is missing, so the constraint matches no pod: write matchLabels with quorate.dev/cluster and the cluster's name")
	}
}
