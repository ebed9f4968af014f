package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// 144: a cluster waits for Secrets that another program makes, comes up with them,
// rolls with them, and leaves them unchanged.
func TestSecretsOfAnotherIssuer(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "tls-secrets")
	const replicas = 3
	want := spec{version: "3.6.16", replicas: replicas, more: "  tls:\n    mode: Secrets\n    secrets: {server: their-server, peer: their-peer, client: their-client}\n"}
	w.commit("Add "+name, want)
	w.start()
	w.awaitHold("Unhealthy", holdLimit, "certificates: their-server does not exist: create the Secret with the keys tls.crt, tls.key, ca.crt")

	made := w.theirSecrets(replicas)
	w.awaitIdle(want.version, createLimit)
	w.expectVersion(replicas, want.version)
	w.expectServing(replicas)

	before := w.uids()
	want.more += "  etcd:\n    options: {heartbeat-interval: \"150\"}\n"
	w.commit("Change an option", want)
	w.awaitIdle(want.version, rollLimit)
	w.expectServing(replicas)
	for pod, uid := range w.uids() {
		if before[pod] == uid {
			t.Errorf("%s was not restarted", pod)
		}
	}
	for _, secret := range made {
		now, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(t.Context(), secret.Name, metav1.GetOptions{})
		w.must(err)
		if now.ResourceVersion != secret.ResourceVersion {
			t.Errorf("Secret %s was written", secret.Name)
		}
	}
}

// issuer is an authority of the test's own.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// theirSecrets creates what the file names, as an issuer with one authority for
// everything would. A copy of the client's has the name under which the lab
// needs a certificate to dial with.
func (w *world) theirSecrets(replicas int) []*corev1.Secret {
	w.Helper()
	ca := w.newIssuer()
	var members []string
	for i := range replicas {
		members = append(members, fmt.Sprintf("%s-%d.%s-peers.%s.svc", name, i, name, w.namespace))
	}
	hosts := append([]string{"localhost", fmt.Sprintf("%s-client.%s.svc", name, w.namespace)}, members...)
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	forClient := w.issue(ca, "root", nil, client)
	var made []*corev1.Secret
	for _, s := range []struct {
		name string
		data map[string][]byte
	}{
		{"their-server", w.issue(ca, "server", hosts, server, client)},
		{"their-peer", w.issue(ca, "peer", members, server, client)},
		{"their-client", forClient},
		{name + "-client", forClient},
	} {
		secret, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Create(w.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: s.name}, Type: corev1.SecretTypeTLS, Data: s.data,
		}, metav1.CreateOptions{})
		w.must(err)
		made = append(made, secret)
	}
	return made
}

func (w *world) newIssuer() issuer {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "theirs"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	w.must(err)
	cert, err := x509.ParseCertificate(der)
	w.must(err)
	return issuer{cert, key}
}

// issue is the content of a Secret.
func (w *world) issue(ca issuer, cn string, hosts []string, usages ...x509.ExtKeyUsage) map[string][]byte {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject: pkix.Name{CommonName: cn}, DNSNames: hosts, ExtKeyUsage: usages,
		NotBefore: ca.cert.NotBefore, NotAfter: ca.cert.NotBefore.Add(24 * time.Hour),
	}, ca.cert, key.Public(), ca.key)
	w.must(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	w.must(err)
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return map[string][]byte{
		"tls.crt": encode("CERTIFICATE", der), "tls.key": encode("EC PRIVATE KEY", keyDER), "ca.crt": encode("CERTIFICATE", ca.cert.Raw),
	}
}
