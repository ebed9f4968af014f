package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Status says how a cluster's certificates are.
type Status struct {
	// Missing names the Secrets that do not exist, in the order of creation.
	Missing []string
	// Problems are phrases for people, one a defect, such as "orders-peer
	// expired on 2027-03-01". None means that all that exist are good.
	Problems []string
	// MissingSANs names the Secrets whose certificate is good but for the names of
	// members that the cluster has none of yet.
	MissingSANs []string
	// Due names the Secrets whose certificate is past two thirds of its life, or over,
	// is good otherwise, and can be issued again by its authority for longer.
	Due []string
	// Ending is the certificate that is to be replaced first of those that quorate cannot
	// issue again: an authority, or one in a Secret that the file names. Zero for none.
	Ending Ending
	// NotAfter is when the first of them expires, authorities included. Zero
	// when none could be read.
	NotAfter time.Time
	// Rotation is how far a change of the authorities is; nil where quorate issues nothing.
	Rotation *state.Rotation
}

// Ending is a certificate that quorate cannot issue again, when it expires, and from when
// on its owner should have replaced it.
type Ending struct {
	Secret     string
	At, Notice time.Time
}

// maxNotice is how long before its end a certificate should have been replaced: the last
// sixth of its life, as what renews one automatically does so at two thirds, and
// at most this.
const maxNotice = 30 * 24 * time.Hour

// Check compares the cluster's certificates with what it needs at
// the time now. secrets holds the Secrets by name. A cluster without TLS needs
// none. Secrets that the file names are somebody else's to make: one that is not
// there is a problem and never Missing. clusterDomain is the daemon's, for a
// cluster that names none.
func Check(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, now time.Time) Status {
	var status Status
	switch {
	case !naming.UsesTLS(c):
		return status
	case !naming.ManagesTLS(c):
		status.checkNamed(c, secrets, now)
		return status
	}
	pairs := pairsOf(c, clusterDomain, secrets)
	for _, p := range pairs {
		status.checkAuthorities(c, p, secrets, now)
	}
	for _, p := range pairs {
		for _, l := range p.leaves {
			status.checkLeaf(c, l, secrets[l.Secret], p, now)
		}
	}
	status.Rotation = rotationOf(c, pairs, secrets, now)
	return status
}

// problem records a defect of the named Secret, once.
func (s *Status) problem(secret, format string, args ...any) {
	if text := secret + " " + fmt.Sprintf(format, args...); !slices.Contains(s.Problems, text) {
		s.Problems = append(s.Problems, text)
	}
}

// usable reports a Secret that is missing or another cluster's.
func (s *Status) usable(c schema.EtcdCluster, name string, secret *corev1.Secret) bool {
	if secret == nil {
		s.Missing = append(s.Missing, name)
		return false
	}
	if owner := otherOwner(c, secret); owner != "" {
		s.problem(name, "belongs to the cluster %s", owner)
		return false
	}
	return true
}

// checkDates records the expiry of a certificate that quorate cannot issue again, and
// whether now is outside its life.
func (s *Status) checkDates(name string, cert *x509.Certificate, now time.Time) {
	s.ends(name, cert)
	s.checkLife(name, cert, now)
}

// ends records when a certificate expires that quorate cannot issue again.
func (s *Status) ends(name string, cert *x509.Certificate) {
	s.NotAfter = earliestTime(s.NotAfter, cert.NotAfter)
	notice := cert.NotAfter.Add(-min(maxNotice, cert.NotAfter.Sub(cert.NotBefore)/6))
	if s.Ending.At.IsZero() || notice.Before(s.Ending.Notice) {
		s.Ending = Ending{name, cert.NotAfter, notice}
	}
}

// checkLife records whether now is outside the certificate's life.
func (s *Status) checkLife(name string, cert *x509.Certificate, now time.Time) {
	if now.After(cert.NotAfter) {
		s.problem(name, "expired on %s", day(cert.NotAfter))
	}
	if now.Before(cert.NotBefore) {
		s.problem(name, "is not valid before %s", cert.NotBefore.UTC().Format(time.RFC3339))
	}
}

