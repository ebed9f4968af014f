package pods

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
)

// Mutated tells how a pod differs from the template that it was made from in what its member
// starts with, or "": admission may change each pod, and leave the StatefulSet as it is. Resources
// are left out: limit ranges and autoscalers set these by their nature.
func Mutated(p *corev1.Pod, template corev1.PodSpec) string {
	var fields []string
	if is, wanted := p.Spec.TerminationGracePeriodSeconds, template.TerminationGracePeriodSeconds; is != nil && wanted != nil && *is != *wanted {
		fields = append(fields, fmt.Sprintf("terminationGracePeriodSeconds (%d, wanted %d)", *is, *wanted))
	}
	wanted := slices.Concat(template.InitContainers, template.Containers)
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		i := slices.IndexFunc(wanted, func(w corev1.Container) bool { return w.Name == c.Name })
		if i < 0 || c.Name != naming.ContainerEtcd && c.Name != naming.ContainerGuard {
			continue
		}
		for _, field := range mutatedIn(c, wanted[i]) {
			fields = append(fields, c.Name+": "+field)
		}
	}
	return strings.Join(fields, ", ")
}

// mutatedIn are the fields of one container that differ.
func mutatedIn(c, wanted corev1.Container) (fields []string) {
	if c.Image != wanted.Image {
		fields = append(fields, fmt.Sprintf("image (%s, wanted %s)", c.Image, wanted.Image))
	}
	if !slices.Equal(c.Command, wanted.Command) || !slices.Equal(c.Args, wanted.Args) {
		fields = append(fields, "command")
	}
	if !reflect.DeepEqual(c.LivenessProbe, wanted.LivenessProbe) {
		fields = append(fields, "livenessProbe")
	}
	for _, e := range c.Env {
		if strings.HasPrefix(e.Name, "ETCD_") && !slices.ContainsFunc(wanted.Env, func(w corev1.EnvVar) bool { return w.Name == e.Name && w.Value == e.Value }) {
			fields = append(fields, "env "+e.Name)
		}
	}
	return fields
}
