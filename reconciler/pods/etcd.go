package pods

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
)

// StartedAfter reports whether the etcd of a pod was started after a time. One that is not known to
// run may have been started before.
func StartedAfter(p *corev1.Pod, at time.Time) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == naming.ContainerEtcd && s.State.Running != nil {
			return s.State.Running.StartedAt.After(at)
		}
	}
	return false
}

// AsksForCertificates reports whether the etcd of a pod knows clients by their certificates.
func AsksForCertificates(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == naming.ContainerEtcd && slices.Contains(c.Args, "--client-cert-auth=true")
	})
}
