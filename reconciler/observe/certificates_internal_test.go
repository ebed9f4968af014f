package observe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// theirs is an authority that is not quorate's.
type theirs struct {
	*testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// above is what this authority's own certificate is signed by, nil for none.
	above *theirs
}

// NewTheirs is an authority that is valid from now on.
func NewTheirs(t *testing.T, now time.Time, life time.Duration, above *theirs) *theirs {
	t.Helper()
	a := &theirs{T: t, above: above}
	a.cert = &x509.Certificate{
		Subject: pkix.Name{CommonName: "theirs"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer := above
	if signer == nil {
		signer = a
	}
	var der []byte
	a.key, der = a.sign(a.cert, signer)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign signs a certificate for a new key.
func (a *theirs) sign(cert *x509.Certificate, signer *theirs) (*ecdsa.PrivateKey, []byte) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	if signer.key == nil {
		signer.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, signer.cert, key.Public(), signer.key)
	if err != nil {
		a.Fatal(err)
	}
	return key, der
}

// root is the authority that people trust.
func (a *theirs) root() *theirs {
	if a.above != nil {
		return a.above.root()
	}
	return a
}

// Issue is a Secret as cert-manager makes them, for a day.
func (a *theirs) Issue(name string, hosts []string, usages ...x509.ExtKeyUsage) *corev1.Secret {
	a.Helper()
	key, der := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: hosts, ExtKeyUsage: usages,
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotBefore.Add(24 * time.Hour),
	}, a)
	encoded := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	chain := encoded("CERTIFICATE", der)
	for up := a; up.above != nil; up = up.above {
		chain = append(chain, encoded("CERTIFICATE", up.cert.Raw)...)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			"tls.crt": chain, "tls.key": encoded("EC PRIVATE KEY", keyDER), "ca.crt": encoded("CERTIFICATE", a.root().cert.Raw),
		},
	}
}

// TheirHosts are the names that the server's certificate needs; without the
// first two, those of the peers'.
func TheirHosts() []string {
	return []string{"localhost", "orders-client.shop.svc", "*.orders-peers.shop.svc"}
}

// TheirSecrets are the three Secrets of namedTLS.
func TheirSecrets(a *theirs) map[string]*corev1.Secret {
	a.Helper()
	return map[string]*corev1.Secret{
		"their-server": a.Issue("their-server", TheirHosts(), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth),
		"their-peer":   a.Issue("their-peer", TheirHosts()[2:], x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth),
		"their-client": a.Issue("their-client", nil, x509.ExtKeyUsageClientAuth),
	}
}

const Day = 24 * time.Hour

// Forbidden is the answer of an API server to somebody who may not.
func Forbidden(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(apischema.GroupResource{Resource: "secrets"}, "their-server", nil)
}
