package reconciler

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// backupSource is the member that gives a backup, as far as that is known.
type backupSource struct {
	// cluster is the key under which connections are kept, and stranger says that
	// quorate does not run it.
	cluster  string
	stranger bool
	target   etcd.Target
	// tlsSecret is the Secret with the certificates for target, if any.
	tlsSecret string
	member    state.Member
	// name and version for the URL of the object.
	name, version string
}

// findSource asks the members and chooses the one to take a backup from. Where
// there is none yet, awaited says what is missing.
func (s *Scheduler) findSource(ctx context.Context, q desired.Backup) (from backupSource, awaited string, err error) {
	if q.Spec.Source.ClusterURL != "" {
		return s.findStranger(ctx, q)
	}
	key := q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName
	c, named := s.clusters.Get(key)
	switch {
	case !named:
		return from, "there is no EtcdCluster " + key + " in Git", nil
	case len(c.Problems) > 0:
		return from, "the file of " + key + " has errors, and says nothing about how to reach it until they are mended", nil
	}
	v, err := s.observer.lookAtMembers(ctx, c)
	if err != nil {
		return from, "", fmt.Errorf("look at %s: %w", key, err)
	}
	switch rec := v.observed.Record; {
	case v.observed.RecordProblem != "":
		return from, v.observed.RecordProblem, nil
	case !rec.Formed():
		return from, key + " has not formed yet", nil
	case rec.Owner != nil && !s.options.Owner.Nobody() && !rec.Owner.Is(s.options.Owner):
		return from, key + " is looked after by " + rec.Owner.String() + ", and so are its backups", nil
	case c.Spec.State == schema.StateHibernated:
		return from, key + " is hibernated: a backup was taken before, and nothing changes until it wakes", nil
	}
	round := s.etcd.Round(ctx, key, v.endpoints, true)
	m, problem := plan.BackupSource(v.record.ClusterID, v.record.Members, round)
	if problem != "" {
		return from, problem, nil
	}
	member, err := v.target(m.Name, m.ID)
	if err != nil {
		return from, err.Error(), nil
	}
	from = backupSource{
		cluster: key, target: member, member: m,
		name: c.Metadata.Name, version: c.Spec.Version,
	}
	if naming.UsesTLS(c.EtcdCluster) {
		from.tlsSecret = naming.TLSSecrets(c.EtcdCluster).Client
	}
	return from, "", nil
}

// lookAtMembers is as much of a look at a cluster as a backup needs.
func (o *Observer) lookAtMembers(ctx context.Context, c desired.Cluster) (*view, error) {
	v := &view{cluster: c.Identified()}
	live, err := o.cache.read(c)
	if err != nil {
		return nil, err
	}
	v.observeRecord(live.record)
	if live.secrets, err = o.secretsOf(ctx, v.cluster, live.secrets); err != nil {
		return nil, err
	}
	v.findEndpoints(live)
	return v, nil
}

// findStranger looks at a cluster that quorate does not run: at the one member
// that answers under the URL.
func (s *Scheduler) findStranger(ctx context.Context, q desired.Backup) (from backupSource, awaited string, err error) {
	endpoint, awaited, err := s.strangerEndpoint(ctx, q)
	if err != nil || awaited != "" {
		return from, awaited, err
	}
	round := s.etcd.Round(ctx, q.Key(), []etcd.Endpoint{endpoint}, true)
	m, problem := plan.BackupSource("", nil, round)
	if problem != "" {
		s.etcd.Forget(q.Key())
		return from, problem, nil
	}
	return backupSource{
		cluster: q.Key(), stranger: true, target: etcd.Target{Endpoint: endpoint, ClusterID: round.ClusterID, ID: m.ID}, member: m,
		name: q.Metadata.Name, version: m.Version, tlsSecret: q.Spec.Source.TLS.SecretName,
	}, "", nil
}

// strangerEndpoint is how to reach a cluster by its URL. It has no member's name:
// it is whichever member answers.
func (s *Scheduler) strangerEndpoint(ctx context.Context, q desired.Backup) (e etcd.Endpoint, awaited string, err error) {
	from := q.Spec.Source
	u, err := url.Parse(from.ClusterURL)
	if err != nil {
		return e, "", fmt.Errorf("%s: clusterURL is not a URL", q.Key())
	}
	port := u.Port()
	if port == "" {
		port = strconv.Itoa(naming.ClientPort)
	}
	e = etcd.Endpoint{Host: u.Hostname(), Address: net.JoinHostPort(u.Hostname(), port), Incarnation: from.ClusterURL}
	if u.Scheme != "https" {
		return e, "", nil
	}
	secret := &corev1.Secret{}
	if name := from.TLS.SecretName; name != "" {
		secret, err = kube.FoundOrNil(s.kube.CoreV1().Secrets(q.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{}))
		switch {
		case err != nil:
			return e, "", fmt.Errorf("read Secret %s: %w", name, err)
		case secret == nil:
			return e, fmt.Sprintf("the Secret %s/%s of source.tls does not exist: create it with the key %s, and %s and %s where the cluster asks for a certificate",
				q.Metadata.Namespace, name, naming.AuthorityCertKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey), nil
		}
	}
	config, problem := etcd.ExternalTLS(secret, e.Host)
	if problem != "" {
		return e, fmt.Sprintf("the Secret %s/%s of source.tls %s", q.Metadata.Namespace, secret.Name, problem), nil
	}
	e.Incarnation += "/" + secret.ResourceVersion
	e.TLS = etcd.FixedTLS(config)
	return e, "", nil
}
