package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
)

// front is a proxy before a Git server, which can be down or answer in its place.
type front struct {
	*tunnel
	status atomic.Int32
}

// startFront puts a front before the test's Git server, which the daemon then
// reads from.
func (w *world) startFront() *front {
	w.Helper()
	target, err := url.Parse(w.git.URL())
	w.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	f := &front{tunnel: w.startTunnel(listener.Addr().String())}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
	}}
	server := &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, ask *http.Request) {
		if status := f.status.Load(); status != 0 {
			http.Error(answer, http.StatusText(int(status)), int(status))
			return
		}
		proxy.ServeHTTP(answer, ask)
	})}
	go func() { _ = server.Serve(listener) }()
	w.Cleanup(func() { _ = server.Close() })
	w.options.Repo = fmt.Sprintf("http://%s%s", f.address, target.Path)
	return f
}

// answer has every request answered with a status; 0 lets them through.
func (f *front) answer(status int) { f.status.Store(int32(status)) }

// tunnel passes TCP connections on to an address, until it is shut.
type tunnel struct {
	address, target string
	mu              sync.Mutex
	listener        net.Listener
	open            map[net.Conn]bool
}

// startTunnel begins to pass connections on to target.
func (w *world) startTunnel(target string) *tunnel {
	w.Helper()
	t := &tunnel{address: "127.0.0.1:0", target: target, open: map[net.Conn]bool{}}
	w.must(t.start())
	w.Cleanup(t.stop)
	return t
}

// start listens, at the same address every time.
func (t *tunnel) start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	listener, err := net.Listen("tcp", t.address)
	if err != nil {
		return err
	}
	t.listener, t.address = listener, listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go t.pass(conn)
		}
	}()
	return nil
}

// stop refuses connections and cuts those that are open.
func (t *tunnel) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.listener.Close()
	for conn := range t.open {
		_ = conn.Close()
	}
}

func (t *tunnel) pass(near net.Conn) {
	defer t.keep(near)()
	t.mu.Lock()
	target := t.target
	t.mu.Unlock()
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer t.keep(far)()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// keep remembers a connection until the returned function closes it.
func (t *tunnel) keep(conn net.Conn) (drop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[conn] = true
	return func() {
		_ = conn.Close()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, conn)
	}
}
