package sources

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// httpOrigin speaks Git's smart HTTP. It makes its own go-git transport instead
// of installing one: go-git's table of protocols is shared by the whole process,
// without a lock.
type httpOrigin struct {
	url    *url.URL
	auth   Auth
	caFile string
	limits Limits

	mu    sync.Mutex
	conns *http.Transport // kept, so that connections are used again
	ca    []byte          // what conns trusts
}

func (o *httpOrigin) open(ctx context.Context) (session, error) {
	login, err := o.auth.read()
	if err != nil {
		return nil, err
	}
	conns, err := o.connections()
	if err != nil {
		return nil, err
	}
	watch := &exchange{conns: conns, limits: o.limits}
	client := githttp.NewClient(&http.Client{Transport: watch})
	upload, err := client.NewUploadPackSession(o.endpoint(), login.method)
	if err != nil {
		return nil, watch.explain(err, login.secrets)
	}
	refs, err := upload.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, watch.explain(err, login.secrets)
	}
	return &packSession{
		upload:  upload,
		refs:    refs,
		limits:  o.limits,
		explain: func(err error) error { return watch.explain(err, login.secrets) },
	}, nil
}

// endpoint is made anew for each session, because a redirect changes it.
func (o *httpOrigin) endpoint() *transport.Endpoint {
	host := o.url.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port, _ := strconv.Atoi(o.url.Port()) // 0 is the scheme's own
	return &transport.Endpoint{
		Protocol: o.url.Scheme,
		Host:     host,
		Port:     port,
		Path:     strings.TrimSuffix(o.url.EscapedPath(), "/"),
	}
}

// connections makes a new pool only when the trusted certificates have changed.
func (o *httpOrigin) connections() (*http.Transport, error) {
	ca, err := o.readCA()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns != nil && bytes.Equal(ca, o.ca) {
		return o.conns, nil
	}
	roots, err := trust(o.caFile, ca)
	if err != nil {
		return nil, err
	}
	if o.conns != nil {
		o.conns.CloseIdleConnections()
	}
	o.conns, o.ca = newConnections(roots), ca
	return o.conns, nil
}

func (o *httpOrigin) readCA() ([]byte, error) {
	if o.caFile == "" {
		return nil, nil
	}
	ca, err := readBounded(o.caFile, maxCABytes)
	if err != nil {
		return nil, unreachable(
			fmt.Sprintf("the CA file %s cannot be read (%s)", o.caFile, osReason(err)),
			"mount it or correct its path")
	}
	return ca, nil
}

// trust is nil, meaning the system's roots, when there is no CA file.
func trust(caFile string, ca []byte) (*x509.CertPool, error) {
	if caFile == "" {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, unreachable(fmt.Sprintf("the CA file %s holds no PEM certificate", caFile), "correct the file")
	}
	return roots, nil
}

func newConnections(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  30 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           2,
		MaxResponseHeaderBytes: 64 * kib,
		ForceAttemptHTTP2:      true,
	}
}
