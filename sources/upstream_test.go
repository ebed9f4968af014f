package sources_test

import (
	"bytes"
	"crypto/subtle"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/sources"
)

// upstream is a real bare repository and a working tree that pushes to it.
type upstream struct {
	tb   testing.TB
	root string // what a server serves
	bare string
	work string
}

func newUpstream(tb testing.TB) *upstream {
	tb.Helper()
	root := tb.TempDir()
	u := &upstream{tb: tb, root: root, bare: filepath.Join(root, "etcd.git"), work: tb.TempDir()}
	u.git(root, "init", "--quiet", "--bare", "--initial-branch=main", u.bare)
	u.git(root, "init", "--quiet", "--initial-branch=main", u.work)
	u.git(u.work, "remote", "add", "origin", u.bare)
	return u
}

// newUpstreamWith has one commit with the given files.
func newUpstreamWith(tb testing.TB, files map[string]string) *upstream {
	tb.Helper()
	u := newUpstream(tb)
	u.commit("start", files)
	return u
}

func (u *upstream) git(dir string, args ...string) string {
	u.tb.Helper()
	return u.runIn(dir, "git", args...)
}

// run runs another program than Git.
func (u *upstream) run(program string, args ...string) { u.runIn(u.root, program, args...) }

func (u *upstream) runIn(dir, program string, args ...string) string {
	u.tb.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), gitEnv()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.tb.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func gitEnv() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2024-05-01T10:00:00Z",
		"GIT_COMMITTER_NAME=Bot", "GIT_COMMITTER_EMAIL=bot@example.com", "GIT_COMMITTER_DATE=2024-05-02T10:00:00Z",
	}
}

// commit writes the files, pushes them, and returns the commit.
func (u *upstream) commit(message string, files map[string]string) string {
	u.tb.Helper()
	for name, content := range files {
		write(u.tb, filepath.Join(u.work, name), content)
	}
	u.git(u.work, "add", "--all")
	return u.push(message)
}

// push commits what is in the index.
func (u *upstream) push(message string) string {
	u.tb.Helper()
	u.git(u.work, "commit", "--quiet", "--allow-empty", "--message", message)
	u.git(u.work, "push", "--quiet", "origin", "main")
	return u.git(u.work, "rev-parse", "HEAD")
}

func write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// server is Git's own smart HTTP server, with the switches the tests need.
type server struct {
	*httptest.Server
	backend http.Handler

	lists, posts atomic.Int64 // requests so far
	old          atomic.Bool  // speak protocol 0
	mu           sync.Mutex
	before       func(http.ResponseWriter, *http.Request) bool // true when it has answered
}

func serve(tb testing.TB, u *upstream) *server {
	tb.Helper()
	s := newServer(tb, u)
	s.Server = httptest.NewServer(s)
	tb.Cleanup(s.Close)
	return s
}

func serveTLS(tb testing.TB, u *upstream) *server {
	tb.Helper()
	return serveTLSWith(tb, u, nil)
}

func serveTLSWith(tb testing.TB, u *upstream, config *tls.Config) *server {
	tb.Helper()
	s := newServer(tb, u)
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = config
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it are part of the tests
	s.StartTLS()
	tb.Cleanup(s.Close)
	return s
}

func newServer(tb testing.TB, u *upstream) *server {
	tb.Helper()
	return &server{backend: &cgi.Handler{
		Path:   filepath.Join(u.git(u.root, "--exec-path"), "git-http-backend"),
		Env:    append(gitEnv(), "GIT_PROJECT_ROOT="+u.root, "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: io.Discard,
	}}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		s.lists.Add(1)
	case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		s.posts.Add(1)
	}
	if s.old.Load() {
		r.Header.Del("Git-Protocol")
	}
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	s.backend.ServeHTTP(w, r)
}

// first has each request go through a function before Git sees it.
func (s *server) first(before func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// answer replaces Git with one fixed answer.
func (s *server) answer(status int, body string) {
	s.first(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	})
}

// redirect sends every request to the same path of another server.
func (s *server) redirect(target *server, status int) {
	s.first(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, target.URL+r.URL.RequestURI(), status)
		return true
	})
}

// tell answers with a status and a header.
func (s *server) tell(status int, name, value string) {
	s.first(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set(name, value)
		w.WriteHeader(status)
		return true
	})
}

// demand lets only one Authorization header pass.
func (s *server) demand(authorization string) {
	s.first(func(w http.ResponseWriter, r *http.Request) bool {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(authorization)) == 1 {
			return false
		}
		http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return true
	})
}

// refuse refuses requests with a word, and counts them.
func (s *server) refuse(word string) *atomic.Int64 {
	refused := &atomic.Int64{}
	s.first(func(w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(word)) {
			return false
		}
		refused.Add(1)
		http.Error(w, "no", http.StatusBadRequest)
		return true
	})
	return refused
}

func (s *server) repo() string { return s.URL + "/etcd.git" }

// caFile is the server's certificate.
func (s *server) caFile(tb testing.TB) string {
	tb.Helper()
	return secretFile(tb, s.caPEM())
}

func (s *server) caPEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func secretFile(tb testing.TB, content string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "secret")
	write(tb, path, content)
	return path
}

// noBranch is for a Config that names something else.
const noBranch = "-"

func open(tb testing.TB, cfg sources.Config) *sources.Repository {
	tb.Helper()
	switch cfg.Branch {
	case "":
		cfg.Branch = "main"
	case noBranch:
		cfg.Branch = ""
	}
	repo, err := sources.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return repo
}

func fetch(tb testing.TB, repo *sources.Repository) sources.Snapshot {
	tb.Helper()
	snapshot, err := repo.Fetch(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot
}

// refused fetches and wants an error of one kind and no trace of a snapshot.
func refused(tb testing.TB, repo *sources.Repository, kind error, says ...string) error {
	tb.Helper()
	snapshot, err := repo.Fetch(tb.Context())
	wantRefusal(tb, snapshot, err, kind, says...)
	return err
}

func wantRefusal(tb testing.TB, snapshot sources.Snapshot, err, kind error, says ...string) {
	tb.Helper()
	if !errors.Is(err, kind) {
		tb.Fatalf("got error %v, want one that is %q", err, kind)
	}
	if snapshot.Commit != "" || snapshot.Tree != "" || snapshot.Files != nil {
		tb.Fatalf("got a snapshot with the error: %+v", snapshot)
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			tb.Fatalf("error %q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		tb.Fatalf("error %q has more than one line", err)
	}
}

// refusedAny wants an error that says something, of whatever kind.
func refusedAny(tb testing.TB, repo *sources.Repository, says string) {
	tb.Helper()
	snapshot, err := repo.Fetch(tb.Context())
	if err == nil {
		tb.Fatalf("got no error, want %q", says)
	}
	wantRefusal(tb, snapshot, err, err, says)
}

func paths(s sources.Snapshot) []string {
	var names []string
	for _, file := range s.Files {
		names = append(names, file.Path)
	}
	return names
}

func wantPaths(tb testing.TB, s sources.Snapshot, want ...string) {
	tb.Helper()
	if got := paths(s); !slices.Equal(got, want) {
		tb.Fatalf("got files %q, want %q", got, want)
	}
}

func wantSkipped(tb testing.TB, s sources.Snapshot, want ...string) {
	tb.Helper()
	if !slices.Equal(s.Skipped, want) {
		tb.Fatalf("got skipped %q, want %q", s.Skipped, want)
	}
}
