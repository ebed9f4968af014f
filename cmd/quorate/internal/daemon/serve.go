package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/page"
	"github.com/quorate/quorate/sources"
)

// health answers for the daemon at /healthz and /readyz.
type health struct {
	// stuck says which loop does not turn any more, "" for none; nil before the daemon
	// runs.
	stuck atomic.Pointer[func() string]
	// ready reports whether the caches are filled and, where this process acts, a commit is
	// in force; nil before the caches are. One that waits for the lease is ready, so that a
	// rolling update of quorate itself does not wait for the one that holds it.
	ready atomic.Pointer[func() bool]
}

// server answers /metrics as well, unless it is nil.
func (h *health) server(metrics http.Handler) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	if metrics != nil {
		mux.Handle("GET "+api.MetricsPath, metrics)
	}
	return &http.Server{Handler: mux}
}

// healthz fails while a loop is stuck, so that the kubelet starts the daemon again. It
// knows nothing of Git, etcd or stores, whose failures a restart does not mend.
func (h *health) healthz(w http.ResponseWriter, _ *http.Request) {
	if stuck := h.stuck.Load(); stuck != nil {
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

func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	if ready := h.ready.Load(); ready == nil || !(*ready)() {
		http.Error(w, "the caches are not filled, or no commit has been read yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// metricsServer answers /metrics and nothing else.
func metricsServer(auth Auth, kube kubernetes.Interface, metrics http.Handler) *http.Server {
	if auth == AuthToken {
		metrics = api.NewGuard(kube, api.MetricsPath, api.MetricsRole, metrics)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+api.MetricsPath, metrics)
	return &http.Server{Handler: mux, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
}

// webhookServer answers the calls of code hosts.
func webhookServer(secretFile string, wake func()) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/webhook", sources.NewWebhook(secretFile, wake))
	return &http.Server{Handler: mux, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
}

// pageServer answers people and their tools.
func pageServer(e Endpoint, kube kubernetes.Interface, feed *api.Feed) *http.Server {
	var handler http.Handler = pageHandler(feed)
	if e.Auth == AuthToken {
		handler = api.NewGuard(kube, api.ReadPath, api.ReadRole, handler)
	}
	if !onNetwork(e.Listen) {
		handler = localOnly(handler)
	}
	ctx, end := context.WithCancel(context.Background())
	// A ReadTimeout or WriteTimeout would end those who follow events; nobody sends a body.
	s := &http.Server{
		Handler: handler, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	s.RegisterOnShutdown(end) // what follows events never ends by itself
	return s
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
