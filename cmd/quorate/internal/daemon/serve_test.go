package daemon

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/sources"
)

// startFront answers at addresses, of which all are on loopback, whatever they say. Its
// health is at an address of its own unless one is given.
func startFront(t *testing.T, l Listeners, kube kubernetes.Interface, log *slog.Logger) *started {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quorate_test"}, func() float64 { return 7 }))
	s := &started{T: t, at: map[string]string{}}
	s.front = front{kube: kube, log: log, listen: func(network, address string) (net.Listener, error) {
		listener, err := net.Listen(network, "127.0.0.1:0")
		if err == nil {
			s.at[address] = listener.Addr().String()
		}
		return listener, err
	}}
	t.Cleanup(s.front.close)
	if l.Health == "" {
		l.Health = ":8080"
	}
	feed := api.NewFeed(func() follow.Details { return follow.Details{Reference: "branch main"} })
	if err := s.front.open(l, registry, feed, func() { s.woken.Add(1) }); err != nil {
		t.Fatal(err)
	}
	return s
}

// started is a front, with what its addresses really are.
type started struct {
	*testing.T
	front front
	at    map[string]string
	woken atomic.Int32
}

// get asks an address for a path by plain HTTP.
func (s *started) get(address, path string) (int, string) {
	s.Helper()
	return fetch(s.T, s.at[address], "localhost", path)
}

// The page of a daemon that is given status branches shows them, until the daemon ends.
func TestStatusBranchesReachThePage(t *testing.T) {
	r := cmdtest.NewRepository(t)
	r.Git("checkout", "--quiet", "-b", "quorate/status-eu")
	r.Commit("clusters/shop/orders.yaml", "kind: EtcdCluster\nmetadata: {name: orders, namespace: shop}\n")
	repository, err := sources.New(sources.Config{URL: r.Dir, Branch: "quorate/status"})
	if err != nil {
		t.Fatal(err)
	}
	feed := api.NewFeed(func() follow.Details { return follow.Details{} })
	readBranches(t.Context(), nil, feed)()
	if v := feed.Branches(); v != nil {
		t.Errorf("without any there are %+v", v)
	}
	stop := readBranches(t.Context(), &branches.Reader{Repository: repository, Prefix: "quorate/status"}, feed)
	for feed.Branches().Read.IsZero() { // until the test's timeout
		time.Sleep(time.Millisecond)
	}
	stop()
	if v := feed.Branches(); len(v.Branches) != 1 || len(v.Branches[0].Statuses) != 1 {
		t.Errorf("there are %+v", v)
	}
}

func TestServe(t *testing.T) {
	front := startFront(t, Listeners{}, fake.NewClientset(), quiet())
	s, get := &front.front.health, func(path string) (int, string) { return front.get(":8080", path) }
	want := func(path string, status int, text string) {
		t.Helper()
		if code, body := get(path); code != status || !strings.Contains(body, text) {
			t.Errorf("%s is %d %q, want %d %q", path, code, body, status, text)
		}
	}
	want("/healthz", http.StatusOK, "ok")
	want("/readyz", http.StatusServiceUnavailable, "no commit has been read yet")
	want("/metrics", http.StatusOK, "quorate_test 7")
	want("/else", http.StatusNotFound, "")
	ready := false
	f := func() bool { return ready }
	s.ready.Store(&f)
	want("/readyz", http.StatusServiceUnavailable, "caches are not filled")
	ready = true
	want("/readyz", http.StatusOK, "ok")
}

// 220: a loop that does not turn any more is started again; a long action is none, nor is
// what a slow repository takes.
func TestHealthEndsWithAStuckLoop(t *testing.T) {
	front := startFront(t, Listeners{}, fake.NewClientset(), quiet())
	s, get := &front.front.health, func(path string) (int, string) { return front.get(":8080", path) }
	if code, body := get("/healthz"); code != http.StatusOK || !strings.Contains(body, "ok") {
		t.Errorf("before the daemon runs: %d %s", code, body)
	}
	for _, c := range []struct {
		passes, poll, timeout time.Duration
		want                  string
	}{
		{0, 0, time.Minute, ""},
		{31 * time.Minute, 0, time.Minute, ""}, // a defragmentation
		{46 * time.Minute, 0, time.Minute, "the reconciler is stuck: no pass has begun, moved or ended for 46m0s"},
		{0, 11 * time.Minute, time.Minute, ""},
		{0, 13 * time.Minute, time.Minute, "the poll of Git is stuck: it has lasted for 13m0s"},
		{0, 13 * time.Minute, 2 * time.Minute, ""},
	} {
		stuck := func() string { return stuckLoop(c.passes, c.poll, c.timeout) }
		s.stuck.Store(&stuck)
		code, body := get("/healthz")
		if healthy := c.want == ""; healthy != (code == http.StatusOK) || !healthy && (code != http.StatusServiceUnavailable || !strings.Contains(body, c.want)) {
			t.Errorf("%+v: %d %s", c, code, body)
		}
	}
}

