package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// identity is who a certificate stands for, in Kubernetes' terms.
type identity struct {
	file  string   // NAME.crt and NAME.key
	user  string   // common name
	group string   // organization
	names []string // what a server is reached by: host names and addresses
}

const administrators = "system:masters"

func (s *sandbox) identities() []identity {
	all := []identity{
		{file: "apiserver", user: "kube-apiserver", names: []string{
			hostIP, apiServiceIP, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		{file: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client", group: administrators},
		{file: "admin", user: "sandbox-admin", group: administrators},
		{file: "controller-manager", user: "system:kube-controller-manager"},
		{file: "scheduler", user: "system:kube-scheduler"},
		{file: "proxy", user: "system:kube-proxy"},
	}
	for _, n := range s.nodes() {
		all = append(all, identity{file: n.name, user: "system:node:" + n.name, group: "system:nodes"})
	}
	return all
}

func (s *sandbox) pki(file string) string        { return s.path("pki", file) }
func (s *sandbox) kubeconfig(name string) string { return s.path("kubeconfig", name) }

// makeCertificates makes the authority, all certificates, the key that service
// account tokens are signed with and the kubeconfigs, once.
func (s *sandbox) makeCertificates() error {
	done := s.pki("done")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	authority, key, err := s.makeAuthority()
	if err != nil {
		return fmt.Errorf("make the certificate authority: %w", err)
	}
	for _, id := range s.identities() {
		if err := s.makeCertificate(id, authority, key); err != nil {
			return fmt.Errorf("make the certificate of %s: %w", id.user, err)
		}
		if err := s.writeKubeconfig(id.file); err != nil {
			return err
		}
	}
	signer, err := newKey()
	if err == nil {
		err = writeKey(s.pki("service-account.key"), signer)
	}
	if err != nil {
		return fmt.Errorf("make the service account key: %w", err)
	}
	return writeFile(done, "")
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func (s *sandbox) makeAuthority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "quorate-sandbox"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return authority, key, writePEM(s.pki("ca.crt"), "CERTIFICATE", der)
}

func (s *sandbox) makeCertificate(id identity, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.user},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if id.group != "" {
		template.Subject.Organization = []string{id.group}
	}
	for _, name := range id.names {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(s.pki(id.file+".crt"), "CERTIFICATE", der),
		writeKey(s.pki(id.file+".key"), key),
	)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return writeFile(path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// writeKubeconfig writes a kubeconfig that holds its certificates itself, so
// that it works when it is copied elsewhere.
func (s *sandbox) writeKubeconfig(name string) error {
	var data []string
	for _, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		content, err := os.ReadFile(s.pki(file))
		if err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", name, err)
		}
		data = append(data, base64.StdEncoding.EncodeToString(content))
	}
	return writeFile(s.kubeconfig(name), fmt.Sprintf(`{
  "apiVersion": "v1",
  "kind": "Config",
  "clusters": [{"name": "sandbox", "cluster": {"server": "https://%[1]s:6443", "certificate-authority-data": %[2]q}}],
  "users": [{"name": %[3]q, "user": {"client-certificate-data": %[4]q, "client-key-data": %[5]q}}],
  "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": %[3]q}}],
  "current-context": "sandbox"
}
`, hostIP, data[0], name, data[1], data[2]))
}
