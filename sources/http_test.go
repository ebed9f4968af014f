package sources_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/test/freeport"
)

const secret = "s3cret/p+ss w=rd"

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func wantNoSecret(t *testing.T, err error, user string) {
	t.Helper()
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(user + ":" + secret)),
	} {
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), form) {
				t.Fatalf("error %q shows the secret as %q", e, form)
			}
		}
	}
}

func TestCredentialsAreSent(t *testing.T) {
	user, password := secretFile(t, "ada\n"), secretFile(t, secret+"\n")
	for name, tc := range map[string]struct {
		auth   sources.Auth
		header string
	}{
		"user and password": {sources.Auth{UsernameFile: user, PasswordFile: password}, basic("ada", secret)},
		"token as password": {sources.Auth{PasswordFile: password}, basic("x-access-token", secret)},
		"bearer token":      {sources.Auth{BearerTokenFile: password}, "Bearer " + secret},
		"a directory":       {sources.Auth{Dir: dirOf(t, map[string]string{"username": "ada\n", "password": secret})}, basic("ada", secret)},
		"a Secret":          {sources.Auth{Secret: secretOf(map[string]string{"bearerToken": secret + "\n"})}, "Bearer " + secret},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
			srv := serveTLS(t, u)
			srv.demand(tc.header)
			wantPaths(t, fetch(t, open(t, sources.Config{URL: srv.repo(), Auth: tc.auth, CAFile: srv.caFile(t)})), "a.yaml")
		})
	}
}

func TestRefusedCredentialsAreAnErrorWithoutTheSecret(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
		srv := serveTLS(t, u)
		srv.answer(status, "not with "+secret+" nor "+basic("ada", secret))
		auth := sources.Auth{UsernameFile: secretFile(t, "ada"), PasswordFile: secretFile(t, secret)}
		err := refused(t, open(t, sources.Config{URL: srv.repo(), Auth: auth, CAFile: srv.caFile(t)}), sources.ErrAuthentication,
			"fetch branch main of "+srv.repo(), "credentials")
		wantNoSecret(t, err, "ada")
	}
}

func TestMissingCredentialsAreAnError(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serve(t, u)
	srv.demand(basic("ada", secret))
	refused(t, open(t, sources.Config{URL: srv.repo()}), sources.ErrAuthentication, "401 Unauthorized")
}

func TestCredentialFilesAreReadForEachFetch(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serveTLS(t, u)
	srv.demand(basic("x-access-token", "new"))
	file := secretFile(t, "old")
	repo := open(t, sources.Config{URL: srv.repo(), CAFile: srv.caFile(t), Auth: sources.Auth{PasswordFile: file}})
	refused(t, repo, sources.ErrAuthentication)
	write(t, file, "new")
	wantPaths(t, fetch(t, repo), "a.yaml")
}

func TestUnusableCredentialFilesAreErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		file, says string
	}{
		"missing":   {"/nonexistent/token", "password file /nonexistent/token cannot be read (no such file or directory)"},
		"empty":     {secretFile(t, "\n"), "is empty"},
		"too large": {secretFile(t, strings.Repeat("x", 1<<20)), "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sources.Config{URL: "https://git.example.com/x", Auth: sources.Auth{PasswordFile: tc.file}}
			refused(t, open(t, cfg), sources.ErrAuthentication, tc.says)
		})
	}
}

func TestRedirectToAnotherHostDoesNotCarryThePassword(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	target := serveTLS(t, u) // with the same certificate
	target.first(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("the password went to another origin")
		}
		return false
	})
	srv := serveTLS(t, u)
	srv.redirect(target, http.StatusFound)
	repo := open(t, sources.Config{URL: srv.repo(), CAFile: srv.caFile(t), Auth: sources.Auth{PasswordFile: secretFile(t, secret)}})
	wantPaths(t, fetch(t, repo), "a.yaml")
}

