package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// namedLeaves lists what the Secrets that the file names must be good for. The
// names with the cluster's domain are asked for only where the file names the
// domain: members and quorate use those without.
//
//	Secret  usages                  names
//	server  serverAuth, clientAuth  localhost, the client Service, each member
//	peer    serverAuth, clientAuth  each member
//	client  clientAuth              –
func namedLeaves(c schema.EtcdCluster) []Leaf {
	domain, secrets := c.Spec.Network.ClusterDomain, naming.TLSSecrets(c)
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	members := slices.Concat(memberHosts(c, domain)[:c.Spec.MostMembers()]...)
	service := naming.InClusterDomain(naming.ClientService(c.Metadata.Name)+"."+c.Metadata.Namespace+".svc", domain)
	return []Leaf{
		{Secret: secrets.Server, hosts: slices.Concat([]string{"localhost"}, service, members), usages: both},
		{Secret: secrets.Peer, hosts: members, usages: both},
		{Secret: secrets.Client, usages: both[1:]},
	}
}

// namedCertificate is a Secret that the file names, as far as it can be read.
type namedCertificate struct {
	secret string
	leaf   *x509.Certificate
	// between are the certificates that lead from the leaf to its authority.
	between *x509.CertPool
	roots   *x509.CertPool
}

// checkNamed checks the Secrets that the file names, each alone and those that
// meet each other together. Nothing of them is ever written.
func (s *Status) checkNamed(c schema.EtcdCluster, secrets map[string]*corev1.Secret, now time.Time) {
	read := map[string]*namedCertificate{}
	own := c
	own.Spec.TLS = schema.TLSSpec{}
	managed := naming.TLSSecrets(own)
	for _, l := range namedLeaves(c) {
		if _, done := read[l.Secret]; done {
			continue // one Secret may have two purposes
		}
		if slices.Contains([]string{managed.Server, managed.Peer, managed.Client}, l.Secret) {
			// With one name for both nobody could tell whose the Secret is.
			s.problem(l.Secret, "is the name that tls.mode Managed uses for its own Secrets: give the Secret another name")
		}
		read[l.Secret] = s.readNamed(l.Secret, secrets[l.Secret], now)
	}
	for _, l := range namedLeaves(c) {
		if read[l.Secret] != nil {
			s.checkUse(l, read[l.Secret].leaf)
		}
	}
	names := naming.TLSSecrets(c)
	server, peer, client := read[names.Server], read[names.Peer], read[names.Client]
	s.checkTrust(client, server, now) // quorate dials a member
	s.checkTrust(server, client, now) // and the member looks at its certificate
	s.checkTrust(server, server, now) // a member dials its own client port
	s.checkTrust(peer, peer, now)
}

// readNamed reads one Secret, nil when it is of no use.
func (s *Status) readNamed(name string, secret *corev1.Secret, now time.Time) *namedCertificate {
	keys := []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, naming.AuthorityCertKey}
	if name == "" {
		s.problem("spec.tls.secrets", "lacks a name: it stays in the file until no member shows a certificate of these Secrets any more")
		return nil
	}
	if secret == nil {
		s.problem(name, "does not exist: create the Secret with the keys %s", strings.Join(keys, ", "))
		return nil
	}
	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			s.problem(name, "has no key %s: it needs %s", key, strings.Join(keys, ", "))
			return nil
		}
	}
	n, err := shownIn(secret)
	if err != nil {
		s.problem(name, "has no usable %s and %s: %v", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
		return nil
	}
	n.secret = name
	if !n.roots.AppendCertsFromPEM(secret.Data[naming.AuthorityCertKey]) {
		s.problem(name, "has no usable %s: no certificate in it", naming.AuthorityCertKey)
		return nil
	}
	s.checkDates(name, n.leaf, now)
	return n
}

// shownIn is what the holder of a Secret shows. Whom it trusts is left to the caller.
func shownIn(secret *corev1.Secret) (*namedCertificate, error) {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err
	}
	n := &namedCertificate{leaf: pair.Leaf, between: x509.NewCertPool(), roots: x509.NewCertPool()}
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			n.between.AddCert(cert)
		}
	}
	return n, nil
}

// checkTrust wants what one Secret shows to lead to an authority that another
// one trusts, and that authority to be valid now.
func (s *Status) checkTrust(trusting, shown *namedCertificate, now time.Time) {
	if trusting == nil || shown == nil {
		return // which has been said
	}
	chain := trusting.chain(shown)
	if chain == nil {
		s.problem(trusting.secret, "does not trust %s: its %s is not the authority that signed it, which must stay in it until %s is signed by another", shown.secret, naming.AuthorityCertKey, shown.secret)
		return
	}
	for _, issuer := range chain[1:] {
		s.ends(shown.secret, issuer)
		if now.After(issuer.NotAfter) {
			s.problem(shown.secret, "is signed by an authority that expired on %s", day(issuer.NotAfter))
		}
	}
}

// chain leads from what another Secret shows to an authority that this one
// trusts; nil when there is no such way. Whether it is valid today is not asked:
// it looks at times at which the leaf was.
func (n *namedCertificate) chain(shown *namedCertificate) []*x509.Certificate {
	for _, at := range []time.Time{middleOf(shown.leaf), shown.leaf.NotBefore} {
		chains, err := shown.leaf.Verify(x509.VerifyOptions{
			Roots: n.roots, Intermediates: shown.between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		if err == nil {
			return chains[0]
		}
	}
	return nil
}

// middleOf is the middle of a certificate's life.
func middleOf(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 2)
}
