package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
)

// Listeners are the addresses at which the daemon answers.
type Listeners struct {
	// Health is for /healthz and /readyz, and for /metrics where Metrics has no address.
	Health string
	// Metrics is for /metrics, Page for the page for people and the API.
	Metrics, Page Endpoint
	// Webhook is for the calls of code hosts, signed with what is in WebhookSecretFile; ""
	// for none.
	Webhook, WebhookSecretFile string
	// CertFile and KeyFile are the certificate and the key of Metrics, Page and Webhook, where
	// these are on a network; "" for plain HTTP.
	CertFile, KeyFile string
}

// Endpoint is where the daemon tells something, and to whom.
type Endpoint struct {
	// Listen is the address; "" for none.
	Listen string
	// Auth is who is let in.
	Auth Auth
}

// Auth is who is let in at an Endpoint.
type Auth string

// The choices of --page-auth and --metrics-auth.
const (
	// AuthNone lets in anyone who can reach the address.
	AuthNone Auth = "none"
	// AuthToken asks for a token of Kubernetes whose account may read.
	AuthToken Auth = "token"
)

// check refuses what would be less protected than its flags let one believe.
func (l Listeners) check() error {
	switch {
	case (l.CertFile == "") != (l.KeyFile == ""):
		return errors.New("--tls-cert-file and --tls-key-file belong together: give both")
	case l.CertFile != "" && !slices.ContainsFunc([]string{l.Metrics.Listen, l.Page.Listen, l.Webhook}, onNetwork):
		return errors.New("--tls-cert-file is for --metrics-listen, --page-listen and --webhook-listen beyond loopback: give one of them; --listen stays plain HTTP for the kubelet")
	case l.Metrics.Auth == AuthToken && l.Metrics.Listen == "":
		return errors.New("--metrics-auth=token needs --metrics-listen: the kubelet has no token for --listen")
	case l.Metrics.Auth == AuthToken && l.isClear(l.Metrics.Listen):
		return tokenInClear("metrics")
	case l.Page.Auth == AuthToken && l.isClear(l.Page.Listen):
		return tokenInClear("page")
	case l.Webhook != "" && l.WebhookSecretFile == "":
		return errors.New("--webhook-listen needs --webhook-secret-file: without a secret anyone could send requests")
	}
	return nil
}

// isClear reports whether what is sent to an address can be read on a network.
func (l Listeners) isClear(address string) bool { return l.CertFile == "" && onNetwork(address) }

func tokenInClear(purpose string) error {
	return fmt.Errorf("--%s-auth=token would let tokens pass the network in clear: give --tls-cert-file and --tls-key-file, or an address of loopback to --%[1]s-listen", purpose)
}

// onNetwork reports whether an address may be reached from other machines. One of loopback
// is plain HTTP, with a certificate as well: no certificate names localhost, and kubectl
// port-forward, or a proxy in the same pod, encrypts by itself.
func onNetwork(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil { // "", or what cannot be listened at
		return false
	}
	return host != "localhost" && !net.ParseIP(host).IsLoopback()
}

// front is where the daemon answers.
type front struct {
	kube kubernetes.Interface
	// listen is net.Listen, but in tests.
	listen  func(network, address string) (net.Listener, error)
	log     *slog.Logger
	health  health
	servers []*http.Server
}

// open begins to answer. Each purpose has an address of its own: who may read metrics
// should not read of all clusters, and code hosts, which call from outside, neither.
func (f *front) open(l Listeners, registry *prometheus.Registry, feed *api.Feed, wake func()) error {
	if err := l.check(); err != nil {
		return err
	}
	var c *certificate
	if l.CertFile != "" {
		var err error
		if c, err = openCertificate(l.CertFile, l.KeyFile, f.log); err != nil {
			return err
		}
		c.register(registry)
	}
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	beside := metrics
	if l.Metrics.Listen != "" {
		beside = nil
	}
	// The kubelet asks for the health, and knows neither a token nor the certificate.
	if err := f.serve("health", "--listen", l.Health, nil, f.health.server(beside)); err != nil {
		return err
	}
	for _, s := range []struct {
		purpose, flag, address string
		server                 *http.Server
	}{
		{"metrics", "--metrics-listen", l.Metrics.Listen, metricsServer(l.Metrics.Auth, f.kube, metrics)},
		{"webhooks", "--webhook-listen", l.Webhook, webhookServer(l.WebhookSecretFile, wake)},
		{"the page", "--page-listen", l.Page.Listen, pageServer(l.Page, f.kube, feed)},
	} {
		if s.address == "" {
			continue
		}
		if err := f.serve(s.purpose, s.flag, s.address, c, s.server); err != nil {
			return err
		}
	}
	return nil
}

// serve answers at an address, which a flag gives: by TLS where there is a certificate and
// the address is on a network. It listens immediately, so that an address in use is an error
// at the start.
func (f *front) serve(purpose, flag, address string, c *certificate, s *http.Server) error {
	listener, err := f.listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for %s: %w; choose another address with %s", purpose, err, flag)
	}
	if c != nil && onNetwork(address) {
		listener = c.secure(listener)
	}
	at := f.log.With("flag", flag)
	s.ReadHeaderTimeout = 5 * time.Second
	s.ErrorLog = log.New(serverLog{at}, "", 0)
	f.servers = append(f.servers, s)
	go func() {
		if err := s.Serve(listener); err != http.ErrServerClosed {
			at.Error("server failed", "error", err.Error())
		}
	}()
	return nil
}

func (f *front) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, s := range f.servers {
		_ = s.Shutdown(ctx)
	}
}

// serverLog writes what net/http says to the log. Connections that do not speak TLS are no
// news: anyone who can reach the address could fill the log with them.
type serverLog struct{ log *slog.Logger }

// Write implements io.Writer.
func (l serverLog) Write(text []byte) (int, error) {
	level := slog.LevelError
	if bytes.HasPrefix(text, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "connection failed", "error", string(bytes.TrimSpace(text)))
	return len(text), nil
}
