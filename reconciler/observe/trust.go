package observe

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/inspect"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// describeBundles describes what members trust of certificates that another program issues.
func (v *View) describeBundles(g gathered) {
	c := v.Certified()
	if len(v.Cluster.Problems) > 0 || !inspect.ByOthers(c) {
		return
	}
	t := state.Trust{Wanted: v.found.Wanted}
	if v.Set != nil {
		t.Mounted = trustMounted(v.Set.Spec.Template.Spec.Volumes)
	}
	t.ChangedAt = namedAt(c, g)
	for _, s := range v.found.Kept {
		t.Kept = append(t.Kept, s.Name)
	}
	t.Running = running(t, g.pods)
	t.Gone = slices.DeleteFunc(allMounted(t.Mounted, g.pods), func(name string) bool { return slices.Contains(t.Kept, name) })
	for _, name := range t.Running {
		t.Refused = append(t.Refused, v.found.Refused[name]...)
	}
	v.Observed.Certificates.Trust = t
}

// namedAt is when the Secrets that the file names were changed last.
func namedAt(c schema.EtcdCluster, g gathered) (last time.Time) {
	names := c.Spec.TLS.Secrets
	for _, name := range []string{names.Server, names.Peer, names.Client} {
		if s := g.secrets[name]; s != nil {
			last = slices.MaxFunc([]time.Time{last, s.CreationTimestamp.Time, LastChange(s, "")}, time.Time.Compare)
		}
	}
	return last
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
	with.Trust, with.Also, with.Mixed = v.mounts, v.Transport.Template.Also, v.Issuers.Mixed && v.mounts == v.Issuers.Trust
	return with
}
