package sources_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
)

// testProxy knows names that nothing else does: each is a server on loopback. It lets
// one user in.
type testProxy struct {
	url   string // with the user and the password
	names map[string]string

	mu    sync.Mutex
	asked []string
}

const proxyUser = "squid"

// target notes what is asked for, and connects.
func (p *testProxy) target(address string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, address)
	if p.names[address] == "" {
		return nil, errors.New("no such server")
	}
	return net.Dial("tcp", p.names[address])
}

// take is what was asked for since the last time, each address once.
func (p *testProxy) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := slices.Compact(p.asked)
	p.asked = nil
	return asked
}

// carry copies both ways until one ends.
func carry(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	go func() {
		_, _ = io.Copy(a, b)
		a.Close()
	}()
	_, _ = io.Copy(b, a)
}

// ServeHTTP is a proxy for CONNECT, and for requests without TLS.
func (p *testProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Proxy-Authorization") != basic(proxyUser, secret) {
		http.Error(w, "you sent "+r.Header.Get("Proxy-Authorization"), http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(*httputil.ProxyRequest) {},
			Transport: &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return p.target(address) }, DisableKeepAlives: true},
		}
		proxy.ServeHTTP(w, r)
		return
	}
	to, err := p.target(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	// In one segment with what an SSH server says first.
	banner := make([]byte, 4)
	if strings.HasSuffix(r.Host, ":22") {
		_, _ = io.ReadFull(to, banner)
	} else {
		banner = nil
	}
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = from.Write(append([]byte("HTTP/1.1 200 Connection established\r\n\r\n"), banner...))
	carry(from, to)
}

// login puts the credentials into a URL.
func (p *testProxy) login(scheme, address string) {
	p.url = (&url.URL{Scheme: scheme, User: url.UserPassword(proxyUser, secret), Host: address}).String()
}

func httpProxy(t *testing.T, names map[string]string) *testProxy {
	t.Helper()
	return startProxy(t, names, "http", httptest.NewServer)
}

// httpsProxy has the certificate that all test servers have.
func httpsProxy(t *testing.T, names map[string]string) *testProxy {
	t.Helper()
	return startProxy(t, names, "https", httptest.NewTLSServer)
}

func startProxy(t *testing.T, names map[string]string, scheme string, start func(http.Handler) *httptest.Server) *testProxy {
	t.Helper()
	p := &testProxy{names: names}
	srv := start(p)
	t.Cleanup(srv.Close)
	p.login(scheme, srv.Listener.Addr().String())
	return p
}

// socksProxy is RFC 1928 with RFC 1929, for names only.
func socksProxy(t *testing.T, scheme string, names map[string]string) *testProxy {
	t.Helper()
	p := &testProxy{names: names}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p.login(scheme, listener.Addr().String())
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.socks(conn)
		}
	}()
	return p
}

func (p *testProxy) socks(conn net.Conn) {
	read := func(n byte) []byte {
		data := make([]byte, n)
		_, _ = io.ReadFull(conn, data)
		return data
	}
	read(read(2)[1])                // version and methods
	_, _ = conn.Write([]byte{5, 2}) // user and password
	user := read(read(2)[1])
	password := read(read(1)[0])
	if string(user) != proxyUser || string(password) != secret {
		_, _ = conn.Write([]byte{1, 1})
		conn.Close()
		return
	}
	_, _ = conn.Write([]byte{1, 0})
	if head := read(4); head[1] != 1 || head[3] != 3 {
		conn.Close()
		return
	}
	name := read(read(1)[0])
	to, err := p.target(fmt.Sprintf("%s:%d", name, binary.BigEndian.Uint16(read(2))))
	if err != nil {
		_, _ = conn.Write([]byte{5, 4, 0, 1, 0, 0, 0, 0, 0, 0}) // host unreachable
		conn.Close()
		return
	}
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	carry(conn, to)
}

// withoutProxies takes those of the machine out of the environment.
func withoutProxies(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"} {
		t.Setenv(name, "")
		t.Setenv(strings.ToLower(name), "")
	}
}

func wantAsked(t *testing.T, p *testProxy, want ...string) {
	t.Helper()
	if asked := p.take(); !slices.Equal(asked, want) {
		t.Errorf("the proxy was asked for %q, want %q", asked, want)
	}
}

// The names of the test servers' certificate, and of nothing else here.
const named = "example.com:8443"

