// Package certs issues and checks the certificates of a cluster: those that quorate
// makes itself, and those in Secrets that a file names. It reads and writes no Secret.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Keys of the Secrets. Leaves use those of the type kubernetes.io/tls, and carry
// their authority's certificate as ca.crt.
const (
	authorityKeyKey = "ca.key"
)

// clockSkew is how far another machine's clock may be behind this one's and
// still accept a certificate that was issued just now.
const clockSkew = 5 * time.Minute

// leafSkew is that of a certificate with a life of its own: a tenth of it, up to a day. Members show what is
// renewed at once, on all machines, and nobody tries it before.
func leafSkew(life time.Duration) time.Duration {
	return max(clockSkew, min(life/10, 24*time.Hour))
}

// clientCommonName is the common name in quorate's client certificate. Where
// authentication is enabled, etcd takes the common name for the user's name, and
// root is the one user that may do what quorate must: change members, defragment,
// take snapshots. Without authentication it means nothing.
const clientCommonName = "root"

// maxMembers is how many members certificates are issued for: as many as
// a cluster can have, so that scaling needs no other certificate.
const maxMembers = 7

// Leaf is one certificate to issue.
type Leaf struct {
	Secret    string
	Authority string
	cn        string
	// hosts are the names apart from those of members, and members those of each
	// member that a cluster can have, by ordinal.
	hosts   []string
	Members [][]string
	usages  []x509.ExtKeyUsage
}

// Names are all names that the certificate is issued for.
func (l Leaf) Names() []string {
	return slices.Concat(l.hosts, slices.Concat(l.Members...))
}

