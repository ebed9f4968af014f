package reconciler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// backupSource is the member that gives a backup, as far as that is known.
type backupSource struct {
	// cluster is the key under which connections are kept, and stranger says that
	// quorate does not run it.
	cluster  string
	stranger bool
	target   Target
	// tlsSecret is the Secret with the certificates for target, if any.
	tlsSecret string
	member    plan.Member
	// name and version for the URL of the object.
	name, version string
}

// findSource asks the members and chooses the one to take a backup from. Where
// there is none yet, awaited says what is missing.
func (r *Reconciler) findSource(ctx context.Context, q Request) (s backupSource, awaited string, err error) {
	if q.Spec.Source.ClusterURL != "" {
		return r.findStranger(ctx, q)
	}
	key := q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName
	c, named := r.wish(key)
	switch {
	case !named:
		return s, "there is no EtcdCluster " + key + " in Git", nil
	case len(c.Problems) > 0:
		return s, "the file of " + key + " has errors, and says nothing about how to reach it until they are mended", nil
	}
	v, err := r.lookAtMembers(ctx, c)
	if err != nil {
		return s, "", fmt.Errorf("look at %s: %w", key, err)
	}
	switch record := v.observed.Record; {
	case v.observed.RecordProblem != "":
		return s, v.observed.RecordProblem, nil
	case !record.Formed():
		return s, key + " has not formed yet", nil
	case record.Owner != nil && !r.options.Owner.Nobody() && !record.Owner.Is(r.options.Owner):
		return s, key + " is looked after by " + record.Owner.String() + ", and so are its backups", nil
	case c.Spec.State == schema.StateHibernated:
		return s, key + " is hibernated: a backup was taken before, and nothing changes until it wakes", nil
	}
	round := r.etcd.Round(ctx, key, v.endpoints, true)
	m, problem := plan.BackupSource(v.record.ClusterID, v.record.Members, round)
	if problem != "" {
		return s, problem, nil
	}
	member, err := v.target(m.Name, m.ID)
	if err != nil {
		return s, err.Error(), nil
	}
	s = backupSource{
		cluster: key, target: member, member: m,
		name: c.Metadata.Name, version: c.Spec.Version,
	}
	if usesTLS(c.EtcdCluster) {
		s.tlsSecret = tlsSecrets(c.EtcdCluster).Client
	}
	return s, "", nil
}

// lookAtMembers is as much of a look at a cluster as a backup needs.
func (r *Reconciler) lookAtMembers(ctx context.Context, c Cluster) (*view, error) {
	v := &view{cluster: c.identified()}
	live, err := r.cache.read(c)
	if err != nil {
		return nil, err
	}
	v.observeRecord(live.record)
	if live.secrets, err = r.secretsOf(ctx, v.cluster, live.secrets); err != nil {
		return nil, err
	}
	v.findEndpoints(live)
	return v, nil
}

// findStranger looks at a cluster that quorate does not run: at the one member
// that answers under the URL.
func (r *Reconciler) findStranger(ctx context.Context, q Request) (s backupSource, awaited string, err error) {
	endpoint, awaited, err := r.strangerEndpoint(ctx, q)
	if err != nil || awaited != "" {
		return s, awaited, err
	}
	round := r.etcd.Round(ctx, q.Key(), []Endpoint{endpoint}, true)
	m, problem := plan.BackupSource("", nil, round)
	if problem != "" {
		r.etcd.Forget(q.Key())
		return s, problem, nil
	}
	return backupSource{
		cluster: q.Key(), stranger: true, target: Target{Endpoint: endpoint, ClusterID: round.ClusterID, ID: m.ID}, member: m,
		name: q.Metadata.Name, version: m.Version, tlsSecret: q.Spec.Source.TLS.SecretName,
	}, "", nil
}

// strangerEndpoint is how to reach a cluster by its URL. It has no member's name:
// it is whichever member answers.
func (r *Reconciler) strangerEndpoint(ctx context.Context, q Request) (e Endpoint, awaited string, err error) {
	from := q.Spec.Source
	u, err := url.Parse(from.ClusterURL)
	if err != nil {
		return e, "", fmt.Errorf("%s: clusterURL is not a URL", q.Key())
	}
	port := u.Port()
	if port == "" {
		port = strconv.Itoa(clientPort)
	}
	e = Endpoint{Host: u.Hostname(), Address: net.JoinHostPort(u.Hostname(), port), Incarnation: from.ClusterURL}
	if u.Scheme != "https" {
		return e, "", nil
	}
	secret := &corev1.Secret{}
	if name := from.TLS.SecretName; name != "" {
		secret, err = foundOrNil(r.kube.CoreV1().Secrets(q.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{}))
		switch {
		case err != nil:
			return e, "", fmt.Errorf("read Secret %s: %w", name, err)
		case secret == nil:
			return e, fmt.Sprintf("the Secret %s/%s of source.tls does not exist: create it with the key %s, and %s and %s where the cluster asks for a certificate",
				q.Metadata.Namespace, name, authorityCertKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey), nil
		}
	}
	config, problem := strangerTLS(secret, e.Host)
	if problem != "" {
		return e, fmt.Sprintf("the Secret %s/%s of source.tls %s", q.Metadata.Namespace, secret.Name, problem), nil
	}
	e.Incarnation += "/" + secret.ResourceVersion
	e.TLS = sameTLS(config)
	return e, "", nil
}

// sameTLS gives every connection one configuration.
func sameTLS(config *tls.Config) func() (*tls.Config, error) {
	return func() (*tls.Config, error) { return config, nil }
}

// strangerTLS is the connection's configuration. Without ca.crt the system's
// authorities are trusted.
func strangerTLS(secret *corev1.Secret, host string) (config *tls.Config, problem string) {
	config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if ca := secret.Data[authorityCertKey]; len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, "has no usable " + authorityCertKey + ": no certificate in it"
		}
	}
	cert, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(cert) == 0 && len(key) == 0 {
		return config, ""
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Sprintf("has no usable %s and %s: %v", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, ""
}
