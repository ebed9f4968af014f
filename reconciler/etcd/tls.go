package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
)

// FixedTLS gives every connection one configuration.
func FixedTLS(config *tls.Config) func() (*tls.Config, error) {
	return func() (*tls.Config, error) { return config, nil }
}

// ExternalTLS is the connection's configuration. Without ca.crt the system's
// authorities are trusted.
func ExternalTLS(secret *corev1.Secret, host string) (config *tls.Config, problem string) {
	config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if ca := secret.Data[naming.AuthorityCertKey]; len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, "has no usable " + naming.AuthorityCertKey + ": no certificate in it"
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
