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
	"strings"
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
// certificates and with those of a real cert-manager, and from one of these issuers to the other, under
// writes and watches (584, 594 to 596). In the overlap of each change what was before and what is next
// are served, and one alone before and after it. No acknowledged write is lost, and each member restarts
// twice for another way of speaking and three times for another issuer.
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
	pods, loads := w.watchPods(), []*modeLoad{w.loadBy(speech{}, "0/")}
	for _, mode := range []schema.TLSMode{
		schema.TLSManaged, schema.TLSSecrets, schema.TLSDisabled, schema.TLSSecrets, schema.TLSManaged, schema.TLSDisabled,
	} {
		issuer := mode.Encrypts() && loads[len(loads)-1].secret != nil
		w.commit("Change spec.tls.mode to "+string(mode), w.inMode(mode))
		if issuer {
			loads = w.changeIssuer(pods, loads, mode)
			continue
		}
		now := loads[len(loads)-1]
		w.awaitHold("Waiting", changeLimit, "every member listens to plain text and to TLS; clients have until")
		w.expectRoll(pods, name+"-2", name+"-1", name+"-0")
		next := w.loadBy(w.speechOf(mode), fmt.Sprint(len(loads), "/"))
		w.expectSpoken(now.speech, next.speech)
		w.finishLoadBy(now)
		w.awaitDone(changeLimit)
		w.expectRoll(pods, name+"-2", name+"-1", name+"-0")
		w.expectSpoken(next.speech)
		loads = append(loads, next)
	}
	w.finishLoadBy(loads[len(loads)-1])
	w.expectAllOf(loads)
}

// changeIssuer follows a change of the issuer, and returns the loads with its own.
func (w *world) changeIssuer(pods *rollWatch, loads []*modeLoad, to schema.TLSMode) []*modeLoad {
	w.Helper()
	now := loads[len(loads)-1]
	w.awaitHold("Waiting", changeLimit, "every member trusts both issuers; clients have until")
	w.expectRoll(pods, name+"-2", name+"-1", name+"-0")
	// What quorate writes trusts both by now; the other program's Secrets are never written, so an
	// application with one of these is given the same authorities.
	both := speech{now.secret.DeepCopy()}
	both.secret.Data[naming.AuthorityCertKey] = w.speechOf(schema.TLSManaged).secret.Data[naming.AuthorityCertKey]
	then := w.loadBy(both, fmt.Sprint(len(loads), "/"))
	w.expectSpoken(now.speech)
	w.expectSpoken(then.speech)
	w.finishLoadBy(now)
	w.awaitHold("Waiting", changeLimit, "every member shows a certificate of ")
	w.expectRoll(pods, name+"-2", name+"-1", name+"-0")
	next := w.loadBy(w.speechOf(to), fmt.Sprint(len(loads)+1, "/"))
	w.expectSpoken(then.speech)
	w.expectSpoken(next.speech)
	w.finishLoadBy(then)
	w.awaitDone(changeLimit)
	w.expectRoll(pods, name+"-2", name+"-1", name+"-0")
	w.expectSpoken(next.speech)
	w.expectRefused(then.speech)
	if to == schema.TLSSecrets {
		w.expectNothingOfQuorates()
	}
	return append(loads, then, next)
}

// expectRefused wants no member to serve a client that trusts the members, and whose own certificate
// is of an issuer that was trusted before.
func (w *world) expectRefused(s speech) {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	for i := range pods {
		if err := w.healthBy(s, &pods[i]); err == nil || !strings.Contains(err.Error(), "remote error: tls:") {
			w.Errorf("%s, asked by a client of the issuer from before: %v", pods[i].Name, err)
		}
	}
}

// expectNothingOfQuorates wants no certificate of quorate's and no key of its authorities to be left.
func (w *world) expectNothingOfQuorates() {
	w.Helper()
	all, err := w.cluster.Client.CoreV1().Secrets(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=quorate"})
	w.must(err)
	for i := range all.Items {
		if len(all.Items[i].Data[corev1.TLSPrivateKeyKey]) > 0 {
			w.Errorf("Secret %s with a key of quorate's is left", all.Items[i].Name)
		}
	}
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

// speechOf is that of a client of a mode.
func (w *world) speechOf(mode schema.TLSMode) speech {
	w.Helper()
	secret := name + naming.ClientLeafSuffix
	switch mode {
	case schema.TLSDisabled:
		return speech{}
	case schema.TLSSecrets:
		secret = name + "-tls-client"
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
func (w *world) expectAllOf(loads []*modeLoad) {
	w.Helper()
	client := w.dialBy(loads[len(loads)-1].speech)
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
