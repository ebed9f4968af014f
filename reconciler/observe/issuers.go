package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// describeIssuers describes how the cluster stands between the two issuers.
func (v *View) describeIssuers(g gathered) {
	found := v.found.Issuers
	if found == nil || len(v.Cluster.Problems) > 0 || v.modes.Is.Own == "" {
		return
	}
	c := v.Certified()
	i := &state.Issuers{
		Both: found.Both, Told: found.Told, Left: found.Left, NoRoot: found.NoRoot, NamedAt: namedAt(c, g),
		Problems: found.Other.Problems, Missing: found.Other.Missing, MissingSANs: found.Other.MissingSANs, Due: found.Other.Due,
	}
	if i.Alone = found.Managed; v.modes.Git.Mode == schema.TLSSecrets {
		i.Alone = found.Named
	}
	for _, w := range found.Clients.Wanting {
		i.Clients = append(i.Clients, state.ClientCertificate(w))
	}
	for name, s := range g.made {
		if certs.KeepsTrust(c, s) {
			i.Made = append(i.Made, name)
		}
	}
	slices.Sort(i.Made)
	if v.Set != nil {
		i.Mounted = trustMounted(v.Set.Spec.Template.Spec.Volumes)
	}
	i.Mixed = slices.Contains(found.Mixed[c.Spec.TLS.Mode], i.Mounted)
	mounted := allMounted(i.Mounted, g.pods)
	i.Gone = slices.DeleteFunc(slices.Clone(mounted), i.Has)
	named := slices.ContainsFunc(g.pods, func(p *corev1.Pod) bool { return modes.ShownBy(p, c) == schema.TLSSecrets })
	if wanted := v.modes.Git.Mode; wanted.Encrypts() && !state.SameIssuer(wanted, c.Spec.TLS.Mode) {
		i.Halfway = i.Both != "" && slices.Equal(mounted, []string{i.Both}) && !slices.ContainsFunc(g.pods, func(p *corev1.Pod) bool { return trustMounted(p.Spec.Volumes) == "" }) &&
			slices.ContainsFunc(g.pods, func(p *corev1.Pod) bool { return state.SameIssuer(modes.ShownBy(p, c), wanted) })
	}
	if naming.ManagesTLS(c) && named {
		for _, name := range mounted {
			if s := g.made[name]; s != nil {
				v.Observed.Certificates.Trust.Refused = append(v.Observed.Certificates.Trust.Refused, certs.Refused(certs.NamedBy(c), g.secrets, s)...)
			}
		}
	}
	v.Observed.Certificates.Issuers = i
}

// supposeIssuers is what a change of the issuer begins with, for a cluster that was not observed: what
// quorate is to issue is missing, and nothing says yet that both are trusted.
func (v *View) supposeIssuers() {
	is, wants := v.modes.Is.Secured(), v.modes.Git.Mode
	if v.Set == nil || !is.Encrypts() || !wants.Encrypts() || state.SameIssuer(is, wants) {
		return
	}
	i := &state.Issuers{Both: "(both issuers)", Alone: "(the other program)", Mounted: trustMounted(v.Set.Spec.Template.Spec.Volumes)}
	if wants != schema.TLSSecrets {
		i.Both, i.Alone = "", ""
		for _, l := range certs.Leaves(v.Certified(), "") {
			i.Missing = append(i.Missing, l.Secret)
		}
		v.Observed.Certificates.Trust = state.Trust{Wanted: "(the other program)", Kept: []string{"(the other program)"}, Running: []string{"(the other program)"}}
	}
	v.Observed.Certificates.Issuers = i
}

// LeavesOwn reports whether nothing shows or trusts any more what quorate has issued, and another program
// issues all certificates.
func (v *View) LeavesOwn() bool { return v.Issuers.Phase == issuers.Retire }
