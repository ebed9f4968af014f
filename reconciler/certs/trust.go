package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// etcd reads whom it trusts when it starts, and no later: what a Secret says now is not what a
// member trusts. Once that has changed, members mount it from a Secret that is named by its content
// and cannot be changed. A pod that mounts it trusts that, however old what its kubelet last read is.

// trust is what members take for clients, and for members.
type trust struct{ clients, peers []byte }

// trustIn is what a Secret holds of it.
func trustIn(secret *corev1.Secret) trust {
	return trust{secret.Data[naming.TrustedClientsKey], secret.Data[naming.TrustedPeersKey]}
}

// name is the Secret that holds it, by its content. The order of its certificates, and one that is
// there twice, make no other.
func (t trust) name(c schema.EtcdCluster) string {
	text := "clients " + strings.Join(fingerprints(t.clients), " ") + "\npeers " + strings.Join(fingerprints(t.peers), " ")
	sum := sha256.Sum256([]byte(text))
	return naming.Trust(c.Metadata.Name, hex.EncodeToString(sum[:])[:naming.TrustHash])
}

// secret is the Secret that holds it. It cannot be changed, only deleted.
func (t trust) secret(c schema.EtcdCluster) *corev1.Secret {
	s := secretOf(c, t.name(c), corev1.SecretTypeOpaque, map[string][]byte{naming.TrustedClientsKey: t.clients, naming.TrustedPeersKey: t.peers})
	s.Immutable = new(true)
	return s
}

// holds reports whether a Secret is one with what members trust, and holds what its name says.
func holds(c schema.EtcdCluster, secret *corev1.Secret) bool {
	t := trustIn(secret)
	return otherOwner(c, secret) == "" && secret.Name == t.name(c) && !bytes.Contains(slices.Concat(t.clients, t.peers), []byte("PRIVATE KEY"))
}

// NamedTrust is the Secret with what the Secrets that the file names say to trust. secrets holds
// these by name. It is nil where one of them is not there, or says nothing.
func NamedTrust(c schema.EtcdCluster, secrets map[string]*corev1.Secret) *corev1.Secret {
	names := naming.TLSSecrets(c)
	server, peer := secrets[names.Server], secrets[names.Peer]
	if server == nil || peer == nil {
		return nil
	}
	clients, peers := certificatesIn(server.Data[naming.AuthorityCertKey]), certificatesIn(peer.Data[naming.AuthorityCertKey])
	if len(clients) == 0 || len(peers) == 0 {
		return nil
	}
	return trust{encode(clients...), encode(peers...)}.secret(c)
}

// KeepsTrust reports whether a Secret is the cluster's, and holds the trust that its name says.
func KeepsTrust(c schema.EtcdCluster, s *corev1.Secret) bool {
	return naming.IsTrust(c.Metadata.Name, s.Name) && naming.Owns(s, c) && s.Name == trustIn(s).name(c)
}

// Refused are phrases about the certificates that members that trust what is kept do not trust:
// those in the Secrets that the file names. A certificate that cannot be read is not its business.
func Refused(c schema.EtcdCluster, secrets map[string]*corev1.Secret, kept *corev1.Secret) []string {
	names, t := naming.TLSSecrets(c), trustIn(kept)
	var refused []string
	for _, part := range []struct {
		secret  string
		trusted []byte
		whose   string
	}{
		{names.Server, t.clients, names.Server},
		{names.Client, t.clients, names.Server},
		{names.Peer, t.peers, names.Peer},
	} {
		if s := secrets[part.secret]; s != nil && !trusts(part.trusted, s) {
			refused = append(refused, fmt.Sprintf("the certificate in %s is signed by an authority that members which run do not trust: they have the %s of %s from before, which is in %s",
				part.secret, naming.AuthorityCertKey, part.whose, kept.Name))
		}
	}
	return refused
}

// trusts reports whether the certificate in a Secret leads to one of those that are trusted. Dates
// are not asked: what has expired is said elsewhere.
func trusts(trusted []byte, s *corev1.Secret) bool {
	shown, err := shownIn(s)
	if err != nil {
		return true
	}
	trusting := namedCertificate{roots: x509.NewCertPool()}
	trusting.roots.AppendCertsFromPEM(trusted)
	return trusting.chain(shown) != nil
}

// fingerprints are those of the certificates in a bundle, in an order of their own.
func fingerprints(text []byte) []string {
	var all []string
	for _, cert := range certificatesIn(text) {
		sum := sha256.Sum256(cert.Raw)
		all = append(all, hex.EncodeToString(sum[:]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sameTrust reports whether two bundles hold the same certificates.
func sameTrust(a, b []byte) bool { return slices.Equal(fingerprints(a), fingerprints(b)) }

// certificatesIn decodes all certificates in a PEM text. What is none is passed over, as etcd does:
// so no key that was put beside them is ever kept.
func certificatesIn(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, cert)
		}
	}
	return all
}

// encode is certificates as PEM.
func encode(all ...*x509.Certificate) []byte {
	var text []byte
	for _, cert := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return text
}