// checkAuthorities checks an authority's Secret, and that of the next one where there is one.
// That one cannot sign any more is no problem while its certificate is known: it asks for the
// next one, see Rotation.
func (s *Status) checkAuthorities(c schema.EtcdCluster, p pair, secrets map[string]*corev1.Secret, now time.Time) {
	signs := slices.ContainsFunc(p.leaves, func(l Leaf) bool { return secrets[l.Secret] != nil })
	switch present := p.present; {
	case secrets[p.name] == nil && !signs:
		s.usable(c, p.name, nil)
	case secrets[p.name] != nil && !s.usable(c, p.name, secrets[p.name]):
	case present == nil:
		s.problem(p.name, "is gone, and nothing tells any more what members trust")
	case present.cert == nil || !present.cert.IsCA:
		s.Problems = append(s.Problems, present.lost)
	case present.over(now):
		s.ends(p.name, present.cert) // which asks for the next one, see Rotation
	default:
		s.checkDates(p.name, present.cert, now)
	}
	name := p.name + naming.NextSuffix
	if p.next == nil || !s.usable(c, name, p.next.secret) {
		return
	}
	if p.next.lost != "" {
		s.Problems = append(s.Problems, p.next.lost)
		return
	}
	s.checkLife(name, p.next.cert, now)
}

// checkLeaf checks a leaf's Secret against what the cluster needs of it and, if
// it can be read, against its authority.
func (s *Status) checkLeaf(c schema.EtcdCluster, l Leaf, secret *corev1.Secret, p pair, now time.Time) {
	if !s.usable(c, l.Secret, secret) {
		return
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		s.problem(l.Secret, "has no usable %s and %s: %v", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
		return
	}
	s.NotAfter = earliestTime(s.NotAfter, pair.Leaf.NotAfter)
	signer := p.signerOf(pair.Leaf)
	if due(pair.Leaf, signer, c.Spec.TLS.CertificateLife(), now) {
		s.Due = append(s.Due, l.Secret)
	} else if !signer.over(now) {
		s.checkLife(l.Secret, pair.Leaf, now)
	}
	s.checkUse(l, pair.Leaf)
	s.checkMembers(c, l, pair.Leaf)
	if signer == nil && p.present != nil && p.present.cert != nil {
		s.problem(l.Secret, "is not signed by %s", l.Authority)
	}
	// The ca.crt is what this leaf's holder trusts: it must be the authority of
	// those that it talks to, which is its own.
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data[naming.AuthorityCertKey])
	if !leafTrusted(roots, pair.Leaf) {
		s.problem(l.Secret, "does not trust its own authority: its %s is not that of %s", naming.AuthorityCertKey, l.Authority)
	}
}

// due reports whether a leaf is to be issued again: two thirds of its life are over, or it lives
// longer than the file wants, and its authority can give it another life. One that ends with its
// authority cannot live longer, however often it is issued.
func due(leaf *x509.Certificate, signer *authority, life time.Duration, now time.Time) bool {
	if !signer.valid(now) {
		return false
	}
	if leaf.NotAfter.Sub(leaf.NotBefore) > life+leafSkew(life)+time.Second {
		return true
	}
	renewal := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) * 2 / 3)
	return !now.Before(renewal) && earliestTime(now.Add(life), signer.cert.NotAfter).After(leaf.NotAfter)
}

// checkMembers compares the members that a certificate names with those that are
// wanted. One that names the first, but not all, was issued for fewer.
func (s *Status) checkMembers(c schema.EtcdCluster, l Leaf, cert *x509.Certificate) {
	missing := func(host string) bool { return cert.VerifyHostname(host) != nil }
	for i, names := range l.Members[:min(len(l.Members), int(c.Spec.MostMembers()))] {
		absent := slices.IndexFunc(names, missing)
		switch {
		case absent < 0:
		case slices.ContainsFunc(l.Members[0], missing):
			s.problem(l.Secret, "does not cover %s", names[absent])
		case i > 0 && !slices.Contains(s.MissingSANs, l.Secret):
			s.MissingSANs = append(s.MissingSANs, l.Secret)
		}
	}
}

// checkUse compares the names and usages of a certificate with what it is for.
func (s *Status) checkUse(l Leaf, cert *x509.Certificate) {
	for _, host := range l.hosts {
		if cert.VerifyHostname(host) != nil {
			s.problem(l.Secret, "does not cover %s", host)
		}
	}
	// A certificate that names no usage at all may be used for anything.
	anything := len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) == 0 || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
	for _, usage := range l.usages {
		if !anything && !slices.Contains(cert.ExtKeyUsage, usage) {
			s.problem(l.Secret, "lacks the usage %s", usage)
		}
	}
}

// leafTrusted reports whether the leaf chains to the roots. Dates are not its business:
// it looks at the middle of the leaf's life.
func leafTrusted(roots *x509.CertPool, leaf *x509.Certificate) bool {
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots:       roots,
		CurrentTime: middleOf(leaf),
		KeyUsages:   []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}

// firstCertificate decodes the first PEM block.
func firstCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

// earliestTime is the earlier of two times; a zero one does not count.
func earliestTime(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// day is a date for people.
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
