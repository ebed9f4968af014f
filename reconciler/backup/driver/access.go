package driver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// KeyCA is the key of a Secret that has the certificates of private CAs.
const KeyCA = "ca.crt"

// Access is how a store is reached.
type Access struct {
	// Credentials are the data of a Secret. nil, or with the key ca.crt alone: the process's environment is used.
	Credentials map[string][]byte
	// CA has certificates, in PEM, of CAs to trust besides the system's. Default: the key ca.crt of Credentials.
	CA []byte
}

// Value returns one of the Secret's values, without the line feed that a shell adds.
func (a Access) Value(key string) string {
	return string(bytes.TrimSpace(a.Credentials[key]))
}

// FromEnvironment reports whether the credentials are the process's own: no Secret was given, or one that has a CA and
// nothing else. A Secret that lacks what a store needs must not make quorate use another account.
func (a Access) FromEnvironment() bool {
	_, ca := a.Credentials[KeyCA]
	return a.Credentials == nil || ca && len(a.Credentials) == 1
}

// Authority returns the certificates of the CAs that the store needs besides the system's, in PEM; empty for none.
func (a Access) Authority() []byte {
	if len(a.CA) > 0 {
		return a.CA
	}
	return a.Credentials[KeyCA]
}

// Transport returns a transport that also trusts the private CA, nil when there is none.
func (a Access) Transport() (*http.Transport, error) {
	ca := a.Authority()
	if len(ca) == 0 {
		return nil, nil
	}
	transport := Trusting(ca)
	if transport == nil {
		return nil, &Problem{
			Problem: "the CA (key " + KeyCA + " of the Secret) has no certificate in PEM",
			Next:    "put the CA's certificate there, from BEGIN CERTIFICATE to END CERTIFICATE",
		}
	}
	return transport, nil
}

// Trusting returns a new transport that trusts the CAs, in PEM, besides the system's; nil where ca has no certificate.
func Trusting(ca []byte) *http.Transport {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(ca) {
		return nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport
}
