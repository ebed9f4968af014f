// Package inspect reads the Secrets with the certificates of a cluster, quorate's own and another
// program's, and says what is right and wrong with them.
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

const (
	// Recheck is the shortest time for which a finding about unchanged Secrets is kept, and how often
	// those that another program makes are read.
	Recheck = time.Minute
	// maxRecheck is the longest.
	maxRecheck = time.Hour
)

// Checks keeps the last finding about each cluster, which saves work only. Its zero value is ready.
type Checks struct{ kept memo.Map[Found] }

// Question is whose certificates are asked for.
type Question struct {
	// Cluster is the cluster in the mode of its certificates.
	Cluster desired.Cluster
	Modes   modes.Modes
	// ClusterDomain is the DNS domain that the daemon was given.
	ClusterDomain string
	Now           time.Time
}

// Found is what was found in one version of a cluster's Secrets.
type Found struct {
	Status  certs.Status
	Clients certs.Clients
	// Issuers is how the certificates of both issuers are; nil where there is one of them.
	Issuers *certs.Issuers
	// Domain is a change of the DNS domain that stands in certificates: to read one in every pass
	// would cost more than all the rest of it.
	Domain []certs.Change
	// Wanted is the bundle that another issuer's Secrets have, "" where they say none. Kept are the
	// bundles that are kept, the oldest first, and Refused is what each of them does not trust of
	// the certificates, by its name.
	Wanted  string
	Kept    []*corev1.Secret
	Refused map[string][]string

	at time.Time
	// secrets are those that were checked, with those that quorate has made, and digest the file
	// that wanted them.
	secrets, made map[string]*corev1.Secret
	digest        string
}

// Forget drops what is kept of a cluster.
func (k *Checks) Forget(key string) { k.kept.Forget(key) }

// ByOthers reports whether another program issues the certificates of a cluster.
func ByOthers(c schema.EtcdCluster) bool { return naming.UsesTLS(c) && !naming.ManagesTLS(c) }

// Secrets are those with the cluster's certificates: quorate's own from
// the caches, or those that the file names from the API server, or both, where
// both have issued some. Those of the file carry no label of quorate's, and never
// get one, so the caches do not hold them; while nothing is wrong with them they
// are read once in Recheck.
func (k *Checks) Secrets(ctx context.Context, client kubernetes.Interface, q Question, own map[string]*corev1.Secret) (map[string]*corev1.Secret, error) {
	c := q.Cluster
	if len(c.Problems) > 0 || !naming.UsesTLS(c.EtcdCluster) {
		return own, nil
	}
	var err error
	found := map[string]*corev1.Secret{}
	if q.Modes.Has(schema.TLSSecrets, own, c.EtcdCluster) {
		if found, err = k.named(ctx, client, q); err != nil {
			return nil, err
		}
	}
	if !q.Modes.Has(schema.TLSManaged, own, c.EtcdCluster) {
		return found, nil
	}
	managed := c
	managed.EtcdCluster = certs.ManagedBy(c.EtcdCluster)
	if own, err = withClients(ctx, client, managed, own); err != nil || len(found) == 0 {
		return own, err
	}
	maps.Copy(found, own)
	return found, nil
}

// named are the Secrets that the file names.
func (k *Checks) named(ctx context.Context, client kubernetes.Interface, q Question) (map[string]*corev1.Secret, error) {
	c := q.Cluster
	names := []string{c.Spec.TLS.Secrets.Server, c.Spec.TLS.Secrets.Peer, c.Spec.TLS.Secrets.Client}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	last := k.kept.Get(c.Key())
	if last.digest != c.Digest || last.defective() || q.Now.Sub(last.at).Abs() >= Recheck {
		return readSecrets(ctx, client, c, names...)
	}
	found := map[string]*corev1.Secret{}
	for _, name := range names {
		if last.secrets[name] != nil {
			found[name] = last.secrets[name]
		}
	}
	return found, nil
}

