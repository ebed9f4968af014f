package sources_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
)

// cutter is in the middle and lets only some bytes of the server's pass.
type cutter struct {
	address string
	most    atomic.Int64
	hangs   atomic.Bool // keep the connection, rather than cut it
}

func cutBefore(t *testing.T, target string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{address: listener.Addr().String()}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go c.carry(from, target, stop)
		}
	}()
	return c
}

func (c *cutter) carry(from net.Conn, target string, stop chan struct{}) {
	defer from.Close()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.CopyN(from, to, c.most.Load())
	if c.hangs.Load() {
		<-stop
	}
}

// A server that stops at whatever point of its answer gives an error, and
// everything when it is back.
func TestServerThatStopsAtAnyPointIsAnError(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": strings.Repeat("a: b\n", 1000)})
	http, secure := serve(t, u), serveSSH(t, u, false)
	overHTTP := cutBefore(t, http.Listener.Addr().String())
	overSSH := cutBefore(t, secure.address)
	secure.address = overSSH.address
	secure.knowHost(t, "host.pub")
	for name, way := range map[string]struct {
		cutter *cutter
		cfg    sources.Config
	}{
		"http": {overHTTP, sources.Config{URL: "http://" + overHTTP.address + "/etcd.git"}},
		"ssh":  {overSSH, sources.Config{URL: secure.repo(), Auth: sources.Auth{Dir: secure.credentials}}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, stopped := open(t, way.cfg), 0
			for _, most := range []int64{0, 1, 40, 200, 500, 900, 1400, 2000} {
				way.cutter.most.Store(most)
				snapshot, err := repo.Fetch(t.Context())
				if err == nil {
					wantPaths(t, snapshot, "a.yaml") // as much as one connection takes
					continue
				}
				stopped++
				wantRefusal(t, snapshot, err, sources.ErrUnreachable)
			}
			if stopped < 4 {
				t.Errorf("only %d of the cuts were noticed", stopped)
			}
			way.cutter.hangs.Store(true)
			for _, most := range []int64{0, 300} {
				way.cutter.most.Store(most)
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				snapshot, err := open(t, way.cfg).Fetch(ctx)
				cancel()
				wantRefusal(t, snapshot, err, sources.ErrUnreachable, "no complete answer in time")
			}
			way.cutter.most.Store(1 << 40)
			wantPaths(t, fetch(t, repo), "a.yaml")
		})
	}
}

// A server that answers and is no Git server.
func TestSSHServerThatIsSomethingElseIsAnError(t *testing.T) {
	address := answerEach(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	srv := serveSSH(t, newUpstream(t), false)
	srv.address = address
	srv.knowHost(t, "host.pub")
	refused(t, open(t, sources.Config{URL: srv.repo(), Auth: sources.Auth{Dir: srv.credentials}}), sources.ErrUnreachable)
}

// answerEach is the address of a server that answers each connection once, and ends it.
func answerEach(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer(conn)
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// A host without an address is unreachable, over whatever it is asked for.
func TestNameThatDoesNotResolveIsAnError(t *testing.T) {
	srv := serveSSH(t, newUpstream(t), false)
	srv.address = "git.invalid:22"
	srv.knowHost(t, "host.pub")
	for _, cfg := range []sources.Config{
		{URL: "https://git.invalid/etcd.git"},
		{URL: "ssh://git@git.invalid/etcd.git", Auth: sources.Auth{Dir: srv.credentials}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := open(t, cfg).Fetch(ctx)
		cancel()
		if !errors.Is(err, sources.ErrUnreachable) || !strings.Contains(err.Error(), "git.invalid") {
			t.Errorf("%s: %v", cfg.URL, err)
		}
	}
}

// What a server remembered to speak may change: it is asked again, once.
func TestServerThatForgetsProtocol2IsReadAgain(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serve(t, u)
	repo := open(t, sources.Config{URL: srv.repo()})
	fetch(t, repo)
	srv.old.Store(true)
	refused(t, repo, sources.ErrUnreachable)
	wantPaths(t, fetch(t, repo), "a.yaml")
	srv.old.Store(false)
	wantPaths(t, fetch(t, repo), "a.yaml")
}

// Repositories of SHA-256 are named as what they are.
func TestRepositoryOfSHA256IsAnError(t *testing.T) {
	u := newUpstream(t)
	other := u.root + "/other.git"
	u.git(u.root, "init", "--quiet", "--bare", "--object-format=sha256", other)
	srv := serve(t, u)
	refused(t, open(t, sources.Config{URL: srv.URL + "/other.git"}), sources.ErrUnreachable, "format sha256", "sha1 only")
}

// 429 and 503 say when to come again.
func TestRetryAfterIsHeeded(t *testing.T) {
	srv := serve(t, newUpstream(t))
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "": 0, "-1": 0, "Fri, 01 Jan 2038 00:00:00 GMT": 0, "99999999": time.Hour} {
		srv.tell(429, "Retry-After", header)
		err := refused(t, open(t, sources.Config{URL: srv.repo()}), sources.ErrUnreachable, "429")
		if got := sources.RetryAfter(err); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