func TestHTTPSGoesThroughTheProxyOfTheEnvironment(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serveTLS(t, u)
	names := map[string]string{named: srv.Listener.Addr().String()}
	socks, plain, secured := socksProxy(t, "socks5", names), httpProxy(t, names), httpsProxy(t, names)
	other := httpProxy(t, nil)
	for name, tc := range map[string]struct {
		proxy       *testProxy
		environment map[string]string
	}{
		"HTTPS_PROXY":                  {plain, map[string]string{"HTTPS_PROXY": plain.url, "ALL_PROXY": other.url, "HTTP_PROXY": other.url}},
		"https_proxy":                  {plain, map[string]string{"https_proxy": plain.url}},
		"HTTPS_PROXY, SOCKS":           {socks, map[string]string{"HTTPS_PROXY": socks.url}},
		"ALL_PROXY, HTTP":              {plain, map[string]string{"ALL_PROXY": plain.url}},
		"ALL_PROXY, HTTP over TLS":     {secured, map[string]string{"ALL_PROXY": secured.url}},
		"ALL_PROXY, SOCKS":             {socks, map[string]string{"ALL_PROXY": socks.url}},
		"all_proxy, SOCKS with names":  {socks, map[string]string{"all_proxy": strings.Replace(socks.url, "socks5", "socks5h", 1)}},
		"NO_PROXY names another":       {plain, map[string]string{"ALL_PROXY": plain.url, "NO_PROXY": "example.org,10.0.0.0/8"}},
		"ALL_PROXY, without a scheme":  {plain, map[string]string{"ALL_PROXY": strings.TrimPrefix(plain.url, "http://")}},
		"HTTPS_PROXY, HTTP over TLS":   {secured, map[string]string{"HTTPS_PROXY": secured.url}},
		"HTTPS_PROXY, SOCKS with name": {socks, map[string]string{"HTTPS_PROXY": strings.Replace(socks.url, "socks5", "socks5h", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			withoutProxies(t)
			for variable, value := range tc.environment {
				t.Setenv(variable, value)
			}
			repo := open(t, sources.Config{URL: "https://" + named + "/etcd.git", CAFile: srv.caFile(t)})
			wantPaths(t, fetch(t, repo), "a.yaml")
			wantAsked(t, tc.proxy, named)
			wantAsked(t, other)
		})
	}
}

func TestAPIGoesThroughTheProxyOfTheEnvironment(t *testing.T) {
	srv := serveTLS(t, newUpstream(t))
	srv.answer(http.StatusOK, "{}")
	p := httpProxy(t, map[string]string{named: srv.Listener.Addr().String()})
	withoutProxies(t)
	t.Setenv("ALL_PROXY", p.url)
	api, err := sources.NewAPI("https://"+named, sources.Auth{PasswordFile: secretFile(t, secret)}, srv.caFile(t), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := api.Call(t.Context(), "ask", sources.Request{Method: http.MethodGet, Path: "/"}); err != nil || string(answer.Body) != "{}" {
		t.Errorf("got %q, %v", answer.Body, err)
	}
	wantAsked(t, p, named)
	p.names = nil
	srv.CloseClientConnections()
	_, err = api.Call(t.Context(), "ask", sources.Request{Method: http.MethodGet, Path: "/"})
	if !errors.Is(err, sources.ErrUnreachable) || !strings.Contains(err.Error(), "the proxy answered 502 Bad Gateway; check the proxy") || strings.Contains(err.Error(), "check the address") {
		t.Errorf("got error %v", err)
	}
	wantNoSecret(t, err, proxyUser)
}

func TestHTTPGoesThroughTheProxyOfTheEnvironment(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	const host = "git.invalid:8080"
	p := httpProxy(t, map[string]string{host: serve(t, u).Listener.Addr().String()})
	for _, variable := range []string{"HTTP_PROXY", "ALL_PROXY"} {
		withoutProxies(t)
		t.Setenv(variable, p.url)
		wantPaths(t, fetch(t, open(t, sources.Config{URL: "http://" + host + "/etcd.git"})), "a.yaml")
		wantAsked(t, p, host)
	}
}

// What NO_PROXY names, and this machine, is reached directly.
func TestNoProxyIsHeeded(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	secure := serveSSH(t, u, false)
	p := httpProxy(t, nil)
	withoutProxies(t)
	t.Setenv("ALL_PROXY", p.url)
	ssh := sources.Auth{Dir: secure.credentials}
	wantPaths(t, fetch(t, open(t, sources.Config{URL: serve(t, u).repo()})), "a.yaml")
	wantPaths(t, fetch(t, open(t, sources.Config{URL: secure.repo(), Auth: ssh})), "a.yaml")
	secure.address = "git.invalid:22"
	secure.knowHost(t, "host.pub")
	for _, list := range []string{"git.invalid", "example.org, .invalid", "*", "git.invalid:22,git.invalid:443"} {
		t.Setenv("NO_PROXY", list)
		for _, cfg := range []sources.Config{{URL: "https://git.invalid/etcd.git"}, {URL: secure.repo(), Auth: ssh}} {
			refused(t, open(t, cfg), sources.ErrUnreachable, "git.invalid")
		}
	}
	wantAsked(t, p)
}

func TestSSHGoesThroughAllProxy(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serveSSH(t, u, false)
	names := map[string]string{"git.invalid:22": srv.address}
	srv.address = "git.invalid:22"
	srv.knowHost(t, "host.pub")
	ca := serveTLS(t, u).caFile(t)
	for name, p := range map[string]*testProxy{
		"HTTP": httpProxy(t, names), "HTTP over TLS": httpsProxy(t, names),
		"SOCKS": socksProxy(t, "socks5", names), "SOCKS with names": socksProxy(t, "socks5h", names),
	} {
		t.Run(name, func(t *testing.T) {
			withoutProxies(t)
			t.Setenv("ALL_PROXY", p.url)
			t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // not for ssh
			repo := open(t, sources.Config{URL: srv.repo(), CAFile: ca, Auth: sources.Auth{Dir: srv.credentials}})
			wantPaths(t, fetch(t, repo), "a.yaml")
			wantAsked(t, p, "git.invalid:22")
		})
	}
}

// parrot is a server that answers with the credentials that it gets.
func parrot(t *testing.T) string {
	t.Helper()
	return answerEach(t, func(conn net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			fmt.Fprintf(conn, "%s %s\r\n\r\n", r.Header.Get("Proxy-Authorization"), secret)
		}
	})
}

// 491: a proxy that refuses, is none, is down, or cannot be understood is an error that shows
// no secret, and never a reason to go without one.
func TestProxyThatDoesNotConnectIsAnError(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serveSSH(t, u, false)
	srv.address = "git.invalid:22"
	srv.knowHost(t, "host.pub")
	wrong := httpProxy(t, nil)
	wrongURL := strings.Replace(wrong.url, proxyUser, "other", 1)
	none := httptest.NewServer(http.NotFoundHandler())
	none.Close()
	login := url.UserPassword(proxyUser, secret).String()
	for name, tc := range map[string]struct{ proxy, says string }{
		"wrong credentials":     {wrongURL, "the proxy answered 407 Proxy Authentication Required"},
		"no such server":        {wrong.url, "the proxy answered 502 Bad Gateway"},
		"no such server, SOCKS": {socksProxy(t, "socks5", nil).url, "host unreachable"},
		"wrong user, SOCKS":     {strings.Replace(socksProxy(t, "socks5", nil).url, proxyUser, "other", 1), "authentication"},
		"down":                  {"http://" + login + "@" + none.Listener.Addr().String(), "connection refused"},
		"down, SOCKS":           {"socks5h://" + login + "@" + none.Listener.Addr().String(), "connection refused"},
		"another server":        {"http://" + login + "@" + parrot(t), "HTTP"},
		"another scheme":        {"socks4://" + login + "@127.0.0.1:1", "ALL_PROXY is not the URL of a proxy"},
		"not a URL":             {"http://" + login + "@127.0.0.1:port", "ALL_PROXY is not the URL of a proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			withoutProxies(t)
			t.Setenv("ALL_PROXY", tc.proxy)
			for _, cfg := range []sources.Config{
				{URL: "https://git.invalid/etcd.git"},
				{URL: srv.repo(), Auth: sources.Auth{Dir: srv.credentials}},
			} {
				err := refused(t, open(t, cfg), sources.ErrUnreachable, tc.says)
				wantNoSecret(t, err, "other")
				wantNoSecret(t, err, proxyUser)
			}
		})
	}
}

