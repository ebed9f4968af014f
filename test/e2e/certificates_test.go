package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// TestCertificatesAreRenewed lets the certificates of a cluster run out, one after it has
// ended and one before: both are issued again by the authority that the members trust,
// the members take them up without a restart, and clients are served throughout (145).
func TestCertificatesAreRenewed(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "renewed")
	want := spec{version: "3.5.21", replicas: 3}
	w.create(want)
	writer := w.load()
	before := w.uids()
	// Not older than the authorities, which are new.
	w.setLeaf(name+"-peer", name+"-peer-ca", -4*time.Minute, -time.Minute)
	w.awaitRenewal()
	w.setLeaf(name+"-server", name+"-ca", -4*time.Minute, time.Minute)
	w.awaitRenewal()

	w.eventually("every member to show its new certificate", changeLimit, func(ctx context.Context) (bool, error) {
		pods, err := w.cluster.Pods(ctx, w.namespace, name)
		if err != nil {
			return false, err
		}
		for i := range pods {
			if shown, err := w.shownBy(ctx, &pods[i], naming.ClientPort, name+"-client", "localhost"); err != nil || time.Until(shown.NotAfter) < 300*24*time.Hour {
				return false, err
			}
		}
		return len(pods) == 3, nil
	})
	for pod, uid := range w.uids() {
		if before[pod] != uid {
			t.Errorf("%s was restarted", pod)
		}
	}
	w.clientsComeAndGo(want)
	want.version = "3.5.35"
	w.apply("Upgrade", want)
	w.expectVersion(3, want.version)
	w.finishLoad(writer)
}

// clientsComeAndGo gives an application a certificate of its own, damages it, and takes the
// application out again: its Secret stays (495). In another namespace it finds the same certificate,
// the new one as well, and none in the end, while what is somebody else's there stays (498).
func (w *world) clientsComeAndGo(want spec) {
	w.Helper()
	web, theirs := w.namespace+"-web", w.namespace+"-theirs"
	with, elsewhere := want, ""
	if !*namespaced {
		elsewhere = ", namespaces: [" + web + ", " + theirs + "]"
		for _, namespace := range []string{web, theirs} {
			w.must(w.cluster.CreateNamespace(w.Context(), namespace))
			w.Cleanup(func() {
				if err := w.cluster.DeleteNamespace(context.Background(), namespace); err != nil {
					w.Error(err)
				}
			})
		}
		w.kubectl("create", "secret", "generic", "checkout-etcd", "--namespace="+theirs, "--from-literal=mine=yes")
	}
	with.more = "  tls: {clients: [{name: checkout, commonName: the shop, secretName: checkout-etcd" + elsewhere + "}]}\n"
	issued := lab.Done("issue certificates of clients")
	w.commit("Let an application in", with)
	w.await("a certificate for the application", changeLimit, issued)
	w.writesAs("checkout-etcd", "the shop")
	if elsewhere != "" {
		w.awaitCopy(web)
		w.writesFrom(web, "checkout-etcd", "the shop")
	}
	w.mark = w.daemon.Log.Mark()
	w.kubectl("patch", "secret/checkout-etcd", "--type=merge", `--patch={"data":{"tls.key":"bm8ga2V5"}}`)
	w.await("another certificate in place of the damaged one", changeLimit, issued)
	w.writesAs("checkout-etcd", "the shop")
	if elsewhere != "" {
		w.awaitCopy(web)
		w.writesFrom(web, "checkout-etcd", "the shop")
	}
	w.apply("Take the application out", want)
	w.writesAs("checkout-etcd", "the shop")
	if elsewhere == "" {
		return
	}
	secrets := w.cluster.Client.CoreV1()
	if _, err := secrets.Secrets(web).Get(w.Context(), "checkout-etcd", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.Errorf("the copy of an application that is gone: %v", err)
	}
	if s, err := secrets.Secrets(theirs).Get(w.Context(), "checkout-etcd", metav1.GetOptions{}); err != nil || string(s.Data["mine"]) != "yes" || len(s.Data) != 1 {
		w.Errorf("somebody else's Secret is %v, %v", s, err)
	}
}

// awaitCopy waits until a namespace has what the Secret of the application holds now.
func (w *world) awaitCopy(namespace string) {
	w.Helper()
	w.eventually("the copy of the certificate in "+namespace, changeLimit, func(ctx context.Context) (bool, error) {
		source, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(ctx, "checkout-etcd", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		is, err := w.cluster.Client.CoreV1().Secrets(namespace).Get(ctx, "checkout-etcd", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && bytes.Equal(is.Data["tls.crt"], source.Data["tls.crt"]) && bytes.Equal(is.Data["ca.crt"], source.Data["ca.crt"]), err
	})
}

// writesAs writes a key with the certificate in a Secret, whose common name must be this.
func (w *world) writesAs(secret, commonName string) {
	w.Helper()
	w.writesFrom(w.namespace, secret, commonName)
}

// writesFrom is writesAs with a Secret of any namespace.
func (w *world) writesFrom(namespace, secret, commonName string) {
	w.Helper()
	s, err := w.cluster.Client.CoreV1().Secrets(namespace).Get(w.Context(), secret, metav1.GetOptions{})
	w.must(err)
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	config, err := certs.ClientTLS(s, "")
	w.must(err)
	if cn := config.Certificates[0].Leaf.Subject.CommonName; cn != commonName {
		w.Errorf("the certificate in %s is for %q", secret, cn)
	}
	client, err := w.cluster.DialMember(w.Context(), &pods[0], func(c *clientv3.Config) { c.TLS = config })
	w.must(err)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(w.Context(), holdLimit)
	defer cancel()
	_, err = client.Put(ctx, "/application", commonName)
	w.must(err)
}

// awaitRenewal waits until certificates were issued again.
func (w *world) awaitRenewal() {
	w.Helper()
	w.await("certificates to be renewed", holdLimit, func(l lab.LogLine) bool {
		return l.Msg == "step done" && l.Cluster == w.key() && l.Action == "renew certificates"
	})
}

// shownBy is the certificate that a member shows on a port now, under the name of host, to the
// holder of a Secret.
func (w *world) shownBy(ctx context.Context, pod *corev1.Pod, port int, secret, host string) (*x509.Certificate, error) {
	s, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(ctx, secret, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	config, err := certs.ClientTLS(s, host)
	if err != nil {
		return nil, err
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// setLeaf issues the certificate in a Secret by its authority for another time, counted
// from now.
func (w *world) setLeaf(leaf, authority string, from, to time.Duration) {
	w.Helper()
	secrets := w.cluster.Client.CoreV1().Secrets(w.namespace)
	secret, err := secrets.Get(w.Context(), leaf, metav1.GetOptions{})
	w.must(err)
	signer, err := secrets.Get(w.Context(), authority, metav1.GetOptions{})
	w.must(err)
	ca, err := tls.X509KeyPair(signer.Data["ca.crt"], signer.Data["ca.key"])
	w.must(err)
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	w.must(err)
	template := *pair.Leaf
	template.SerialNumber = nil
	template.NotBefore, template.NotAfter = time.Now().Add(from), time.Now().Add(to)
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.Leaf, pair.Leaf.PublicKey, ca.PrivateKey)
	w.must(err)
	w.mark = w.daemon.Log.Mark()
	secret.Data[corev1.TLSCertKey] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	_, err = secrets.Update(w.Context(), secret, metav1.UpdateOptions{})
	w.must(err)
}