// withClients adds to quorate's own Secrets what stands where those of the applications are
// to be and is not in the caches, because somebody else made it.
func withClients(ctx context.Context, client kubernetes.Interface, c desired.Cluster, own map[string]*corev1.Secret) (map[string]*corev1.Secret, error) {
	absent := slices.DeleteFunc(certs.ClientSecrets(c.EtcdCluster), func(name string) bool { return own[name] != nil })
	if len(absent) == 0 {
		return own, nil
	}
	found, err := readSecrets(ctx, client, c, absent...)
	if err != nil {
		return nil, err
	}
	maps.Copy(found, own)
	return found, nil
}

// readSecrets reads Secrets of the cluster's namespace from the API server, by name. Those
// that do not exist are left out.
func readSecrets(ctx context.Context, client kubernetes.Interface, c desired.Cluster, names ...string) (map[string]*corev1.Secret, error) {
	found := map[string]*corev1.Secret{}
	for _, name := range names {
		secret, err := kube.FoundOrNil(client.CoreV1().Secrets(c.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{}))
		if err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		}
		if secret != nil {
			found[name] = secret
		}
	}
	return found, nil
}

// defective reports whether anything is wrong with a certificate.
func (f Found) defective() bool {
	return len(f.Status.Problems) > 0 || f.Issuers != nil && len(f.Issuers.Other.Problems) > 0
}

// keep is for how long a finding about unchanged Secrets is kept. Only time can change it, and that
// within a hundredth of what the first certificate has left is soon enough: to read the certificates and to
// verify who signed them, each minute, is much of what a cluster at rest costs.
func (f Found) keep() time.Duration {
	if f.defective() {
		return Recheck
	}
	return min(max(f.Status.NotAfter.Sub(f.at)/100, Recheck), maxRecheck)
}

// Check checks the Secrets, unless the very same objects were checked a moment ago and none has
// expired since. A Secret that has changed is another object. made are those that quorate has made.
func (k *Checks) Check(q Question, secrets, made map[string]*corev1.Secret) Found {
	c, now := q.Cluster, q.Now
	if len(c.Problems) > 0 {
		return Found{}
	}
	last := k.kept.Get(c.Key())
	same := last.digest == c.Digest && maps.Equal(last.secrets, secrets) && maps.Equal(last.made, made)
	// One from the future is of a clock that was ahead.
	current := now.Sub(last.at).Abs() < last.keep() && now.Before(last.Status.NotAfter)
	if same && current && q.both(last.Status, made) == (last.Issuers != nil) {
		return last
	}
	found := Found{
		Status: certs.Check(c.EtcdCluster, q.ClusterDomain, secrets, now), Clients: certs.CheckClients(c.EtcdCluster, secrets, now),
		Domain: certs.DomainChanges(secrets, c.EtcdCluster, q.ClusterDomain),
		at:     now, secrets: secrets, made: made, digest: c.Digest,
	}
	found.bundles(c.EtcdCluster)
	if q.both(found.Status, made) {
		all := maps.Clone(made)
		maps.Copy(all, secrets)
		found.Issuers = new(certs.CheckIssuers(c.EtcdCluster, q.ClusterDomain, all, now))
	}
	k.kept.Put(c.Key(), found)
	return found
}

// both reports whether certificates of both issuers count, which the modes of the members decide, too.
func (q Question) both(s certs.Status, made map[string]*corev1.Secret) bool {
	return q.Modes.Both(s.Rotation, made, q.Cluster.EtcdCluster)
}

// bundles finds what members trust, and what of the certificates it does not.
func (f *Found) bundles(c schema.EtcdCluster) {
	f.Refused = map[string][]string{}
	if !naming.UsesTLS(c) {
		return
	}
	for _, s := range f.made {
		if certs.KeepsTrust(c, s) {
			f.Kept = append(f.Kept, s)
			f.Refused[s.Name] = certs.Refused(c, f.secrets, s)
		}
	}
	if wanted := certs.NamedTrust(c, f.secrets); ByOthers(c) && wanted != nil {
		f.Wanted = wanted.Name
	}
	slices.SortFunc(f.Kept, func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}
