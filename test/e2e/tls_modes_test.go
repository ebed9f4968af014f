package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/lab"
)

// TestModesOfTLSChange has commits take a cluster from plain text to TLS and back, with quorate's own
// certificates and with those of a real cert-manager, under writes and watches (584). Both are
// served in the overlap of each change, and one alone before and after it. No acknowledged write is
// lost, and each member restarts twice for a change.
func TestModesOfTLSChange(t *testing.T) {
	takesLong(t)
	// Not in parallel: another test removes cert-manager's CustomResourceDefinitions when it ends.
	w := newWorld(t, "tls-modes")
	if w.cluster.Sandbox == nil {
		t.Skip("cert-manager is built by the sandbox")
	}
	w.startCertManager()
	w.applyText(w.shownCertificates().issuer)
	w.create(w.inMode(schema.TLSDisabled))
	w.expectSpoken(speech{})
	pods, now := w.watchPods(), w.loadBy(speech{}, "0/")
	ended := []*modeLoad{now}
	for i, to := range []struct {
		mode   schema.TLSMode
		client string
	}{
		{schema.TLSManaged, name + naming.ClientLeafSuffix},
		{schema.TLSDisabled, ""},
		{schema.TLSSecrets, name + "-tls-client"},
		{schema.TLSDisabled, ""},
	} {
		w.commit("Change spec.tls.mode to "+string(to.mode), w.inMode(to.mode))
		w.awaitHold("Waiting", changeLimit, "every member listens to plain text and to TLS; clients have until")
		w.expectRoll(pods, name+"-2", name+"-1", name+"-0")
		next := w.loadBy(w.speechOf(to.client), fmt.Sprint(i+1, "/"))
		w.expectSpoken(now.speech, next.speech)
		w.finishLoadBy(now)
		w.awaitDone(changeLimit)
		w.expectRoll(pods, name+"-2", name+"-1", name+"-0")
		w.expectSpoken(next.speech)
		now, ended = next, append(ended, next)
	}
	w.finishLoadBy(now)
	w.expectAllOf(now.speech, ended)
}

// inMode is the cluster in a mode. The Secrets stay in the file in each of them.
func (w *world) inMode(mode schema.TLSMode) spec {
	return spec{version: "3.6.16", replicas: 3, more: fmt.Sprintf(`  tls:
    mode: %s
    overlap: 1m
    secrets: {server: %[2]s-tls-server, peer: %[2]s-tls-peer, client: %[2]s-tls-client}
`, mode, name)}
}

// speech is how a client speaks to members: by TLS with the certificate in a Secret, as it was read;
// nil is plain text.
type speech struct{ secret *corev1.Secret }

// speechOf is by the Secret of that name, or plain text by none.
func (w *world) speechOf(secret string) speech {
	w.Helper()
	if secret == "" {
		return speech{}
	}
	s, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(w.Context(), secret, metav1.GetOptions{})
	w.must(err)
	return speech{s}
}

// scheme is that of its URLs.
func (s speech) scheme() string {
	if s.secret == nil {
		return "http"
	}
	return "https"
}

// dialBy connects to the client Service.
func (w *world) dialBy(s speech) *clientv3.Client {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name, func(config *clientv3.Config) {
		at, err := url.Parse(config.Endpoints[0])
		w.must(err)
		at.Scheme, config.TLS = s.scheme(), nil
		if s.secret != nil {
			config.TLS, err = certs.ClientTLS(s.secret, at.Hostname())
			w.must(err)
		}
		config.Endpoints = []string{at.String()}
	})
	w.must(err)
	return client
}

// modeLoad is a client that writes and reads, and one that watches that.
type modeLoad struct {
	speech
	*lab.Writer
	prefix string
	acked  int
	// watched is how many puts were watched.
	watched atomic.Int64
}

// loadBy begins a load.
func (w *world) loadBy(s speech, prefix string) *modeLoad {
	w.Helper()
	l := &modeLoad{speech: s, prefix: prefix, Writer: lab.StartWriter(w.dialBy(s), lab.WriterOptions{Prefix: prefix, Pace: 20 * time.Millisecond, Limit: 40 * time.Minute})}
	w.Cleanup(l.Close)
	watcher := w.dialBy(s)
	w.Cleanup(func() { _ = watcher.Close() })
	go func() {
		for answer := range watcher.Watch(w.Context(), prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
			l.watched.Add(int64(len(answer.Events)))
		}
	}()
	w.awaitWrites(l, 20)
	return l
}

