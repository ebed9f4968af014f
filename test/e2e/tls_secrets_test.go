package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/test/lab"
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

// 592: the authority of another issuer is replaced while clients write. Members read whom they trust
// when they start, so they restart by two rolls: once to trust both, once to trust the new one
// alone. In the end the old one lets nobody in.
func TestAuthorityOfAnotherIssuerChanges(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "tls-authority")
	const replicas = 3
	want := spec{version: "3.6.16", replicas: replicas, more: "  tls:\n    mode: Secrets\n    secrets: {server: their-server, peer: their-peer, client: their-client}\n"}
	old, next := w.newIssuer(), w.newIssuer()
	first, second := w.theirData(old, replicas), w.theirData(next, replicas)
	before, after := first["their-peer"]["ca.crt"], second["their-peer"]["ca.crt"]
	w.createSecrets(first)
	w.create(want)

	writer, pods := w.load(), w.uids()
	w.updateSecrets(first, before, after)
	pods = w.awaitTrust(pods)
	w.finishLoad(writer)

	w.updateClient(second, before, after)
	w.eventually("a client of the new authority to be let in", holdLimit, func(ctx context.Context) (bool, error) {
		return w.letsIn(ctx, name+"-client"), nil
	})
	writer = w.load()
	w.updateSecrets(second, after)
	w.awaitTrust(pods)
	w.finishLoad(writer)
	if !w.letsIn(t.Context(), "their-client") {
		t.Error("quorate's own certificate is refused")
	}
	w.createSecrets(map[string]map[string][]byte{"old-client": {"tls.crt": first["their-client"]["tls.crt"], "tls.key": first["their-client"]["tls.key"], "ca.crt": after}})
	if w.letsIn(t.Context(), "old-client") {
		t.Error("the old authority still lets clients in")
	}
}

// awaitTrust waits until every member was restarted to trust what the Secrets say, and returns their
// pods.
func (w *world) awaitTrust(before map[string]string) map[string]string {
	w.Helper()
	w.awaitHold("Waiting", holdLimit, "the ca.crt of a Secret has changed")
	w.await("a roll", rollLimit, lab.Done("end the roll"))
	w.await("the bundle before to be deleted", holdLimit, func(l lab.LogLine) bool {
		return l.Msg == "step done" && l.Cluster == w.key() && strings.HasPrefix(l.Action, "keep what members trust in ")
	})
	pods := w.uids()
	for pod, uid := range pods {
		if before[pod] == uid {
			w.Errorf("%s was not restarted", pod)
		}
	}
	w.mark = w.daemon.Log.Mark()
	return pods
}

// letsIn reports whether every member serves a client that shows the certificate in a Secret.
func (w *world) letsIn(ctx context.Context, secret string) bool {
	w.Helper()
	s, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(ctx, secret, metav1.GetOptions{})
	w.must(err)
	pods, err := w.cluster.Pods(ctx, w.namespace, name)
	w.must(err)
	for _, p := range pods {
		config, err := certs.ClientTLS(s, "localhost")
		w.must(err)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 5 * time.Second}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(p.Status.PodIP, "2379")+"/health", http.NoBody)
		w.must(err)
		answer, err := client.Do(request)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return false
		}
	}
	return len(pods) > 0
}

// issuer is an authority of the test's own.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// theirSecrets creates what the file names.
func (w *world) theirSecrets(replicas int) []*corev1.Secret {
	w.Helper()
	return w.createSecrets(w.theirData(w.newIssuer(), replicas))
}

// theirData is what the Secrets that the file names have, as an issuer with one authority for
// everything would make it. A copy of the client's has the name under which the lab
// needs a certificate to dial with.
func (w *world) theirData(ca issuer, replicas int) map[string]map[string][]byte {
	w.Helper()
	var members []string
	for i := range replicas {
		members = append(members, fmt.Sprintf("%s-%d.%s-peers.%s.svc", name, i, name, w.namespace))
	}
	hosts := append([]string{"localhost", fmt.Sprintf("%s-client.%s.svc", name, w.namespace)}, members...)
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	forClient := w.issue(ca, "root", nil, client)
	return map[string]map[string][]byte{
		"their-server":   w.issue(ca, "server", hosts, server, client),
		"their-peer":     w.issue(ca, "peer", members, server, client),
		"their-client":   forClient,
		name + "-client": forClient,
	}
}

// createSecrets creates Secrets by name.
func (w *world) createSecrets(all map[string]map[string][]byte) (made []*corev1.Secret) {
	w.Helper()
	for name, data := range all {
		secret, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Create(w.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS, Data: data,
		}, metav1.CreateOptions{})
		w.must(err)
		made = append(made, secret)
	}
	return made
}

// updateSecrets gives Secrets other content, and has each say to trust these.
func (w *world) updateSecrets(all map[string]map[string][]byte, trusted ...[]byte) {
	w.Helper()
	for name, data := range all {
		secrets := w.cluster.Client.CoreV1().Secrets(w.namespace)
		secret, err := secrets.Get(w.Context(), name, metav1.GetOptions{})
		w.must(err)
		secret.Data = maps.Clone(data)
		secret.Data["ca.crt"] = bytes.Join(trusted, nil)
		_, err = secrets.Update(w.Context(), secret, metav1.UpdateOptions{})
		w.must(err)
	}
}

// updateClient is updateSecrets for the one with which the lab dials.
func (w *world) updateClient(all map[string]map[string][]byte, trusted ...[]byte) {
	w.Helper()
	w.updateSecrets(map[string]map[string][]byte{name + "-client": all[name+"-client"]}, trusted...)
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
