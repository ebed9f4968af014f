package main

import (
	"bytes"
	"encoding/pem"
	"html"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/branches/branchestest"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/cmd/quorate/internal/page"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// gitServer is Git's own server of one repository, by https, for those who give a password.
type gitServer struct {
	url, caFile string
	// lists and packs count the requests for references and for objects.
	lists, packs atomic.Int32
}

// serveGit serves a repository until the test ends.
func serveGit(t *testing.T, r *cmdtest.Repository) *gitServer {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &gitServer{caFile: filepath.Join(t.TempDir(), "ca.crt")}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + r.Dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, password, _ := req.BasicAuth(); password != giteaPassword {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if req.Method == http.MethodPost {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			if bytes.Contains(body, []byte("command=ls-refs")) {
				s.lists.Add(1)
			} else {
				s.packs.Add(1)
			}
		}
		if version := req.Header.Get("Git-Protocol"); version != "" {
			backend := *backend
			backend.Env = append([]string{"GIT_PROTOCOL=" + version}, backend.Env...)
			backend.ServeHTTP(w, req)
			return
		}
		backend.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	write(t, s.caFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	s.url = server.URL + "/.git"
	return s
}

// here is what a daemon reconciles itself.
type here []schema.Status

func (h here) Statuses() ([]schema.Status, bool) { return h, true }

func (here) Measured(string, string) schema.Measured { return schema.Measured{} }

// The page of a daemon shows the clusters of the daemons of two other Kubernetes clusters, with
// the credentials of its own flags: not its own branch, and of a branch that has not moved nothing
// is read again.
func TestThePageShowsTheStatusBranchesOfOtherDaemons(t *testing.T) {
	r := cmdtest.NewRepository(t)
	r.Commit("clusters/none.yaml", "")
	branchestest.Write(r, "quorate/status-here", cmdtest.Ready("of-the-own-branch"))
	branchestest.Write(r, "quorate/status-eu", cmdtest.Ready("orders"), cmdtest.Ready("carts"))
	branchestest.Write(r, "quorate/status-us", cmdtest.Ready("orders"))
	server, dir := serveGit(t, r), t.TempDir()
	write(t, filepath.Join(dir, "username"), "quorate")
	write(t, filepath.Join(dir, "password"), giteaPassword)
	f := &runFlags{pageBranches: "quorate/status", listeners: daemon.Listeners{Page: daemon.Endpoint{Listen: "127.0.0.1:0"}}}
	f.repository.config = sources.Config{URL: server.url, CAFile: server.caFile, Path: "clusters", Include: []string{"none.yaml"}, Auth: sources.Auth{Dir: dir}}
	f.repository.config.Signers.File = "/no/such/file" // nothing that is shown is signed by those who may change clusters
	f.status = statusFlags{mode: statusBranch, interval: time.Minute, config: sources.PublishConfig{Branch: "quorate/status-here"}}
	c, err := f.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	latest := branches.NewLatest(c.Branches)
	latest.Interval = 10 * time.Millisecond
	feed := api.NewFeed(func() follow.Details { return follow.Details{} })
	feed.SetStatuses(here{cmdtest.Ready("orders")})
	feed.SetBranches(latest.Look)
	go latest.Run(t.Context())
	pages := page.Handler(feed)
	show := func() string {
		to := httptest.NewRecorder()
		pages.ServeHTTP(to, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		return html.UnescapeString(to.Body.String())
	}
	await := func(what ...string) string {
		t.Helper()
		var text string
		for range 1200 {
			text = show()
			missing := false
			for _, want := range what {
				missing = missing || !strings.Contains(text, want)
			}
			if !missing {
				return text
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("the page does not show %q:\n%s", what, text)
		return ""
	}
	text := await("1 to 4 of 4", "/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-eu", "/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-us", "/objects/EtcdCluster/shop/carts?branch=quorate%2Fstatus-eu")
	if strings.Contains(text, "own-branch") || strings.Contains(text, "status-here") {
		t.Errorf("the own branch is shown beside what is reconciled:\n%s", text)
	}
	packs, lists := server.packs.Load(), server.lists.Load()
	for server.lists.Load() < lists+3 {
		_ = show()
		time.Sleep(10 * time.Millisecond)
	}
	if now := server.packs.Load(); now != packs {
		t.Errorf("%d branches were read again, and none has moved", now-packs)
	}
	branchestest.Write(r, "quorate/status-us", cmdtest.Cluster("orders", schema.PhaseStalled, "QuorumLost", "two of three members are gone"))
	await("1 to 4 of 4", "two of three members are gone")
	if now := server.packs.Load(); now != packs+1 {
		t.Errorf("%d branches were read again, and one has moved", now-packs)
	}
	write(t, filepath.Join(dir, "password"), "wrong")
	if text := await("are not up to date", "two of three members are gone"); strings.Contains(text, giteaPassword) {
		t.Error("a password is shown")
	}
}

func TestPageStatusBranchesIsChecked(t *testing.T) {
	for says, change := range map[string]func(*runFlags){
		"":                                   func(*runFlags) {},
		"is for the page: add --page-listen": func(f *runFlags) { f.listeners.Page.Listen = "" },
		"with which the name of the branch":  func(f *runFlags) { f.pageBranches = "ma" },
		"--page-status-branches: ":           func(f *runFlags) { f.pageBranches = "not a branch" },
	} {
		f := &runFlags{pageBranches: "quorate/status", listeners: daemon.Listeners{Page: daemon.Endpoint{Listen: ":0"}}}
		f.repository.config.URL = t.TempDir()
		change(f)
		reader, err := f.openBranches(nil)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
		if err == nil && (reader.Own != "" || reader.Most != maxBeside) {
			t.Errorf("%+v", reader)
		}
	}
	if reader, err := (&runFlags{}).openBranches(nil); reader != nil || err != nil {
		t.Errorf("without the flag: %v, %v", reader, err)
	}
}