// Nor may a proxy or a jump host that takes the connection and says nothing hold up what
// follows.
func TestHangingWayIsBoundedByTheContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	jump, srv := jumpTo(t, newUpstream(t))
	auth := sources.Auth{Dir: srv.credentials}
	withoutProxies(t)
	jump.address = listener.Addr().String()
	knowBoth(t, jump, srv, "host.pub")
	hangs := func(cfg sources.Config) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		snapshot, err := open(t, cfg).Fetch(ctx)
		wantRefusal(t, snapshot, err, sources.ErrUnreachable, "no complete answer in time")
	}
	hangs(sources.Config{URL: srv.repo(), SSHJump: jump.login(), Auth: auth})
	srv.address = "git.invalid:22"
	srv.knowHost(t, "host.pub")
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Setenv("ALL_PROXY", scheme+"://"+listener.Addr().String())
		hangs(sources.Config{URL: srv.repo(), Auth: auth})
		hangs(sources.Config{URL: "https://git.invalid/etcd.git"})
	}
}

// jumpTo makes one server the way to another: both let the same key in, and are known.
func jumpTo(t *testing.T, u *upstream) (jump, srv *sshServer) {
	t.Helper()
	return jumpWith(t, u, "")
}

func jumpWith(t *testing.T, u *upstream, config string) (jump, srv *sshServer) {
	t.Helper()
	srv, jump = serveSSH(t, u, false), serveSSHWith(t, u, config)
	copyFile(t, filepath.Join(srv.dir, "authorized"), filepath.Join(jump.dir, "authorized"))
	knowBoth(t, jump, srv, "host.pub")
	return jump, srv
}