// Nor is the client certificate shown to another server, at another port as little as at
// another host.
func TestRedirectToAnotherServerDoesNotSeeTheClientCertificate(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	cert, key, pool := clientCert(t, "quorate")
	target := serveTLSWith(t, u, &tls.Config{ClientAuth: tls.RequestClientCert})
	target.first(func(_ http.ResponseWriter, r *http.Request) bool {
		if len(r.TLS.PeerCertificates) > 0 {
			t.Error("the client certificate went to another origin")
		}
		return false
	})
	srv := serveTLSWith(t, u, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	srv.redirect(target, http.StatusFound)
	auth := sources.Auth{Dir: dirOf(t, map[string]string{"ca.crt": srv.caPEM(), "tls.crt": cert, "tls.key": key})}
	repo := open(t, sources.Config{URL: srv.repo(), Auth: auth})
	wantPaths(t, fetch(t, repo), "a.yaml")
	srv.first(nil)
	u.commit("more", map[string]string{"b.yaml": "b"})
	wantPaths(t, fetch(t, repo), "a.yaml", "b.yaml") // to the server itself it is
	if target.posts.Load() == 0 {
		t.Error("the redirect was not followed")
	}
}

// A redirect is for one fetch: whoever answers once in the server's place does not get
// the next ones.
func TestRedirectIsFollowedForOneFetch(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			srv := serve(t, newUpstreamWith(t, map[string]string{"own.yaml": "a"}))
			target := serve(t, newUpstreamWith(t, map[string]string{"other.yaml": "a"}))
			srv.redirect(target, status)
			repo := open(t, sources.Config{URL: srv.repo()})
			wantPaths(t, fetch(t, repo), "other.yaml")
			srv.first(nil)
			wantPaths(t, fetch(t, repo), "own.yaml")
			asked := target.lists.Load() + target.posts.Load()
			fetch(t, repo)
			if now := target.lists.Load() + target.posts.Load(); now != asked {
				t.Errorf("%d requests more went where a redirect led to once", now-asked)
			}
			// Nor does it count as read when the server itself gives no answer.
			srv.redirect(target, status)
			repo = open(t, sources.Config{URL: srv.repo()})
			fetch(t, repo)
			srv.Close()
			refused(t, repo, sources.ErrUnreachable)
		})
	}
}

// A server that has moved for good is followed at each poll, by way of its old address.
func TestRedirectThatStaysIsFollowedEachTime(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv, target := serve(t, u), serve(t, u)
	srv.redirect(target, http.StatusMovedPermanently)
	repo := open(t, sources.Config{URL: srv.repo()})
	for n := range int64(3) {
		wantPaths(t, fetch(t, repo), "a.yaml")
		if asked := srv.lists.Load(); asked != n+1 {
			t.Errorf("after %d fetches the configured URL was asked %d times", n+1, asked)
		}
	}
}

func TestRedirectWithASecretIsNotShown(t *testing.T) {
	u := newUpstream(t)
	srv := serve(t, u)
	srv.first(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Location", "ftp://tok3n@login.example.com/?key=tok3n")
		w.WriteHeader(http.StatusFound)
		return true
	})
	err := refused(t, open(t, sources.Config{URL: srv.repo()}), sources.ErrUnreachable)
	if strings.Contains(err.Error(), "tok3n") {
		t.Errorf("%q shows a token", err)
	}
}

func TestServerAnswersAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		kind   error
		says   string
	}{
		"not found":    {http.StatusNotFound, "", sources.ErrRepositoryNotFound, "404 Not Found"},
		"gone":         {http.StatusGone, "", sources.ErrRepositoryNotFound, "410 Gone"},
		"broken":       {http.StatusBadGateway, "<html>", sources.ErrUnreachable, "502 Bad Gateway"},
		"rate limit":   {http.StatusTooManyRequests, "", sources.ErrUnreachable, "429 Too Many Requests"},
		"odd":          {599, "", sources.ErrUnreachable, "the server answered 599;"},
		"login page":   {http.StatusOK, "<html>Please sign in</html>", sources.ErrUnreachable, "not Git's"},
		"endless":      {http.StatusOK, strings.Repeat("0009# xx\n", 2<<20), sources.ErrUnreachable, ""},
		"long refusal": {http.StatusInternalServerError, strings.Repeat("no ", 1<<20), sources.ErrUnreachable, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, newUpstream(t))
			srv.answer(tc.status, tc.body)
			refused(t, open(t, sources.Config{URL: srv.repo()}), tc.kind, tc.says)
		})
	}
}

func TestEndlessListOfBranchesIsRefused(t *testing.T) {
	srv := serve(t, newUpstream(t))
	line := func(text string) []byte {
		return fmt.Appendf(nil, "%04x0123456789012345678901234567890123456789 %s\n", 46+len(text), text)
	}
	srv.first(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000"))
		_, _ = w.Write(line("refs/heads/first\x00shallow"))
		for {
			if _, err := w.Write(line("refs/heads/another")); err != nil {
				return true
			}
		}
	})
	refused(t, open(t, sources.Config{URL: srv.repo()}), sources.ErrTooLarge, "answer is larger than allowed")
}

