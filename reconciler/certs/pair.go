package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// pair is an authority with the one that takes its place, and what the two sign.
type pair struct {
	// name is the Secret of the present one.
	name          string
	present, next *authority
	leaves        []Leaf
	// clients are those of applications that have a Secret of quorate's.
	clients []Leaf
}

// all are the certificates that the two sign.
func (p pair) all() []Leaf { return slices.Concat(p.leaves, p.clients) }

// authority is one that signs, or that has signed.
type authority struct {
	// secret is nil where the certificate is only known from those that trust it.
	secret *corev1.Secret
	cert   *x509.Certificate
	// lost is why it cannot sign, "" where it can.
	lost string
}

// pairsOf reads the authorities of a cluster: that of clients, then that of members.
func pairsOf(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret) []pair {
	var pairs []pair
	for _, name := range []string{c.Metadata.Name + naming.AuthoritySuffix, c.Metadata.Name + naming.PeerAuthoritySuffix} {
		p := pair{name: name, leaves: Leaves(c, clusterDomain)}
		p.leaves = slices.DeleteFunc(p.leaves, func(l Leaf) bool { return l.Authority != name })
		p.present = readAuthority(secrets[name])
		if p.present == nil || p.present.cert == nil || !p.present.cert.IsCA {
			p.present = p.remembered(secrets)
		}
		p.next = readAuthority(secrets[name+naming.NextSuffix])
		for _, client := range clientsOf(c) {
			l := clientLeaf(c, client)
			if s := secrets[l.Secret]; s != nil && l.Authority == name && isClients(c, client, s) {
				p.clients = append(p.clients, l)
			}
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// readAuthority reads an authority's Secret; nil for none. What cannot be read has no
// certificate.
func readAuthority(secret *corev1.Secret) *authority {
	if secret == nil {
		return nil
	}
	a := &authority{secret: secret}
	cert, err := firstCertificate(secret.Data[naming.AuthorityCertKey])
	if err != nil {
		a.lost = fmt.Sprintf("%s has no usable %s: %v", secret.Name, naming.AuthorityCertKey, err)
		return a
	}
	a.cert = cert
	switch _, err := tls.X509KeyPair(secret.Data[naming.AuthorityCertKey], secret.Data[authorityKeyKey]); {
	case !cert.IsCA:
		a.lost = secret.Name + " is not an authority"
	case err != nil:
		a.lost = fmt.Sprintf("%s cannot sign: %v", secret.Name, err)
	}
	return a
}

// remembered is an authority whose Secret is gone, or holds none any more, by what is left of
// it: the holders of what it has signed trust it. nil where there is nothing.
func (p pair) remembered(secrets map[string]*corev1.Secret) *authority {
	for _, l := range p.leaves {
		if secrets[l.Secret] == nil {
			continue
		}
		leaf, err := firstCertificate(secrets[l.Secret].Data[corev1.TLSCertKey])
		if err != nil {
			continue
		}
		next := readAuthority(secrets[p.name+naming.NextSuffix])
		for _, trusted := range certificatesIn(secrets[l.Secret].Data[naming.AuthorityCertKey]) {
			if trusted.IsCA && leaf.CheckSignatureFrom(trusted) == nil && !next.is(trusted) {
				return &authority{secret: secrets[p.name], cert: trusted, lost: p.name + " is gone, or cannot be read, with its key"}
			}
		}
	}
	return readAuthority(secrets[p.name])
}

// is reports whether a certificate is the authority's own.
func (a *authority) is(cert *x509.Certificate) bool {
	return a != nil && a.cert != nil && cert != nil && a.cert.Equal(cert)
}

// signed reports whether the authority has signed a certificate.
func (a *authority) signed(leaf *x509.Certificate) bool {
	return a != nil && a.cert != nil && leaf.CheckSignatureFrom(a.cert) == nil
}

// valid reports whether the authority can sign at a time.
func (a *authority) valid(now time.Time) bool {
	return a != nil && a.cert != nil && a.lost == "" && !now.After(a.cert.NotAfter) && !now.Before(a.cert.NotBefore)
}

// over reports whether the authority has expired.
func (a *authority) over(now time.Time) bool {
	return a != nil && a.cert != nil && now.After(a.cert.NotAfter)
}

// nextCert is the certificate of the next authority, nil for none.
func (p pair) nextCert() *x509.Certificate {
	if p.next == nil {
		return nil
	}
	return p.next.cert
}

// signerOf is the one of the two that has signed a certificate; nil for neither.
func (p pair) signerOf(leaf *x509.Certificate) *authority {
	for _, a := range []*authority{p.present, p.next} {
		if a.signed(leaf) {
			return a
		}
	}
	return nil
}

// signsNow is the one that signs what is missing: the next one, once it has signed anything.
func (p pair) signsNow(secrets map[string]*corev1.Secret) *authority {
	for _, l := range p.leaves {
		if s := secrets[l.Secret]; s != nil {
			if leaf, err := firstCertificate(s.Data[corev1.TLSCertKey]); err == nil && p.next.signed(leaf) {
				return p.next
			}
		}
	}
	return p.present
}

// final is the one that is left when the next one has taken over.
func (p pair) final() *authority {
	if p.next != nil && p.next.cert != nil {
		return p.next
	}
	return p.present
}

// both are the two, as far as they are there, and once where they are the same.
func (p pair) both() []*authority {
	all := []*authority{p.present}
	if p.next != nil && p.next.cert != nil && (p.present == nil || !p.present.is(p.next.cert)) {
		all = append(all, p.next)
	}
	return all
}

// bundle is what trusts these authorities.
func bundle(authorities ...*authority) []byte {
	var text []byte
	for _, a := range authorities {
		if a != nil && a.cert != nil {
			text = append(text, encode(a.cert)...)
		}
	}
	return text
}

// trustOf is a trust that one of these makes of each pair.
func trustOf(pairs []pair, of func(pair) []byte) trust { return trust{of(pairs[0]), of(pairs[1])} }

func presentOf(p pair) []byte { return bundle(p.present) }
func bothOf(p pair) []byte    { return bundle(p.both()...) }
func finalOf(p pair) []byte   { return bundle(p.final()) }

// wordOf is what spec.tls.rotate said when an authority was made.
func wordOf(cert *x509.Certificate) string {
	for _, unit := range cert.Subject.OrganizationalUnit {
		if word, ok := strings.CutPrefix(unit, rotatePrefix); ok {
			return word
		}
	}
	return ""
}

// rotatePrefix stands before the word in an authority's name, where it cannot be changed
// without its key.
const rotatePrefix = "rotate="
