package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/handshake"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// TestAuthoritiesChange has a cluster with certificates of ten minutes change its authorities twice,
// under a client that reads its Secret at each handshake and a watch, and take a third change back
// in the midst (563, 568, 571): no acknowledged write is lost, the watch misses none, and the
// authorities from before are refused in the end.
func TestAuthoritiesChange(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "rotated")
	rotating := func(word string) spec {
		return spec{version: "3.6.16", replicas: 3, more: "  tls:\n    lifetimes: {certificate: 10m, authority: 24h}\n    overlap: 3s\n    rotate: \"" + word + "\"\n"}
	}
	w.create(rotating("first"))
	client, err := w.cluster.Dial(w.Context(), w.namespace, name, w.cluster.Rereading(w.namespace, name))
	w.must(err)
	writer := lab.StartWriter(client, lab.WriterOptions{Pace: 20 * time.Millisecond, Limit: 40 * time.Minute})
	w.Cleanup(writer.Close)
	watched := w.watchAll()
	for _, word := range []string{"second", "third"} {
		before, pods := w.secrets(), w.uids()
		w.commit("Change the authorities: "+word, rotating(word))
		w.awaitStep("delete the authorities from before")
		for pod, uid := range w.uids() {
			if pods[pod] == uid {
				t.Errorf("%s was not restarted", pod)
			}
		}
		w.expectAuthorities(before, word)
	}
	// Taken back when all trust both.
	before := w.secrets()
	w.commit("Change the authorities: fourth", rotating("fourth"))
	w.awaitStep("issue all certificates by the next authorities")
	w.commit("Take that back", rotating("third"))
	w.awaitStep("delete the next authorities")
	after := w.secrets()
	for _, authority := range []string{name + "-ca", name + "-peer-ca"} {
		if !bytes.Equal(before[authority].Data["ca.crt"], after[authority].Data["ca.crt"]) || after[authority+"-next"] != nil {
			t.Errorf("%s is not what it was before", authority)
		}
	}
	seen := writer.Stop()
	w.expectWrites(writer, seen)
	if n := watched(); n < seen.Writes.OK {
		t.Errorf("the watch has seen %d of %d acknowledged writes", n, seen.Writes.OK)
	}
	w.Logf("writes: %d, failed %d, longest gap %s", seen.Writes.OK, seen.Writes.Failed, lab.Round(seen.Writes.LongestGap))
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

// watchAll watches all keys from now on, and returns what tells how many puts it has seen, once no
// more come.
func (w *world) watchAll() (seen func() int) {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name, w.cluster.Rereading(w.namespace, name))
	w.must(err)
	w.Cleanup(func() { _ = client.Close() })
	ctx, stop := context.WithCancel(w.Context())
	done, count := make(chan int, 1), make(chan int, 1)
	count <- 0
	go func() {
		for response := range client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(1)) {
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
// before to be trusted by nobody.
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
	for _, kind := range []struct{ authority, leaf, port string }{{name + "-ca", name + "-client", "2379"}, {name + "-peer-ca", name + "-peer", "2380"}} {
		if bytes.Equal(before[kind.authority].Data["ca.crt"], after[kind.authority].Data["ca.crt"]) {
			w.Errorf("%s has not changed for the word %s", kind.authority, word)
		}
		old, err := tls.X509KeyPair(before[kind.leaf].Data[corev1.TLSCertKey], before[kind.leaf].Data[corev1.TLSPrivateKeyKey])
		w.must(err)
		for i := range pods {
			var refused *handshake.RefusedError
			if _, err := handshake.Show(w.Context(), net.JoinHostPort(pods[i].Status.PodIP, kind.port), pods[i].Name, old); !errors.As(err, &refused) {
				w.Errorf("%s takes the certificate from before at port %s: %v", pods[i].Name, kind.port, err)
			}
		}
	}
	config, err := certs.ClientTLS(before[name+"-client"], "localhost")
	w.must(err)
	for i := range pods {
		conn, err := (&tls.Dialer{Config: config}).DialContext(w.Context(), "tcp", net.JoinHostPort(pods[i].Status.PodIP, "2379"))
		if err == nil {
			_ = conn.Close()
			w.Errorf("who trusts the authority from before takes %s for a member", pods[i].Name)
		}
	}
}
