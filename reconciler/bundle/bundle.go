// Package bundle keeps what members trust of certificates that another program issues. etcd reads
// its trusted certificates when it starts, and no later: so what a Secret says now is not what a
// member trusts. Each bundle is kept in a Secret that is named by its content and cannot be changed.
// A pod that mounts it trusts that, however old what its kubelet last read is.
package bundle

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Of is the Secret with what the Secrets that the file names say to trust: whom members take for
// clients, and whom for members. secrets holds these by name. It is nil where one of them is not
// there, or says nothing.
func Of(c schema.EtcdCluster, secrets map[string]*corev1.Secret) *corev1.Secret {
	names := naming.TLSSecrets(c)
	server, peer := secrets[names.Server], secrets[names.Peer]
	if server == nil || peer == nil {
		return nil
	}
	clients, peers := certificatesIn(server.Data[naming.AuthorityCertKey]), certificatesIn(peer.Data[naming.AuthorityCertKey])
	if len(clients) == 0 || len(peers) == 0 {
		return nil
	}
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Metadata.Namespace, Labels: naming.ObjectLabels(c)},
		Type:       corev1.SecretTypeOpaque,
		Immutable:  new(true),
		Data:       map[string][]byte{naming.TrustedClientsKey: encode(clients), naming.TrustedPeersKey: encode(peers)},
	}
	s.Name = nameOf(c, s)
	return s
}

// Keeps reports whether a Secret is the cluster's, and holds the bundle that its name says.
func Keeps(c schema.EtcdCluster, s *corev1.Secret) bool {
	return naming.IsTrust(c.Metadata.Name, s.Name) && naming.Owns(s, c) && s.Name == nameOf(c, s)
}

// Refused are phrases about the certificates that members that trust what is kept do not trust:
// those in the Secrets that the file names. A certificate that cannot be read is not its business.
func Refused(c schema.EtcdCluster, secrets map[string]*corev1.Secret, kept *corev1.Secret) []string {
	names := naming.TLSSecrets(c)
	var refused []string
	for _, part := range []struct{ secret, trusted, whose string }{
		{names.Server, naming.TrustedClientsKey, names.Server},
		{names.Client, naming.TrustedClientsKey, names.Server},
		{names.Peer, naming.TrustedPeersKey, names.Peer},
	} {
		if s := secrets[part.secret]; s != nil && !trusts(kept.Data[part.trusted], s) {
			refused = append(refused, fmt.Sprintf("the certificate in %s is signed by an authority that members which run do not trust: they have the %s of %s from before, which is in %s",
				part.secret, naming.AuthorityCertKey, part.whose, kept.Name))
		}
	}
	return refused
}

// trusts reports whether the certificate in a Secret leads to one of those that are trusted. Dates
// are not asked: what has expired is said elsewhere.
func trusts(trusted []byte, s *corev1.Secret) bool {
	pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return true
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(cert)
		}
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	options.CurrentTime = pair.Leaf.NotBefore.Add(pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) / 2)
	if _, err := pair.Leaf.Verify(options); err == nil {
		return true
	}
	options.CurrentTime = pair.Leaf.NotBefore // an authority may end before what it has signed
	_, err = pair.Leaf.Verify(options)
	return err == nil
}

// nameOf is the name for what a Secret holds. The order of its certificates, and one that is there
// twice, make no other.
func nameOf(c schema.EtcdCluster, s *corev1.Secret) string {
	text := "clients " + fingerprints(s.Data[naming.TrustedClientsKey]) + "\npeers " + fingerprints(s.Data[naming.TrustedPeersKey])
	sum := sha256.Sum256([]byte(text))
	return naming.Trust(c.Metadata.Name, hex.EncodeToString(sum[:])[:naming.TrustHash])
}

func fingerprints(text []byte) string {
	var all []string
	for _, cert := range certificatesIn(text) {
		sum := sha256.Sum256(cert.Raw)
		all = append(all, hex.EncodeToString(sum[:]))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

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

func encode(all []*x509.Certificate) []byte {
	var text []byte
	for _, cert := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return text
}
