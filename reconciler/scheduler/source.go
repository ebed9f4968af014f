package scheduler

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
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// source is the member that gives a backup, as far as that is known.
type source struct {
	// cluster is the key under which connections are kept, and stranger says that
	// quorate does not run it.
	cluster  string
	stranger bool
	target   etcd.Target
	// tlsSecret is the Secret with the certificates for target, if any.
	tlsSecret string
	// rootSecret is the Secret with the passwords of user root, where there may be one.
	rootSecret string
	member     state.Member
	// name and version for the URL of the object.
	name, version string
}

// findSource asks the members and chooses the one to take a backup from. Where
// there is none yet, awaited says what is missing.
func (s *Scheduler) findSource(ctx context.Context, q desired.Backup) (from source, awaited string, err error) {
	if q.Spec.Source.ClusterURL != "" {
		return s.findExternal(ctx, q)
	}
	key := q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName
	c, named := s.Clusters.Get(key)
	switch {
	case !named:
		return from, "there is no EtcdCluster " + key + " in Git", nil
	case len(c.Problems) > 0:
		return from, "the file of " + key + " has errors, and says nothing about how to reach it until they are mended", nil
	}
	v, err := s.Observer.Reach(ctx, c)
	if err != nil {
		return from, "", fmt.Errorf("look at %s: %w", key, err)
	}
	switch rec := v.Observed.Record; {
	case v.Observed.RecordProblem != "":
		return from, v.Observed.RecordProblem, nil
	case !rec.Formed():
		return from, key + " has not formed yet", nil
	case rec.Owner != nil && !s.Options.Owner.Nobody() && !rec.Owner.Is(s.Options.Owner):
		return from, key + " is looked after by " + rec.Owner.String() + ", and so are its backups", nil
	case c.Spec.State == schema.StateHibernated:
		return from, key + " is hibernated: a backup was taken before, and nothing changes until it wakes", nil
	}
	round := s.Members.Round(ctx, key, v.Endpoints, true)
	m, problem := schedule.Source(v.Record.ClusterID, v.Record.Members, round)
	if problem != "" {
		return from, problem, nil
	}
	member, err := v.Target(m.Name, m.ID)
	if err != nil {
		return from, err.Error(), nil
	}
	from = source{
		cluster: key, target: member, member: m,
		name: c.Metadata.Name, version: c.Spec.Version,
	}
	if from.tlsSecret = member.Secret; from.tlsSecret == "" && c.Spec.Auth != nil {
		from.rootSecret = schema.RootSecret(c.Metadata.Name)
	}
	return from, "", nil
}

// findExternal looks at a cluster that quorate does not run: at the one member
// that answers under the URL.
func (s *Scheduler) findExternal(ctx context.Context, q desired.Backup) (from source, awaited string, err error) {
	endpoint, awaited, err := s.externalEndpoint(ctx, q)
	if err != nil || awaited != "" {
		return from, awaited, err
	}
	round := s.Members.Round(ctx, q.Key(), []etcd.Endpoint{endpoint}, true)
	m, problem := schedule.Source("", nil, round)
	if problem != "" {
		s.Members.Forget(q.Key())
		return from, problem, nil
	}
	return source{
		cluster: q.Key(), stranger: true, target: etcd.Target{Endpoint: endpoint, ClusterID: round.ClusterID, ID: m.ID}, member: m,
		name: q.Metadata.Name, version: m.Version, tlsSecret: q.Spec.Source.TLS.SecretName,
	}, "", nil
}

// externalEndpoint is how to reach a cluster by its URL. It has no member's name:
// it is whichever member answers.
func (s *Scheduler) externalEndpoint(ctx context.Context, q desired.Backup) (e etcd.Endpoint, awaited string, err error) {
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
		secret, err = kube.FoundOrNil(s.Kube.CoreV1().Secrets(q.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{}))
		switch {
		case err != nil:
			return e, "", fmt.Errorf("read Secret %s: %w", name, err)
		case secret == nil:
			return e, fmt.Sprintf("the Secret %s/%s of source.tls does not exist: create it with the key %s, and %s and %s where the cluster asks for a certificate",
				q.Metadata.Namespace, name, naming.AuthorityCertKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey), nil
		}
		if err := kube.Allowed(secret); err != nil {
			return e, err.Error(), nil
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