// Leaves lists the leaves of a cluster. Server and peer leaves have
// both usages: a member dials its own client port with the server leaf, and its
// peers with the peer leaf.
func Leaves(c schema.EtcdCluster, clusterDomain string) []Leaf {
	name, clusterDomain := c.Metadata.Name, naming.ClusterDomain(c, clusterDomain)
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	members := memberHosts(c, clusterDomain)
	return []Leaf{
		{name + naming.ServerLeafSuffix, name + naming.AuthoritySuffix, name + naming.ServerLeafSuffix, serviceHosts(c, clusterDomain), members, both},
		{name + naming.ClientLeafSuffix, name + naming.AuthoritySuffix, clientCommonName, nil, nil, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		{name + naming.PeerLeafSuffix, name + naming.PeerAuthoritySuffix, name + naming.PeerLeafSuffix, nil, members, both},
	}
}

// serviceHosts are the names by which clients reach any member.
func serviceHosts(c schema.EtcdCluster, clusterDomain string) []string {
	service := naming.ClientService(c.Metadata.Name)
	inNamespace := service + "." + c.Metadata.Namespace
	hosts := []string{"localhost", "127.0.0.1", "::1", service, inNamespace}
	return append(hosts, naming.InClusterDomain(inNamespace+".svc", clusterDomain)...)
}

// memberHosts are the names of the members' pods under the headless
// service, by ordinal.
func memberHosts(c schema.EtcdCluster, clusterDomain string) [][]string {
	var members [][]string
	for i := range max(maxMembers, int(c.Spec.Replicas)) {
		pod := fmt.Sprintf("%s-%d.%s.%s.svc", c.Metadata.Name, i, naming.HeadlessService(c.Metadata.Name), c.Metadata.Namespace)
		members = append(members, naming.InClusterDomain(pod, clusterDomain))
	}
	return members
}

// Issue issues the certificates that the cluster lacks, and returns
// their Secrets in the order in which they must be created: an authority before
// what it signs. existing holds the cluster's Secrets by name; none of them is
// ever changed. A cluster without managed TLS gets none. clusterDomain is the
// daemon's, for a cluster that names none.
//
// A missing leaf is signed by the authority that exists. A missing authority
// with a leaf left is an error: another authority would split the cluster into
// members that no longer trust each other.
//
// When a create answers that the Secret exists, somebody else was faster: the
// rest of the list must be dropped, since another authority signed it, and
// everything read again.
func Issue(c schema.EtcdCluster, clusterDomain string, existing map[string]*corev1.Secret, now time.Time) (missing []*corev1.Secret, err error) {
	if !naming.ManagesTLS(c) {
		return nil, nil
	}
	for _, p := range pairsOf(c, clusterDomain, existing) {
		made, err := completeAuthority(c, p, existing, now)
		if err != nil {
			return nil, fmt.Errorf("certificates of %s/%s: %w", c.Metadata.Namespace, c.Metadata.Name, err)
		}
		missing = append(missing, made...)
	}
	return missing, nil
}

// completeAuthority issues what is missing of one authority and its leaves.
func completeAuthority(c schema.EtcdCluster, p pair, existing map[string]*corev1.Secret, now time.Time) ([]*corev1.Secret, error) {
	var present []string
	var absent []Leaf
	name := p.name
	for _, l := range p.leaves {
		if existing[l.Secret] == nil {
			absent = append(absent, l)
			continue
		}
		present = append(present, l.Secret)
	}
	for _, secret := range append([]string{name}, present...) {
		if owner := otherOwner(c, existing[secret]); owner != "" {
			return nil, fmt.Errorf("the Secret %s belongs to the cluster %s: rename one of the two clusters", secret, owner)
		}
	}
	signer := p.signsNow(existing)
	switch {
	case existing[name] == nil && len(present) > 0 && signer == p.present && len(absent) > 0:
		return nil, fmt.Errorf("the Secret %s is missing, but needed by %s: restore %[1]s from a backup, or, while no member and no client uses it, delete %[2]s too to have all issued anew", name, strings.Join(present, " and "))
	case len(absent) == 0:
		return nil, nil
	}
	var made []*corev1.Secret
	if signer == nil {
		secret, err := newAuthority(c, name, "", now)
		if err != nil {
			return nil, fmt.Errorf("issue %s: %w", name, err)
		}
		signer = readAuthority(secret)
		p.present = signer
		made = append(made, secret)
	}
	for _, l := range absent {
		leaf, err := NewLeaf(c, l, signer.secret, now)
		if err != nil {
			return nil, fmt.Errorf("issue %s with %s: %w", l.Secret, signer.secret.Name, err)
		}
		leaf.Data[naming.AuthorityCertKey] = bothOf(p)
		made = append(made, leaf)
	}
	return made, nil
}

// otherOwner is the cluster that the Secret's label names, if it is not c. The
// names can meet: those of a cluster a-peer and the peers of a.
func otherOwner(c schema.EtcdCluster, s *corev1.Secret) string {
	if s == nil || s.Labels[naming.LabelCluster] == c.Metadata.Name {
		return ""
	}
	return s.Labels[naming.LabelCluster]
}

// newAuthority makes a self-signed authority. It has the word of spec.tls.rotate in its name,
// so that which was asked for is known from it alone, and a number that tells it from those
// before it, as not every program tries two authorities of one name.
func newAuthority(c schema.EtcdCluster, name, number string, now time.Time) (*corev1.Secret, error) {
	units := []string{c.Metadata.Namespace}
	if word := c.Spec.TLS.Rotate; word != "" {
		units = append(units, rotatePrefix+word)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name, OrganizationalUnit: units, SerialNumber: number},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(c.Spec.TLS.AuthorityLife()),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, keyPEM, err := signCertificate(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return secretOf(c, name, corev1.SecretTypeOpaque, map[string][]byte{naming.AuthorityCertKey: cert, authorityKeyKey: keyPEM}), nil
}

// NewLeaf makes a leaf that the authority in the Secret signs. It never outlives
// the authority.
func NewLeaf(c schema.EtcdCluster, l Leaf, authority *corev1.Secret, now time.Time) (*corev1.Secret, error) {
	return newLeafFor(c, l, authority, c.Spec.TLS.CertificateLife(), now)
}

// newLeafFor is NewLeaf with a life of its own.
func newLeafFor(c schema.EtcdCluster, l Leaf, authority *corev1.Secret, life time.Duration, now time.Time) (*corev1.Secret, error) {
	pair, err := tls.X509KeyPair(authority.Data[naming.AuthorityCertKey], authority.Data[authorityKeyKey])
	if err != nil {
		return nil, fmt.Errorf("its %s and %s are not a pair: restore them from a backup: %w", naming.AuthorityCertKey, authorityKeyKey, err)
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("it expired on %s: a new authority is needed", day(pair.Leaf.NotAfter))
	}
	notBefore := now.Add(-leafSkew(life))
	if made := pair.Leaf.NotBefore; notBefore.Before(made) {
		notBefore = made // nobody trusts it earlier
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: l.cn, OrganizationalUnit: []string{c.Metadata.Namespace}},
		NotBefore:             notBefore,
		NotAfter:              earliestTime(now.Add(life), pair.Leaf.NotAfter),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           l.usages,
		BasicConstraintsValid: true,
	}
	for _, host := range l.Names() {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, keyPEM, err := signCertificate(template, pair.Leaf, key, pair.PrivateKey)
	if err != nil {
		return nil, err
	}
	return secretOf(c, l.Secret, corev1.SecretTypeTLS, map[string][]byte{
		naming.AuthorityCertKey: authority.Data[naming.AuthorityCertKey],
		corev1.TLSCertKey:       cert,
		corev1.TLSPrivateKeyKey: keyPEM,
	}), nil
}

// signCertificate signs the template, whose serial number is left to x509 and so
// random, and encodes certificate and key as PEM.
func signCertificate(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer any) (cert, keyPEM []byte, err error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}

// secretOf wraps data in a Secret of the cluster. It has no owner: the
// keys must not vanish with an object that was deleted by mistake.
func secretOf(c schema.EtcdCluster, name string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Metadata.Namespace, Labels: naming.ObjectLabels(c)},
		Type:       kind,
		Data:       data,
	}
}