// A call wakes the poller, which then reads the repository itself.
func TestWebhookMakesTheNextLookComeNow(t *testing.T) {
	f, log := cmdtest.NewRepository(t), quiet()
	repository, err := sources.New(sources.Config{URL: f.Dir, Branch: "main", Path: "clusters"})
	if err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientset()
	p := follow.New(follow.Config{Repository: repository, Interval: time.Hour, Kube: kube, Namespace: "quorate-system"}, log, prometheus.NewRegistry())
	r := reconciler.New(kube, etcd.New(), record.NewFakeRecorder(10), report.NewMetrics(prometheus.NewRegistry()), log, reconciler.Options{})
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, health := backuptest.FreeAddress(t), backuptest.FreeAddress(t)
	hooks := front{kube: kube, listen: net.Listen, log: log}
	t.Cleanup(hooks.close)
	if err := hooks.open(Listeners{Health: health, Webhook: address, WebhookSecretFile: secret}, prometheus.NewRegistry(), api.NewFeed(p.Details), p.Wake); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx, r)
	}()
	cmdtest.Await(t, func() bool { return len(r.Desired()) == 1 })
	f.Commit("clusters/users.yaml", desiredtest.ClusterFile("users", "3.6.16"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/webhook", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Gitlab-Token", "s3cret")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		t.Errorf("status %d", res.StatusCode)
	}
	cmdtest.Await(t, func() bool { return len(r.Desired()) == 2 })
	stop()
	<-ended
}

// fetch asks an address for a path, by the name of a host.
func fetch(t *testing.T, address, host, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// 223: the page's own address answers to those it is meant for only, never with metrics,
// and the address of the metrics never with the page.
func TestThePageHasAnAddressOfItsOwn(t *testing.T) {
	const open, closed = "127.0.0.1:8081", "127.0.0.1:8082"
	pages := startFront(t, Listeners{Page: Endpoint{Listen: open}}, fake.NewClientset(), quiet())
	pages.at[closed] = startFront(t, Listeners{Page: Endpoint{Listen: closed, Auth: AuthToken}}, fake.NewClientset(), quiet()).at[closed]
	for _, c := range []struct {
		address, host, path string
		want                int
	}{
		{open, "localhost:8081", "/api/v1/git", http.StatusOK},
		{open, "127.0.0.1", "/api/v1/git", http.StatusOK},
		{open, "localhost:8081", "/git", http.StatusOK},
		{open, "localhost:8081", "/", http.StatusServiceUnavailable}, // it does not reconcile yet
		{open, "[::1]:8081", "/api/v1/git", http.StatusOK},
		{open, "evil.example.com:8081", "/api/v1/git", http.StatusForbidden},
		{open, "localhost", "/metrics", http.StatusNotFound},
		{closed, "localhost", "/api/v1/git", http.StatusUnauthorized},
		{closed, "localhost", "/", http.StatusUnauthorized},
		{closed, "localhost", "/static/page.css", http.StatusUnauthorized},
	} {
		if code, body := fetch(t, pages.at[c.address], c.host, c.path); code != c.want {
			t.Errorf("%s at %s answers %d, want %d: %s", c.path, c.host, code, c.want, body)
		}
	}
	if code, _ := pages.get(":8080", "/api/v1/git"); code != http.StatusNotFound {
		t.Errorf("the metrics' address answers with %d", code)
	}
}

// A client that follows events does not keep the daemon from its end.
func TestThePageEndsWithTheDaemon(t *testing.T) {
	const address = "127.0.0.1:8081"
	pages := startFront(t, Listeners{Page: Endpoint{Listen: address}}, fake.NewClientset(), quiet())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+pages.at[address]+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(resp.Body)
		ended <- err
	}()
	if s := pages.front.servers[len(pages.front.servers)-1]; s.ReadTimeout != 0 || s.WriteTimeout != 0 {
		t.Errorf("the stream ends after %s or %s", s.ReadTimeout, s.WriteTimeout)
	}
	pages.front.close()
	if err := <-ended; err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}