// Nor is an endless answer read that is no pack: a list in protocol 2, and the report of
// a push.
func TestEndlessAnswerWithoutAPackIsRefusedEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		service, greeting, line string
		ask                     func(url string) error
	}{
		"list": {"upload", "000eversion 2\n000cls-refs\n0000", "0040" + strings.Repeat("1", 40) + " refs/heads/another\n", func(url string) error {
			_, err := open(t, sources.Config{URL: url}).Fetch(t.Context())
			return err
		}},
		"report": {"receive", "0000", "0018ok refs/heads/other\n", func(url string) error {
			p, err := sources.NewPublisher(sources.PublishConfig{URL: url, Owner: "test"})
			if err == nil {
				_, err = p.Publish(t.Context(), sources.Publication{Subject: "s", Files: []sources.File{{Path: "a", Data: []byte("a")}}})
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, newUpstream(t))
			var sent atomic.Int64
			srv.first(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.RequestURI(), tc.service) { // nothing is read before the push
					return false
				}
				w.Header().Set("Content-Type", "application/x-git-answer")
				if r.Method == http.MethodGet {
					_, _ = w.Write([]byte(tc.greeting))
					return true
				}
				_, _ = io.Copy(io.Discard, r.Body)
				for lines := []byte(strings.Repeat(tc.line, 1000)); ; {
					n, err := w.Write(lines)
					sent.Add(int64(n))
					if err != nil {
						return true
					}
				}
			})
			if err := tc.ask(srv.repo()); !errors.Is(err, sources.ErrTooLarge) {
				t.Errorf("got error %v", err)
			}
			if n := sent.Load(); n > 24<<20 {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
}

func TestServerDownIsAnErrorUntilItIsBack(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := newServer(t, u)
	address, err := freeport.At("127.0.0.1") // which no connection gets before the server is back
	if err != nil {
		t.Fatal(err)
	}
	repo := open(t, sources.Config{URL: "http://" + address + "/etcd.git"})
	refused(t, repo, sources.ErrUnreachable, "connection refused", "check the URL")

	back := httptest.NewUnstartedServer(srv)
	_ = back.Listener.Close()
	if back.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	back.Start()
	t.Cleanup(back.Close)
	wantPaths(t, fetch(t, repo), "a.yaml")
}

func TestHangingServerIsBoundedByTheContext(t *testing.T) {
	for _, hangs := range []string{"/info/refs", "/git-upload-pack"} {
		t.Run(hangs[1:], func(t *testing.T) {
			u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
			srv := serve(t, u)
			hang(t, srv, hangs)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			snapshot, err := open(t, sources.Config{URL: srv.repo()}).Fetch(ctx)
			wantRefusal(t, snapshot, err, sources.ErrUnreachable, "no complete answer in time")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v is not DeadlineExceeded", err)
			}
		})
	}
}

func TestHangingServerIsBoundedByTheTimeout(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serve(t, u)
	hang(t, srv, "/git-upload-pack")
	repo := open(t, sources.Config{URL: srv.repo(), Timeout: 200 * time.Millisecond})
	refused(t, repo, sources.ErrUnreachable, "allow more time")
}

// hang begins an answer and never continues, which no timeout for the headers
// would notice.
func hang(t *testing.T, srv *server, suffix string) {
	t.Helper()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	srv.first(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, suffix) {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-anything")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-stop
		return true
	})
}

func TestAnswerThatBreaksOffIsAnError(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a", "b.yaml": strings.Repeat("b\n", 10000)})
	srv := serve(t, u)
	srv.first(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
			return false
		}
		whole := httptest.NewRecorder()
		srv.backend.ServeHTTP(whole, r)
		w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		return true
	})
	refused(t, open(t, sources.Config{URL: srv.repo()}), sources.ErrUnreachable)
}

func TestCAFileMakesAServerTrusted(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serveTLS(t, u)
	repo := open(t, sources.Config{URL: srv.repo(), CAFile: srv.caFile(t)})
	wantPaths(t, fetch(t, repo), "a.yaml")
}

func TestUntrustedServerIsAnErrorUntilTheCAFileNamesIt(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serveTLS(t, u)
	refused(t, open(t, sources.Config{URL: srv.repo()}), sources.ErrUnreachable, "certificate")

	ca := secretFile(t, "no certificate")
	repo := open(t, sources.Config{URL: srv.repo(), CAFile: ca})
	refused(t, repo, sources.ErrUnreachable, "holds no PEM certificate")
	write(t, ca, "")
	refused(t, repo, sources.ErrUnreachable, "holds no PEM certificate")
	content := srv.caFile(t)
	repo = open(t, sources.Config{URL: srv.repo(), CAFile: content})
	wantPaths(t, fetch(t, repo), "a.yaml")
	write(t, content, "damaged")
	refused(t, repo, sources.ErrUnreachable, "holds no PEM certificate")
}

func TestMissingCAFileIsAnError(t *testing.T) {
	repo := open(t, sources.Config{URL: "https://git.example.com/x", CAFile: "/nonexistent/ca"})
	refused(t, repo, sources.ErrUnreachable, "CA file /nonexistent/ca cannot be read")
}