// awaitWrites waits for more acknowledged writes.
func (w *world) awaitWrites(l *modeLoad, more int) {
	w.Helper()
	from := l.Report().Writes.OK
	w.eventually("more writes by "+l.scheme(), holdLimit, func(context.Context) (bool, error) { return l.Report().Writes.OK >= from+more, nil })
}

// finishLoadBy ends a load that still is acknowledged, and wants each acknowledged write to be there
// and to have been watched.
func (w *world) finishLoadBy(l *modeLoad) {
	w.Helper()
	w.awaitWrites(l, 500)
	seen := l.Stop()
	l.acked = seen.Writes.OK
	w.expectWrites(l.Writer, seen)
	w.eventually("the watch", holdLimit, func(context.Context) (bool, error) { return l.watched.Load() >= int64(l.acked), nil })
	w.Logf("%s by %s: writes %s; reads %s", l.prefix, l.scheme(), seen.Writes, seen.Reads)
}

// expectAllOf wants what all loads were acknowledged to be there in the end.
func (w *world) expectAllOf(s speech, loads []*modeLoad) {
	w.Helper()
	client := w.dialBy(s)
	defer func() { _ = client.Close() }()
	for _, l := range loads {
		found, err := client.Get(w.Context(), l.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		w.must(err)
		if found.Count < int64(l.acked) {
			w.Errorf("%d of %d writes below %s are there in the end", found.Count, l.acked, l.prefix)
		}
	}
}

// expectSpoken wants each member to serve clients that speak so, and none that speak otherwise. With
// one way of speaking, peers speak it alone, too, on their usual port.
func (w *world) expectSpoken(all ...speech) {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	schemes := map[string]bool{}
	for _, s := range all {
		schemes[s.scheme()] = true
		for i := range pods {
			if err := w.healthBy(s, &pods[i]); err != nil {
				w.Errorf("%s, asked by %s: %v", pods[i].Name, s.scheme(), err)
			}
		}
	}
	for i := range pods {
		for _, scheme := range []string{"http", "https"} {
			if spoken := w.speaks(&pods[i], scheme, naming.ClientPort); spoken != schemes[scheme] {
				w.Errorf("%s speaks %s to clients: %t", pods[i].Name, scheme, spoken)
			}
		}
		if len(all) > 1 {
			continue
		}
		if !w.speaks(&pods[i], all[0].scheme(), naming.PeerPort) {
			w.Errorf("%s does not speak %s to peers", pods[i].Name, all[0].scheme())
		}
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(pods[i].Status.PodIP, "2382"), time.Second); err == nil {
			_ = conn.Close()
			w.Errorf("%s still listens at its second port for peers", pods[i].Name)
		}
	}
	if len(all) == 1 {
		w.expectListed(all[0])
	}
}

// expectListed wants etcd's list to have each member at its usual port alone.
func (w *world) expectListed(s speech) {
	w.Helper()
	client := w.dialBy(s)
	defer func() { _ = client.Close() }()
	list, err := client.MemberList(w.Context())
	w.must(err)
	for _, m := range list.Members {
		want := []string{fmt.Sprintf("%s://%s.%s.%s.svc:%d", s.scheme(), m.Name, naming.HeadlessService(name), w.namespace, naming.PeerPort)}
		if !slices.Equal(m.PeerURLs, want) {
			w.Errorf("%s is listed at %v, want %v", m.Name, m.PeerURLs, want)
		}
	}
}

// healthBy asks a member for its health.
func (w *world) healthBy(s speech, pod *corev1.Pod) error {
	w.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	if s.secret != nil {
		config, err := certs.ClientTLS(s.secret, "localhost")
		w.must(err)
		transport.TLSClientConfig = config
	}
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, s.scheme()+"://"+net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(naming.ClientPort))+"/health", http.NoBody)
	w.must(err)
	answer, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", answer.Status)
	}
	return nil
}

// speaks reports whether a member's port answers in that way: plain HTTP by an answer of etcd's, TLS by
// a handshake that shows a certificate, whatever it makes of the client.
func (w *world) speaks(pod *corev1.Pod, scheme string, port int) bool {
	w.Helper()
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port))
	if scheme == "http" {
		request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "http://"+address+"/version", http.NoBody)
		w.must(err)
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}).Do(request)
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode == http.StatusOK
	}
	shown := false
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{
		InsecureSkipVerify: true, // that it shows any is the question
		VerifyConnection:   func(tls.ConnectionState) error { shown = true; return nil },
	}}).DialContext(w.Context(), "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return shown
}