// Reissue issues the leaf in a Secret anew, by the authority that has signed
// it, with the names of all members that a cluster can have. Certificates of early
// clusters name fewer. The rest of the Secret stays, and so does what its holder trusts.
// secrets holds the cluster's Secrets by name.
func Reissue(c schema.EtcdCluster, clusterDomain, name string, secrets map[string]*corev1.Secret, now time.Time) (*corev1.Secret, error) {
	for _, p := range pairsOf(c, clusterDomain, secrets) {
		for _, l := range p.leaves {
			if l.Secret != name || secrets[name] == nil {
				continue
			}
			old, err := firstCertificate(secrets[name].Data[corev1.TLSCertKey])
			if err != nil {
				return nil, fmt.Errorf("issue %s: read it: %w", name, err)
			}
			signer := p.signerOf(old)
			if signer == nil || signer.secret == nil {
				return nil, fmt.Errorf("issue %s: nothing that quorate has signs it", name)
			}
			return reissue(c, l, secrets[name], signer, now)
		}
	}
	return nil, fmt.Errorf("issue %s: the cluster has no such certificate", name)
}

// reissue issues the leaf in a Secret anew by one of its authorities, and changes nothing else
// in it.
func reissue(c schema.EtcdCluster, l Leaf, secret *corev1.Secret, by *authority, now time.Time) (*corev1.Secret, error) {
	issued, err := NewLeaf(c, l, by.secret, now)
	if err != nil {
		return nil, fmt.Errorf("issue %s with %s: %w", l.Secret, by.secret.Name, err)
	}
	renewed := secret.DeepCopy()
	renewed.Data = maps.Clone(renewed.Data)
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		renewed.Data[key] = issued.Data[key]
	}
	return renewed, nil
}

// ClientTLS makes the TLS settings of a client out of a leaf's Secret. Servers
// must show a certificate of the Secret's ca.crt for serverName; an empty
// serverName means the host that is dialled. It errors when the Secret lacks a
// key or holds no PEM.
func ClientTLS(clientSecret *corev1.Secret, serverName string) (*tls.Config, error) {
	if clientSecret == nil {
		return nil, errors.New("client TLS: the Secret is missing")
	}
	pair, err := tls.X509KeyPair(clientSecret.Data[corev1.TLSCertKey], clientSecret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("client TLS from Secret %s: %w", clientSecret.Name, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(clientSecret.Data[naming.AuthorityCertKey]) {
		return nil, fmt.Errorf("client TLS from Secret %s: %s holds no certificate", clientSecret.Name, naming.AuthorityCertKey)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		RootCAs:      roots,
		ServerName:   serverName,
		MinVersion:   tls.VersionTLS12,
	}, nil
}

// CommonName is the common name of the certificate in a Secret: the name by which etcd knows
// who shows it.
func CommonName(secret *corev1.Secret) (string, error) {
	if secret == nil {
		return "", errors.New("the Secret with the client certificate is missing")
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return "", fmt.Errorf("the certificate in the Secret %s cannot be read: %w", secret.Name, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return "", fmt.Errorf("the certificate in the Secret %s cannot be read: %w", secret.Name, err)
	}
	return leaf.Subject.CommonName, nil
}
