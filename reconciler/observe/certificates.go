package observe

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/handshake"
	"github.com/quorate/quorate/reconciler/inspect"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/state"
)

// question asks for the certificates of a cluster, which is given in the mode that they have.
func (o *Observer) question(m modes.Modes, certified desired.Cluster) inspect.Question {
	return inspect.Question{Cluster: certified, Modes: m, ClusterDomain: o.Options.Render.ClusterDomain, Now: o.Now()}
}

// describeCertificates is what was found about the certificates.
func (v *View) describeCertificates(found inspect.Found) {
	v.Expiry, v.domain, v.found = found.Status.NotAfter, fromCerts(found.Domain), found
	v.Observed.Certificates = state.Certificates{
		Missing: found.Status.Missing, Problems: found.Status.Problems, MissingSANs: found.Status.MissingSANs,
		Due: found.Status.Due, Ending: found.Status.Ending.Secret, Ends: found.Status.Ending.At, Notice: found.Status.Ending.Notice,
		ForeignClients: found.Clients.Foreign,
	}
	for _, w := range found.Clients.Wanting {
		v.Observed.Certificates.Clients = append(v.Observed.Certificates.Clients, state.ClientCertificate(w))
	}
	if r := found.Status.Rotation; r != nil {
		rotation := *r // what pods mount is added to it, and it is kept for the next pass
		v.Observed.Certificates.Rotation = &rotation
	}
}

// describeTrust describes what pods mount of what members are to trust, and what members have
// shown of it. While there is no StatefulSet, the pod that was made last tells what it had.
func (v *View) describeTrust(g gathered) {
	r := v.Observed.Certificates.Rotation
	if r == nil {
		return
	}
	var youngest time.Time
	for _, p := range g.pods {
		if !p.CreationTimestamp.Time.Before(youngest) {
			r.Set, youngest = trustMounted(p.Spec.Volumes), p.CreationTimestamp.Time
		}
	}
	if v.Set != nil {
		r.Set = trustMounted(v.Set.Spec.Template.Spec.Volumes)
	}
	r.Mounted = allMounted(r.Set, g.pods)
	slices.Sort(r.Mounted)
	r.Shown = g.shown
	if r.Over != "" || len(r.Next) > 0 {
		return // what comes next of that is for the steps of a change
	}
	for _, name := range r.Mounted {
		_, there := r.Trusts[name]
		if gone := !there && !slices.Contains([]string{r.Old, r.Both, r.New}, name); gone || len(v.found.Refused[name]) > 0 {
			r.Strangers = append(r.Strangers, name)
		}
	}
	v.Observed.Certificates.Trust.Refused = v.found.Refused[r.Set]
}

// allMounted are the Secrets with what members trust that the template mounts, which is given,
// and the pods, each once.
func allMounted(template string, pods []*corev1.Pod) []string {
	mounted := []string{template}
	for _, p := range pods {
		if name := trustMounted(p.Spec.Volumes); !slices.Contains(mounted, name) {
			mounted = append(mounted, name)
		}
	}
	return slices.DeleteFunc(mounted, func(name string) bool { return name == "" })
}

// trustMounted is the Secret with what a member trusts among the volumes of its pod, or "".
func trustMounted(volumes []corev1.Volume) string {
	for _, volume := range volumes {
		if volume.Name == naming.TrustVolume && volume.Secret != nil {
			return volume.Secret.SecretName
		}
	}
	return ""
}

// shake asks the members whom they trust, while a change of the authorities rests on that.
func (o *Observer) shake(ctx context.Context, v *View) (*View, error) {
	if phase := v.Trust.Phase; o.Shake == nil || phase != trust.Overlap && phase != trust.Settle {
		return v, nil
	}
	g := v.gathered
	q := handshake.Question{Cluster: v.Certified(), ClusterDomain: o.Options.Render.ClusterDomain, Secrets: g.secrets, Now: o.Now()}
	for _, p := range g.pods {
		q.Members = append(q.Members, handshake.Member{Name: p.Name, IP: p.Status.PodIP, Host: naming.MemberHost(q.Cluster, p.Name)})
	}
	o.Lanes.Ask(ctx, v.Cluster.Key(), func() { g.shown = o.Shake(ctx, q) })
	return o.describe(g)
}
