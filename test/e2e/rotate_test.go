package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/handshake"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// TestAuthoritiesChange has a cluster with certificates of ten minutes change its authorities twice,
// under a client that reads its Secret at each handshake, a kube-apiserver with a certificate of its
// own, and a watch by each of them, and take a third change back in the midst (563, 568, 571). Each
// member shows five further certificates, no acknowledged write is lost, no watch misses one, no member
// restarts more often than by two rolls for each change, and the authorities from before are refused.
// The API server is replaced once for each change, to read a ca.crt with the next authority; its own
// certificate it reads at each handshake (497).
func TestAuthoritiesChange(t *testing.T) {
	takesLong(t)
	if shared.cluster.Sandbox == nil {
		t.Skip("only the sandbox has an API server to start")
	}
	t.Parallel()
	w := newWorld(t, "rotated")
	rotating := func(word string) spec {
		return spec{version: "3.6.16", replicas: 3, more: "  tls:\n    lifetimes: {certificate: 10m, authority: 24h}\n    overlap: 90s\n    rotate: \"" + word + "\"\n" +
			"    clients: [{name: apiserver, commonName: kube-apiserver, secretName: " + apiClient + "}]\n"}
	}
	w.create(rotating("first"))
	client, err := w.cluster.Dial(w.Context(), w.namespace, name, w.cluster.Rereading(w.namespace, name))
	w.must(err)
	writer := lab.StartWriter(client, lab.WriterOptions{Pace: 20 * time.Millisecond, Limit: time.Hour})
	w.Cleanup(writer.Close)
	watched, shown, rolls := w.watchAll("lab/"), w.watchLeaves(), w.watchPods()
	api := w.operateAPIServer()
	first := w.secrets()
	for _, word := range []string{"second", "third"} {
		before := w.secrets()
		w.commit("Change the authorities: "+word, rotating(word))
		w.awaitStep("delete the authorities from before")
		w.expectAuthorities(before, word)
	}
	// Taken back when all show certificates of the next authorities.
	before, leaves := w.secrets(), shown()
	w.commit("Change the authorities: fourth", rotating("fourth"))
	w.awaitStep("issue all certificates by the next authorities")
	w.awaitLeaves(shown, leaves+1)
	w.commit("Take that back", rotating("third"))
	w.awaitStep("delete the next authorities")
	after := w.secrets()
	for _, authority := range []string{name + "-ca", name + "-peer-ca"} {
		if !bytes.Equal(before[authority].Data["ca.crt"], after[authority].Data["ca.crt"]) || after[authority+"-next"] != nil {
			t.Errorf("%s is not what it was before", authority)
		}
	}
	w.awaitLeaves(shown, 6)
	w.expectAuthorities(first, "third")
	var restarts []string
	for range 2 * 3 {
		restarts = append(restarts, "orders-2", "orders-1", "orders-0")
	}
	w.expectRoll(rolls, restarts...)
	api.finish(3)
	seen := writer.Stop()
	w.expectWrites(writer, seen)
	if n := watched(); n < seen.Writes.OK {
		t.Errorf("the watch has seen %d of %d acknowledged writes", n, seen.Writes.OK)
	}
	w.Logf("writes: %d, failed %d, longest gap %s; each member has shown %d certificates", seen.Writes.OK, seen.Writes.Failed, lab.Round(seen.Writes.LongestGap), shown())
}

// awaitStep waits until a step was taken, and the cluster is at rest after it where it is the last.
func (w *world) awaitStep(action string) {
	w.Helper()
	w.await("the step: "+action, changeLimit, func(l lab.LogLine) bool {
		return l.Msg == "step done" && l.Cluster == w.key() && l.Action == action
	})
}

