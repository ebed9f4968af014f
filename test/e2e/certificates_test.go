package e2e

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExpiredCertificate lets a member's certificate expire before an upgrade: a
// member that restarts could not rejoin, so none does.
func TestExpiredCertificate(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "expired")
	want := spec{version: "3.5.21", replicas: 1}
	w.create(want)
	before := w.uids()
	secrets := w.cluster.Client.CoreV1().Secrets(w.namespace)
	good, err := secrets.Get(t.Context(), name+"-peer", metav1.GetOptions{})
	w.must(err)

	w.mark = w.daemon.Log.Mark()
	w.setCertificate(name+"-peer", w.expire(good))
	w.awaitHold("Unhealthy", holdLimit, "certificates: orders-peer expired on ", "nothing is restarted meanwhile")
	want.version = "3.5.35"
	w.commit("Upgrade", want)
	time.Sleep(quiet)
	after := w.uids()
	if before["orders-0"] != after["orders-0"] {
		t.Error("the member was restarted")
	}
	w.expectServing(1)

	w.setCertificate(name+"-peer", good.Data[corev1.TLSCertKey])
	w.awaitIdle(want.version, rollLimit)
	w.expectVersion(1, want.version)
}

// setCertificate replaces the certificate in a Secret.
func (w *world) setCertificate(secret string, certificate []byte) {
	w.Helper()
	secrets := w.cluster.Client.CoreV1().Secrets(w.namespace)
	s, err := secrets.Get(w.Context(), secret, metav1.GetOptions{})
	w.must(err)
	s.Data[corev1.TLSCertKey] = certificate
	_, err = secrets.Update(w.Context(), s, metav1.UpdateOptions{})
	w.must(err)
}

// expire is the certificate of a Secret, issued by the same authority for the
// same key, but for a time that is over.
func (w *world) expire(leaf *corev1.Secret) []byte {
	w.Helper()
	authority, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(w.Context(), name+"-peer-ca", metav1.GetOptions{})
	w.must(err)
	ca, err := tls.X509KeyPair(authority.Data["ca.crt"], authority.Data["ca.key"])
	w.must(err)
	pair, err := tls.X509KeyPair(leaf.Data[corev1.TLSCertKey], leaf.Data[corev1.TLSPrivateKeyKey])
	w.must(err)
	template := *pair.Leaf
	template.SerialNumber = nil
	template.NotBefore, template.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.Leaf, pair.Leaf.PublicKey, ca.PrivateKey)
	w.must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
