package sources

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// httpOrigin speaks Git's smart HTTP.
type httpOrigin struct {
	url    *url.URL
	auth   Auth
	caFile string
	limits Limits

	mu     sync.Mutex
	conns  *connections // kept, so that connections are used again
	trusts [3]string    // what conns was made from
	app    appToken
	met    *greeting // what the server said last, if that can be relied on
}

// greeting is what a server said, and where. One that is kept is of the configured URL.
type greeting struct {
	hello
	base *url.URL
}

func (o *httpOrigin) open(ctx context.Context) (session, error) {
	w, err := o.wire(ctx, uploadPack)
	if err != nil {
		return nil, err
	}
	return &packSession{wire: w, limits: o.limits}, nil
}

func (o *httpOrigin) push(ctx context.Context, u update) error {
	w, err := o.wire(ctx, receivePack)
	if err != nil {
		return err
	}
	return pushOver(ctx, w, u)
}

func (o *httpOrigin) wire(ctx context.Context, with service) (*httpWire, error) {
	found, err := o.auth.read(ctx)
	if err != nil {
		return nil, err
	}
	if o.url.Scheme == "http" && found.areSecret() {
		return nil, unauthenticated("over http the credentials could be read on the network, so none are sent", "use https")
	}
	conns, err := o.connections(found)
	if err != nil {
		return nil, err
	}
	watch := &exchange{server: o.url, conns: conns, limits: o.limits, service: with}
	w := &httpWire{origin: o, service: with, watch: watch, secrets: found.secrets()}
	if w.authorization, err = o.authorization(ctx, found, conns.own); err != nil {
		return nil, err
	}
	w.secrets = slices.Concat(w.secrets, []string{w.authorization.password}, proxySecrets())
	w.client = &http.Client{Transport: watch, CheckRedirect: w.follow}
	return w, nil
}

// authorization is what goes with each request.
type authorization struct{ user, password string }

func (a authorization) add(req *http.Request) {
	switch {
	case a.password == "":
	case a.user == "":
		req.Header.Set("Authorization", "Bearer "+a.password)
	default:
		req.SetBasicAuth(a.user, a.password)
	}
}

func (o *httpOrigin) authorization(ctx context.Context, found credentials, conns http.RoundTripper) (authorization, error) {
	switch {
	case found[keyApp] != "":
		token, err := o.app.get(ctx, found, conns)
		return authorization{tokenUser, token}, err
	case found[keyBearer] != "":
		return authorization{password: found[keyBearer]}, nil
	}
	return authorization{found.user(), found[keyPassword]}, nil
}

func (o *httpOrigin) recall() *greeting {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.met
}

func (o *httpOrigin) remember(g *greeting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.met = g
}

// connections are those to the server, with the client certificate, and without it those
// to wherever it redirects to.
type connections struct{ own, away *http.Transport }

// to is the pool for a request.
func (c *connections) to(server *url.URL, req *http.Request) *http.Transport {
	if sameOrigin(req.URL, server) {
		return c.own
	}
	return c.away
}

func (c *connections) closeIdle() {
	c.own.CloseIdleConnections()
	c.away.CloseIdleConnections()
}

// connections makes new pools only when the certificates have changed.
func (o *httpOrigin) connections(found credentials) (*connections, error) {
	ca, err := readCA(o.caFile, found)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	trusts := [3]string{ca, found[keyCert], found[keyCertKey]}
	if o.conns != nil && trusts == o.trusts {
		return o.conns, nil
	}
	config, err := tlsConfig(ca, caName(o.caFile), found)
	if err != nil {
		return nil, err
	}
	if o.conns != nil {
		o.conns.closeIdle()
	}
	anonymous := config.Clone()
	anonymous.Certificates = nil
	o.conns, o.trusts = &connections{newConnections(config), newConnections(anonymous)}, trusts
	return o.conns, nil
}

func caName(file string) string {
	if file != "" {
		return "the CA file " + file
	}
	return "ca.crt of the credentials"
}

// readCA is "" for none, and otherwise never: an empty file is a mistake.
func readCA(file string, found credentials) (string, error) {
	if file == "" {
		return found[keyCA], nil
	}
	ca, err := readBounded(file, maxCABytes)
	if err != nil {
		return "", unreachable(
			fmt.Sprintf("the CA file %s cannot be read (%s)", file, osReason(err)),
			"mount it or correct its path")
	}
	return string(ca) + "\n", nil
}

func tlsConfig(ca, caName string, found credentials) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM([]byte(ca)) {
			return nil, unreachable(caName+" holds no PEM certificate", "correct the file")
		}
		config.RootCAs = roots
	}
	if found[keyCert] != "" {
		pair, err := tls.X509KeyPair([]byte(found[keyCert]), []byte(found[keyCertKey]))
		if err != nil {
			return nil, unauthenticated("tls.crt and tls.key are not a certificate and its key in PEM", "correct them")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func newConnections(config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  ofRequest,
		OnProxyConnectResponse: checkConnect,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  30 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           2,
		MaxResponseHeaderBytes: 64 * kib,
		ForceAttemptHTTP2:      true,
	}
}

// sameOrigin reports whether two URLs are of one server, over the same scheme.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}
