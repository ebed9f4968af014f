package daemon

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/memo"
)

// certificate is what the daemon proves itself by, from files that others replace while it
// runs, such as cert-manager and the kubelet. They are read at each connection, which costs
// little beside the handshake, and needs no watch that can miss something.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu sync.Mutex
	// text is what the files had that is in use.
	text   []byte
	inUse  *tls.Certificate
	failed memo.Once
}

// openCertificate reads a certificate and its key for the first time.
func openCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	return c, c.read()
}

// read takes up what the files hold, if it is new.
func (c *certificate) read() error {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("read --tls-cert-file: %w", err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("read --tls-key-file: %w", err)
	}
	text := slices.Concat(cert, key)
	if bytes.Equal(text, c.text) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("use %s of --tls-cert-file with %s of --tls-key-file: %w; give a certificate and its own key in PEM", c.certFile, c.keyFile, err)
	}
	c.text, c.inUse = text, &pair
	c.log.Info("TLS certificate in use", "file", c.certFile, "expires", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

// current returns the certificate of the files or, where that cannot be used, the one
// before: it serves until it expires, which a metric tells.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := ""
	if err := c.read(); err != nil {
		why = err.Error()
	}
	if c.failed.Changed("certificate", "error", why) && why != "" {
		c.log.Error("TLS certificate not replaced, the one before stays in use", "error", why, "expires", c.inUse.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return c.inUse
}

// secure speaks TLS on a listener. HTTP/2 is left out: it has had flaws that end a server
// before a token is looked at, and the few who ask do not need it.
func (c *certificate) secure(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	})
}

// register adds the metric of the certificate in use, by which an alert tells of one that
// is not replaced in time.
func (c *certificate) register(registry prometheus.Registerer) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quorate_serving_certificate_expiry_timestamp_seconds",
		Help: "When the certificate of --tls-cert-file that is in use expires, as Unix time; only with that flag.",
	}, func() float64 { return float64(c.current().Leaf.NotAfter.Unix()) }))
}
