package observe

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// describeBundles describes what members trust of certificates that another program issues.
func (v *View) describeBundles(g gathered) {
	c := v.Certified()
	if len(v.Cluster.Problems) > 0 || !trustsOthers(c) {
		return
	}
	t := state.Trust{Wanted: v.bundles.wanted}
	if v.Set != nil {
		t.Mounted = trustMounted(v.Set.Spec.Template.Spec.Volumes)
	}
	for _, s := range g.secrets {
		for _, at := range []time.Time{s.CreationTimestamp.Time, LastChange(s, "")} {
			if at.After(t.ChangedAt) {
				t.ChangedAt = at
			}
		}
	}
	for _, s := range v.bundles.kept {
		t.Kept = append(t.Kept, s.Name)
	}
	t.Running = running(t, g.pods)
	t.Gone = slices.DeleteFunc(allMounted(t.Mounted, g.pods), func(name string) bool { return slices.Contains(t.Kept, name) })
	for _, name := range t.Running {
		t.Refused = append(t.Refused, v.bundles.refused[name]...)
	}
	v.Observed.Certificates.Trust = t
}

// trustsOthers reports whether another program issues the certificates of a cluster.
func trustsOthers(c schema.EtcdCluster) bool { return naming.UsesTLS(c) && !naming.ManagesTLS(c) }

// bundles are what there is to know of one version of a cluster's Secrets: to read certificates in
// every pass would cost more than all the rest of it.
type bundles struct {
	// wanted is the bundle that the issuer's Secrets have, "" where they say none.
	wanted string
	// kept are those that are kept, the oldest first, and refused is what each of them does not
	// trust, by its name.
	kept    []*corev1.Secret
	refused map[string][]string
}

func bundlesOf(c desired.Cluster, secrets, made map[string]*corev1.Secret) bundles {
	b := bundles{refused: map[string][]string{}}
	if !trustsOthers(c.EtcdCluster) {
		return b
	}
	if wanted := certs.NamedTrust(c.EtcdCluster, secrets); wanted != nil {
		b.wanted = wanted.Name
	}
	for _, s := range made {
		if certs.KeepsTrust(c.EtcdCluster, s) {
			b.kept = append(b.kept, s)
			b.refused[s.Name] = certs.Refused(c.EtcdCluster, secrets, s)
		}
	}
	slices.SortFunc(b.kept, func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return b
}

// running are the bundles that members trust which run, or which the template starts. A pod that
// mounts none trusts what its Secrets said when etcd was started: the ones of now, if they had reached
// it by then, and otherwise the oldest that is kept.
func running(t state.Trust, all []*corev1.Pod) []string {
	names := []string{t.Mounted}
	for _, p := range all {
		name := trustMounted(p.Spec.Volumes)
		if name == "" {
			if name = t.Wanted; len(t.Kept) > 0 && !pods.StartedAfter(p, t.SettlesAt()) {
				name = t.Kept[0]
			}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// withTrust are the daemon's options, with what the template is to mount, and what members are to
// listen to besides their own mode.
func (o *Observer) withTrust(v *View) manifests.Options {
	with := o.Options.Render
	with.Trust, with.Also = v.mounts, v.Transport.Template.Also
	return with
}
