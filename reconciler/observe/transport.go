package observe

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// While spec.tls.mode changes, the file is ahead of the members. So a cluster is read as its members
// are: with the mode that they have on their usual ports, and for its certificates with the mode of
// these. What Git says of it is kept for the plan.

// modes are the forms of spec.tls that count for a cluster.
type modes struct {
	// git is what the file says.
	git schema.TLSSpec
	// is is over what members are reached that the live template makes, or the youngest pod.
	is state.Transport
	// certified is the mode of the certificates: that of the members that have any, else the file's.
	certified schema.TLSMode
}

// modesOf finds them, and the cluster as its members are. A file with errors tells nothing.
func modesOf(c desired.Cluster, set *appsv1.StatefulSet, pods []*corev1.Pod) (modes, desired.Cluster) {
	m := modes{git: c.Spec.TLS, certified: c.Spec.TLS.Mode}
	if len(c.Problems) > 0 {
		return m, c
	}
	switch {
	case set != nil:
		m.is = manifests.TransportOf(set.Spec.Template.Spec, c.Metadata.Name)
	case len(pods) > 0:
		youngest := pods[0]
		for _, p := range pods {
			if p.CreationTimestamp.After(youngest.CreationTimestamp.Time) {
				youngest = p
			}
		}
		m.is = manifests.TransportOf(youngest.Spec, c.Metadata.Name)
	default:
		return m, c
	}
	has := m.is.Secured()
	switch {
	case !transport.Encrypts(has):
	case transport.Encrypts(m.git.Mode):
		m.certified = m.git.Mode // another issuer's is refused, see certs.TLSChanges
	default:
		m.certified = has
	}
	if own := m.is.Own; transport.Encrypts(own) != transport.Encrypts(m.git.Mode) {
		if c.Spec.TLS.Mode = own; transport.Encrypts(own) {
			c.Spec.TLS.Mode = m.certified
		}
		c.Digest += " " + string(c.Spec.TLS.Mode)
	}
	return m, c
}

// of is a cluster in the mode of its certificates, for what is kept by its digest.
func (m modes) of(c desired.Cluster) desired.Cluster {
	if m.certified != c.Spec.TLS.Mode {
		c.Spec.TLS.Mode = m.certified
		c.Digest += " with certificates"
	}
	return c
}

// secured reports whether a pod is asked by TLS: always, unless the template has plain text, and then
// where the pod has certificates that the cluster still has.
func (m modes) secured(p *corev1.Pod, certified schema.EtcdCluster) bool {
	if transport.Encrypts(m.is.Own) && m.is.Also == "" {
		return naming.UsesTLS(certified)
	}
	has := manifests.TransportOf(p.Spec, certified.Metadata.Name)
	return transport.Encrypts(has.Secured()) && (naming.UsesTLS(certified) || has.Also == "")
}

// Certified is the cluster in the mode of its certificates, which members have besides plain text
// while spec.tls.mode changes.
func (v *View) Certified() schema.EtcdCluster {
	if v.modes.certified == "" {
		return v.Cluster.EtcdCluster
	}
	return v.modes.of(v.Cluster).EtcdCluster
}
