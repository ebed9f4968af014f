package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/handshake"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/state"
)

// secretsOf are the Secrets with the cluster's certificates: quorate's own from
// the caches, or those that the file names from the API server. These carry no
// label of quorate's, and never get one, so the caches do not hold them; while
// nothing is wrong with them they are read once in certificateRecheck.
func (o *Observer) secretsOf(ctx context.Context, c desired.Cluster, own map[string]*corev1.Secret) (map[string]*corev1.Secret, error) {
	if len(c.Problems) > 0 || !naming.UsesTLS(c.EtcdCluster) {
		return own, nil
	}
	if naming.ManagesTLS(c.EtcdCluster) {
		return o.withClients(ctx, c, own)
	}
	if k := o.checked.Get(c.Key()); k.digest == c.Digest && len(k.status.Problems) == 0 && o.Now().Sub(k.at) < certificateRecheck {
		return k.secrets, nil
	}
	names := naming.TLSSecrets(c.EtcdCluster)
	return o.readSecrets(ctx, c, names.Server, names.Peer, names.Client)
}

// withClients adds to quorate's own Secrets what stands where those of the applications are
// to be and is not in the caches, because somebody else made it.
func (o *Observer) withClients(ctx context.Context, c desired.Cluster, own map[string]*corev1.Secret) (map[string]*corev1.Secret, error) {
	absent := slices.DeleteFunc(certs.ClientSecrets(c.EtcdCluster), func(name string) bool { return own[name] != nil })
	if len(absent) == 0 {
		return own, nil
	}
	found, err := o.readSecrets(ctx, c, absent...)
	if err != nil {
		return nil, err
	}
	maps.Copy(found, own)
	return found, nil
}

// readSecrets reads Secrets of the cluster's namespace from the API server, by name. Those
// that do not exist are left out.
func (o *Observer) readSecrets(ctx context.Context, c desired.Cluster, names ...string) (map[string]*corev1.Secret, error) {
	found := map[string]*corev1.Secret{}
	for _, name := range names {
		secret, err := kube.FoundOrNil(o.Kube.CoreV1().Secrets(c.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{}))
		if err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		}
		if secret != nil {
			found[name] = secret
		}
	}
	return found, nil
}

// describeCertificates is what was found about the certificates.
func (v *View) describeCertificates(check certificateCheck) {
	v.Expiry, v.domain, v.bundles = check.status.NotAfter, check.domain, check.bundles
	v.Observed.Certificates = state.Certificates{
		Missing: check.status.Missing, Problems: check.status.Problems, MissingSANs: check.status.MissingSANs,
		Due: check.status.Due, Ending: check.status.Ending.Secret, Ends: check.status.Ending.At, Notice: check.status.Ending.Notice,
		ForeignClients: check.clients.Foreign,
	}
	for _, w := range check.clients.Wanting {
		v.Observed.Certificates.Clients = append(v.Observed.Certificates.Clients, state.ClientCertificate(w))
	}
	if r := check.status.Rotation; r != nil {
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
	g.shown = o.Shake(ctx, q)
	return o.describe(g)
}

// certificateCheck is what was found in one version of a cluster's Secrets.
type certificateCheck struct {
	status  certs.Status
	clients certs.Clients
	// domain is what domainChanges says: to read a certificate in every pass
	// would cost more than all the rest of it.
	domain []state.Change
	at     time.Time
	// bundles are what members are to trust of another issuer's certificates, and what is kept.
	bundles bundles
	// secrets are those that were checked, with those that quorate has made, and digest the file
	// that wanted them.
	secrets, made map[string]*corev1.Secret

	digest string
}

// certificateRecheck is how long a finding about unchanged Secrets is kept; only
// time can change it, and certificates live for days.
const certificateRecheck = time.Minute

// checkCertificates checks the Secrets, unless the very same objects were checked a
// moment ago and none has expired since. A Secret that has changed is another object.
func (o *Observer) checkCertificates(c desired.Cluster, secrets, made map[string]*corev1.Secret) certificateCheck {
	if len(c.Problems) > 0 {
		return certificateCheck{}
	}
	now := o.Now()
	if k := o.checked.Get(c.Key()); k.digest == c.Digest && maps.Equal(k.secrets, secrets) && maps.Equal(k.made, made) && now.Sub(k.at) < certificateRecheck && now.Before(k.status.NotAfter) {
		return k
	}
	daemons := o.Options.Render.ClusterDomain
	check := certificateCheck{
		at: now, secrets: secrets, made: made, digest: c.Digest, bundles: bundlesOf(c, secrets, made),
		status: certs.Check(c.EtcdCluster, daemons, secrets, now), domain: fromCerts(certs.DomainChanges(secrets, c.EtcdCluster, daemons)),
		clients: certs.CheckClients(c.EtcdCluster, secrets, now),
	}
	o.checked.Put(c.Key(), check)
	return check
}