// knowBoth writes the keys of both, with that of the jump host from a file.
func knowBoth(t *testing.T, jump, srv *sshServer, key string) {
	t.Helper()
	jump.knowHost(t, key)
	srv.knowHost(t, "host.pub")
	write(t, filepath.Join(srv.credentials, "known_hosts"), readFile(t, filepath.Join(srv.credentials, "known_hosts"))+readFile(t, filepath.Join(jump.credentials, "known_hosts")))
}

func (s *sshServer) login() string { return s.user + "@" + s.address }

func TestSSHGoesThroughAJumpHost(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	jump, srv := jumpTo(t, u)
	cfg := sources.Config{URL: srv.repo(), SSHJump: jump.login(), Auth: sources.Auth{Dir: srv.credentials}}
	repo := open(t, cfg)
	wantPaths(t, fetch(t, repo), "a.yaml")
	u.commit("more", map[string]string{"b.yaml": "b"})
	wantPaths(t, fetch(t, repo), "a.yaml", "b.yaml")
	p, err := sources.NewPublisher(sources.PublishConfig{URL: cfg.URL, SSHJump: cfg.SSHJump, Auth: cfg.Auth, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := p.Publish(t.Context(), sources.Publication{Subject: "status", Files: []sources.File{{Path: "a", Data: []byte("a")}}}); err != nil || !done.Pushed {
		t.Fatal(done, err)
	}

	// Both keys are checked, and both servers check theirs.
	jump.keygen(t, filepath.Join(jump.dir, "other"))
	knowBoth(t, jump, srv, "other.pub")
	refused(t, repo, sources.ErrAuthentication, "the jump host's key is not the one in known_hosts")
	srv.knowHost(t, "host.pub")
	refused(t, repo, sources.ErrAuthentication, "known_hosts has no key of "+jump.address)
	jump.knowHost(t, "host.pub")
	copyFile(t, filepath.Join(jump.credentials, "known_hosts"), filepath.Join(srv.credentials, "known_hosts"))
	refused(t, repo, sources.ErrAuthentication, "known_hosts has no key of "+srv.address)
	knowBoth(t, jump, srv, "host.pub")
	authorized := readFile(t, filepath.Join(jump.dir, "authorized"))
	write(t, filepath.Join(jump.dir, "authorized"), "")
	refused(t, repo, sources.ErrAuthentication, "the jump host does not accept the SSH key of user "+jump.user)

	// Another key for it, with the same passphrase.
	jump.keygen(t, filepath.Join(jump.dir, "locked"), "-N", secret)
	copyFile(t, filepath.Join(jump.dir, "locked"), filepath.Join(srv.credentials, "jumpIdentity"))
	copyFile(t, filepath.Join(jump.dir, "locked.pub"), filepath.Join(jump.dir, "authorized"))
	refused(t, repo, sources.ErrAuthentication, "SSH key jumpIdentity has a passphrase")
	write(t, filepath.Join(srv.credentials, "password"), secret)
	wantPaths(t, fetch(t, repo), "a.yaml", "b.yaml")
	write(t, filepath.Join(jump.dir, "authorized"), authorized)
	refused(t, repo, sources.ErrAuthentication, "the jump host does not accept the SSH key")
}

// The way is through the jump host or there is none.
func TestJumpHostThatDoesNotForwardIsAnError(t *testing.T) {
	jump, srv := jumpWith(t, newUpstreamWith(t, map[string]string{"a.yaml": "a"}), "AllowTcpForwarding no\n")
	cfg := sources.Config{URL: srv.repo(), SSHJump: jump.login(), Auth: sources.Auth{Dir: srv.credentials}}
	refused(t, open(t, cfg), sources.ErrUnreachable, "the jump host does not connect to "+srv.address)
}

// A proxy is on the way to the jump host, which alone knows the server.
func TestJumpHostIsReachedThroughAllProxy(t *testing.T) {
	jump, srv := jumpTo(t, newUpstreamWith(t, map[string]string{"a.yaml": "a"}))
	p := socksProxy(t, "socks5", map[string]string{"jump.invalid:22": jump.address})
	jump.address = "jump.invalid:22"
	knowBoth(t, jump, srv, "host.pub")
	withoutProxies(t)
	t.Setenv("ALL_PROXY", p.url)
	for _, address := range []string{jump.user + "@jump.invalid", "ssh://" + jump.user + "@jump.invalid:22"} {
		cfg := sources.Config{URL: srv.repo(), SSHJump: address, Auth: sources.Auth{Dir: srv.credentials}}
		wantPaths(t, fetch(t, open(t, cfg)), "a.yaml")
		wantAsked(t, p, "jump.invalid:22")
	}
}
