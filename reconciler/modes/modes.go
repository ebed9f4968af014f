// Package modes says which form of spec.tls counts for a cluster while its mode changes.
package modes

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// While spec.tls.mode changes, the file is ahead of the members. So a cluster is read as its members
// are: with the mode that they have on their usual ports, and for its certificates with the mode of
// these. What Git says of it is kept for the plan.

// Modes are the forms of spec.tls that count for a cluster.
type Modes struct {
	// Git is what the file says.
	Git schema.TLSSpec
	// Is is over what members are reached that the live template makes, or the youngest pod.
	Is state.Transport
	// Certified is the mode of the certificates: that of the members that have any, else the file's.
	Certified schema.TLSMode
	// shown are the modes of the certificates of the pods.
	shown []schema.TLSMode
}

// Of finds them, and the cluster as its members are. A file with errors tells nothing.
func Of(c desired.Cluster, set *appsv1.StatefulSet, pods []*corev1.Pod) (Modes, desired.Cluster) {
	m := Modes{Git: c.Spec.TLS, Certified: c.Spec.TLS.Mode}
	if len(c.Problems) > 0 {
		return m, c
	}
	switch {
	case set != nil:
		m.Is = manifests.TransportOf(set.Spec.Template.Spec, c.Metadata.Name)
	case len(pods) > 0:
		youngest := pods[0]
		for _, p := range pods {
			if p.CreationTimestamp.After(youngest.CreationTimestamp.Time) {
				youngest = p
			}
		}
		m.Is = manifests.TransportOf(youngest.Spec, c.Metadata.Name)
	default:
		return m, c
	}
	for _, p := range pods {
		m.shown = append(m.shown, ShownBy(p, c.EtcdCluster))
	}
	if has := m.Is.Secured(); has.Encrypts() && !state.SameIssuer(has, m.Git.Mode) {
		m.Certified = has
	}
	if own := m.Is.Own; own != m.Git.Mode && !state.SameIssuer(own, m.Git.Mode) {
		c.Spec.TLS.Mode = own
		c.Digest += " " + string(own)
	}
	return m, c
}

// Certify is a cluster in the mode of its certificates, for what is kept by its digest.
func (m Modes) Certify(c desired.Cluster) desired.Cluster {
	if m.Certified != "" && m.Certified != c.Spec.TLS.Mode {
		c.Spec.TLS.Mode = m.Certified
		c.Digest += " with certificates"
	}
	return c
}

// Change reports whether members do not speak alone, or not by the certificates, what Git wants.
func (m Modes) Change() bool {
	return m.Is.Own != "" && (m.Is.Also != "" || m.Is.Own != m.Git.Mode && !state.SameIssuer(m.Is.Own, m.Git.Mode))
}

// Secured reports whether a pod is asked by TLS: always, unless the template has plain text, and then
// where the pod has certificates that the cluster still has.
func (m Modes) Secured(p *corev1.Pod, certified schema.EtcdCluster) bool {
	if m.Is.Own.Encrypts() && m.Is.Also == "" {
		return naming.UsesTLS(certified)
	}
	has := manifests.TransportOf(p.Spec, certified.Metadata.Name)
	return has.Secured().Encrypts() && (naming.UsesTLS(certified) || has.Also == "")
}

// ShownBy is the mode of the certificates that a pod has.
func ShownBy(p *corev1.Pod, c schema.EtcdCluster) schema.TLSMode {
	return manifests.TransportOf(p.Spec, c.Metadata.Name).Secured()
}

// Shows is the cluster in the mode of the certificates that a pod has: those of the cluster, unless it
// has some of the other issuer.
func Shows(p *corev1.Pod, certified schema.EtcdCluster) schema.EtcdCluster {
	if has := ShownBy(p, certified); has.Encrypts() && certified.Spec.TLS.Mode.Encrypts() && !state.SameIssuer(has, certified.Spec.TLS.Mode) {
		certified.Spec.TLS.Mode = has
	}
	return certified
}

// Has reports whether certificates of a mode count for a cluster: those of its template and its pods,
// those that Git wants instead, and those that quorate has made, whose keys are still there.
func (m Modes) Has(mode schema.TLSMode, made map[string]*corev1.Secret, certified schema.EtcdCluster) bool {
	counts := func(other schema.TLSMode) bool { return state.SameIssuer(mode, other) }
	if state.SameIssuer(mode, certified.Spec.TLS.Mode) || m.Is.Own != "" && counts(m.Git.Mode) || slices.ContainsFunc(m.shown, counts) {
		return true
	}
	return mode == schema.TLSManaged && slices.ContainsFunc(certs.Leaves(certified, ""), func(l certs.Leaf) bool { return made[l.Secret] != nil || made[l.Authority] != nil })
}

// Both reports whether both issuers count for a cluster. That members may trust another program's
// certificates besides quorate's is seen from the Secrets with what they trust.
func (m Modes) Both(r *state.Rotation, made map[string]*corev1.Secret, certified schema.EtcdCluster) bool {
	if r != nil {
		for name := range r.Trusts {
			if name != r.Old && name != r.Both && name != r.New {
				return true
			}
		}
	}
	return m.Has(schema.TLSManaged, made, certified) && m.Has(schema.TLSSecrets, made, certified)
}
