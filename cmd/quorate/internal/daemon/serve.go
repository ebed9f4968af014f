package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/page"
	"github.com/quorate/quorate/sources"
)

// server answers /metrics, /healthz and /readyz.
type server struct {
	http *http.Server
	// stuck says which loop does not turn any more, "" for none; nil before the daemon
	// runs.
	stuck atomic.Pointer[func() string]
	// ready reports whether the caches are filled and a commit is in force; nil before
	// the daemon runs.
	ready atomic.Pointer[func() bool]
}

// serve listens immediately, so that an address in use is an error at the start.
func serve(address string, registry *prometheus.Registry, log *slog.Logger) (*server, error) {
	listener, err := listen(address, "metrics", "--listen")
	if err != nil {
		return nil, err
	}
	s := &server{}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.http.Serve(listener); err != http.ErrServerClosed {
			log.Error("metrics server failed", "error", err.Error())
		}
	}()
	return s, nil
}

// listen opens an address for a purpose, which a flag gives.
func listen(address, purpose, flag string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w; choose another address with %s", purpose, err, flag)
	}
	return listener, nil
}

// serveWebhook listens for the calls of code hosts, at its own address: it may be reachable
// from outside, and metrics should not.
func serveWebhook(address, secretFile string, wake func(), log *slog.Logger) (*server, error) {
	if address == "" {
		return &server{http: &http.Server{}}, nil
	}
	if secretFile == "" {
		return nil, errors.New("--webhook-listen needs --webhook-secret-file: without a secret anyone could send requests")
	}
	listener, err := listen(address, "webhooks", "--webhook-listen")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/webhook", sources.NewWebhook(secretFile, wake))
	s := &server{http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}}
	go func() {
		if err := s.http.Serve(listener); err != http.ErrServerClosed {
			log.Error("webhook server failed", "error", err.Error())
		}
	}()
	return s, nil
}

// healthz fails while a loop is stuck, so that the kubelet starts the daemon again. It
// knows nothing of Git, etcd or stores, whose failures a restart does not mend.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	if stuck := s.stuck.Load(); stuck != nil {
		if why := (*stuck)(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
	}
	_, _ = fmt.Fprintln(w, "ok")
}

const (
	// maxPass is above what one pass may take without a sign: a member has half an hour
	// to defragment its database. Passes that wait for a store are not counted.
	maxPass = 45 * time.Minute
	// maxPoll is above what one poll may take besides --git-timeout, which counts twice:
	// the head is read again when it is approved.
	maxPoll = 10 * time.Minute
)

// stuckLoop returns which loop does not turn any more, "" for none, where no pass has
// moved and the poll under way has lasted for so long.
func stuckLoop(passes, poll, gitTimeout time.Duration) string {
	switch {
	case passes > maxPass:
		return fmt.Sprintf("the reconciler is stuck: no pass has begun, moved or ended for %s", passes.Round(time.Second))
	case poll > maxPoll+2*gitTimeout:
		return fmt.Sprintf("the poll of Git is stuck: it has lasted for %s", poll.Round(time.Second))
	}
	return ""
}

func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	if ready := s.ready.Load(); ready == nil || !(*ready)() {
		http.Error(w, "the caches are not filled, or no commit has been read yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// Page is where the page for people and the API are served, and to whom.
type Page struct {
	// Listen is the address; "" for none.
	Listen string
	// Auth is who is let in.
	Auth PageAuth
}

// PageAuth is who may read the page and the API.
type PageAuth string

// The choices of --page-auth.
const (
	// PageAuthNone lets in whoever reaches the address.
	PageAuthNone PageAuth = "none"
	// PageAuthToken asks for a token of Kubernetes whose account may read.
	PageAuthToken PageAuth = "token"
)

// servePage listens for people and their tools, at an address of its own: who may reach
// metrics should not read of all clusters, and the other way round.
func servePage(c Page, kube kubernetes.Interface, feed *api.Feed, log *slog.Logger) (*server, error) {
	if c.Listen == "" {
		return &server{http: &http.Server{}}, nil
	}
	listener, err := listen(c.Listen, "the page", "--page-listen")
	if err != nil {
		return nil, err
	}
	var handler http.Handler = pageHandler(feed)
	if c.Auth == PageAuthToken {
		handler = api.NewGuard(kube, handler)
	}
	if address, ok := listener.Addr().(*net.TCPAddr); ok && address.IP.IsLoopback() {
		handler = localOnly(handler)
	}
	ctx, end := context.WithCancel(context.Background())
	// A ReadTimeout or WriteTimeout would end those who follow events; nobody sends a body.
	s := &server{http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}}
	s.http.RegisterOnShutdown(end) // what follows events never ends by itself
	go func() {
		if err := s.http.Serve(listener); err != http.ErrServerClosed {
			log.Error("page server failed", "error", err.Error())
		}
	}()
	return s, nil
}

// pageHandler serves the page and the API.
func pageHandler(feed *api.Feed) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle(api.Prefix+"/", api.Handler(feed))
	mux.Handle("/", page.Handler(feed))
	return mux
}

// localOnly refuses requests for another host than this one. What listens on loopback only
// is protected by that, but not from the pages of other sites in a browser on the same
// machine, whose names may be made to mean it (DNS rebinding).
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			api.WriteError(w, http.StatusForbidden, errors.New("this address answers to localhost only; another --page-listen answers to other names"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.http.Shutdown(ctx)
}