// secrets are the cluster's own, by name.
func (w *world) secrets() map[string]*corev1.Secret {
	w.Helper()
	list, err := w.cluster.Client.CoreV1().Secrets(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: clusterSelector})
	w.must(err)
	all := map[string]*corev1.Secret{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// watchAll watches all keys with a prefix, and returns what tells how many puts it has seen, once no
// more come. They come in the order of their revisions.
func (w *world) watchAll(prefix string) (seen func() int) {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name, w.cluster.Rereading(w.namespace, name))
	w.must(err)
	w.Cleanup(func() { _ = client.Close() })
	ctx, stop := context.WithCancel(w.Context())
	done, count := make(chan int, 1), make(chan int, 1)
	count <- 0
	go func() {
		last := int64(0)
		for response := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
			for _, e := range response.Events {
				if e.Kv.ModRevision <= last {
					w.Errorf("the watch has seen revision %d after %d", e.Kv.ModRevision, last)
				}
				last = e.Kv.ModRevision
			}
			count <- <-count + len(response.Events)
		}
		done <- <-count
	}()
	return func() int {
		for last := -1; ; {
			n := <-count
			count <- n
			if n == last {
				stop()
				return <-done
			}
			last = n
			time.Sleep(2 * time.Second)
		}
	}
}

// expectAuthorities wants the authorities to be those of a word, one of each kind, and those from
// before to be trusted by nobody: neither what they sign now, nor what a member would show.
func (w *world) expectAuthorities(before map[string]*corev1.Secret, word string) {
	w.Helper()
	after := w.secrets()
	trusts := 0
	for secret := range after {
		if naming.IsTrust(name, secret) {
			trusts++
		}
		if strings.HasSuffix(secret, "-next") {
			w.Errorf("%s is left", secret)
		}
	}
	if trusts != 1 {
		w.Errorf("%d Secrets with what members trust are left", trusts)
	}
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	for _, kind := range []struct{ authority, port string }{{name + "-ca", "2379"}, {name + "-peer-ca", "2380"}} {
		if bytes.Equal(before[kind.authority].Data["ca.crt"], after[kind.authority].Data["ca.crt"]) {
			w.Errorf("%s has not changed for the word %s", kind.authority, word)
		}
		old, now := w.signedBy(before[kind.authority]), w.signedBy(after[kind.authority])
		for i := range pods {
			address := net.JoinHostPort(pods[i].Status.PodIP, kind.port)
			var refused *handshake.RefusedError
			if _, err := handshake.Show(w.Context(), address, pods[i].Name, old); !errors.As(err, &refused) {
				w.Errorf("%s takes what the authority from before signs at port %s: %v", pods[i].Name, kind.port, err)
			}
			if _, err := handshake.Show(w.Context(), address, pods[i].Name, now); err != nil {
				w.Errorf("%s refuses what its authority signs at port %s: %v", pods[i].Name, kind.port, err)
			}
		}
	}
	for _, trusts := range []struct {
		secrets map[string]*corev1.Secret
		want    bool
	}{{before, false}, {after, true}} {
		ca := trusts.secrets[name+"-ca"].Data["ca.crt"]
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "localhost", RootCAs: roots}
		for i := range pods {
			conn, err := (&tls.Dialer{Config: config}).DialContext(w.Context(), "tcp", net.JoinHostPort(pods[i].Status.PodIP, "2379"))
			if err == nil {
				_ = conn.Close()
			}
			if (err == nil) != trusts.want {
				w.Errorf("who trusts these authorities takes %s for a member: %v, want %t", pods[i].Name, err, trusts.want)
			}
		}
	}
}

// signedBy is a certificate that the authority in a Secret signs now.
func (w *world) signedBy(authority *corev1.Secret) tls.Certificate {
	w.Helper()
	ca, err := tls.X509KeyPair(authority.Data["ca.crt"], authority.Data["ca.key"])
	w.must(err)
	data := w.issue(issuer{ca.Leaf, ca.PrivateKey.(*ecdsa.PrivateKey)}, "root", nil, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth)
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	w.must(err)
	return pair
}
