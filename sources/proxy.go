package sources

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// proxyVariables name the proxy for URLs of each scheme, in the environment, the first
// that is set; each may be in small letters. They are curl's and Git's: net/http does not
// know ALL_PROXY.
func proxyVariables(scheme string) []string {
	switch scheme {
	case "https":
		return []string{"HTTPS_PROXY", allProxy}
	case "http":
		return []string{"HTTP_PROXY", allProxy}
	}
	return []string{allProxy}
}

const allProxy = "ALL_PROXY"

// proxyFor is the proxy on the way to a URL; nil for none, as for the hosts of NO_PROXY
// and those of this machine.
func proxyFor(target *url.URL) (*url.URL, error) {
	for _, name := range proxyVariables(target.Scheme) {
		text := cmp.Or(os.Getenv(strings.ToLower(name)), os.Getenv(name))
		if text == "" {
			continue
		}
		if parseProxy(text) == nil { // the library would go without one
			return nil, unreachable(name+" is not the URL of a proxy", "give one such as http://proxy.example.com:3128 or socks5://proxy.example.com:1080")
		}
		environment := httpproxy.FromEnvironment()
		environment.HTTPProxy, environment.HTTPSProxy = text, text
		same := *target
		if same.Scheme == "ssh" { // which the library does not know
			same.Scheme = "https"
		}
		return environment.ProxyFunc()(&same)
	}
	return nil, nil
}

// parseProxy is nil for what cannot be one. A host alone is an HTTP proxy.
func parseProxy(text string) *url.URL {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil
	}
	return u
}

// ofRequest is proxyFor in the form that net/http wants.
func ofRequest(req *http.Request) (*url.URL, error) { return proxyFor(req.URL) }

// proxySecrets are what no error may show of the URLs of proxies. A name without a
// password may be a token.
func proxySecrets() []string {
	var list []string
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", allProxy} {
		for _, text := range []string{os.Getenv(name), os.Getenv(strings.ToLower(name))} {
			u := parseProxy(text)
			if text == "" || u == nil || u.User == nil {
				continue
			}
			password, has := u.User.Password()
			if !has {
				password = u.User.Username()
			}
			list = append(list, disguises(u.User.Username(), password)...)
		}
	}
	return list
}

// proxyRefuses is an answer of a proxy that is no connection. Its own words are not
// repeated.
func proxyRefuses(status int) error {
	return unreachable(strings.TrimSpace(fmt.Sprintf("the proxy answered %d %s", status, http.StatusText(status))),
		"check the proxy that the environment names, its credentials, and whether it may connect to the server")
}

// checkConnect replaces net/http's error, which is in the proxy's words.
func checkConnect(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode != http.StatusOK {
		return proxyRefuses(answer.StatusCode)
	}
	return nil
}

// dialer connects for SSH, through the proxy where there is one.
type dialer struct {
	net.Dialer
	trust func() (*tls.Config, error) // for a proxy that is reached over TLS
}

func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	via, err := proxyFor(&url.URL{Scheme: "ssh", Host: address})
	switch {
	case err != nil:
		return nil, err
	case via == nil:
		return d.DialContext(ctx, "tcp", address)
	case via.Scheme == "http" || via.Scheme == "https":
		return d.connect(ctx, via, address)
	}
	socks, err := proxy.FromURL(via, &d.Dialer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	if within, can := socks.(proxy.ContextDialer); can {
		return within.DialContext(ctx, "tcp", address)
	}
	return socks.Dial("tcp", address)
}

// connect asks an HTTP proxy for a connection, which net/http can do for https only.
func (d *dialer) connect(ctx context.Context, via *url.URL, address string) (net.Conn, error) {
	port := map[string]string{"http": "80", "https": "443"}[via.Scheme]
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), cmp.Or(via.Port(), port)))
	if err != nil {
		return nil, err
	}
	if via.Scheme == "https" {
		trust, err := d.trust()
		if err != nil {
			conn.Close()
			return nil, err
		}
		trust.ServerName = via.Hostname()
		conn = tls.Client(conn, trust)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(d.Timeout))
	open, err := askProxy(conn, via, address)
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return open, nil
}

func askProxy(conn net.Conn, via *url.URL, address string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {"quorate"}}}
	if via.User != nil {
		password, _ := via.User.Password()
		credentials := &http.Request{Header: http.Header{}}
		credentials.SetBasicAuth(via.User.Username(), password)
		request.Header.Set("Proxy-Authorization", credentials.Header.Get("Authorization"))
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: maxRefusalBytes}
	early := bufio.NewReader(limited)
	answer, err := http.ReadResponse(early, request)
	if err != nil {
		return nil, unreachable("the proxy's answer is not HTTP's", "check the proxy that the environment names")
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, proxyRefuses(answer.StatusCode)
	}
	limited.N = math.MaxInt64
	return &earlyConn{Conn: conn, r: early}, nil
}

// earlyConn begins with what the server said before the proxy's answer was read.
type earlyConn struct {
	net.Conn
	r io.Reader
}

func (c *earlyConn) Read(p []byte) (int, error) { return c.r.Read(p) }
