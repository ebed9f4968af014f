package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/cmd/quorate/internal/publish"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// planted is in no text but the credentials.
const planted = "pl4nted/s3cret+w=rd"

// parrot answers each request with what it was sent, in every place where an
// answer may come to be shown.
type parrot struct {
	*httptest.Server
	turn atomic.Int64
}

// turns are the ways to answer.
func (p *parrot) turns(login string) []func(http.ResponseWriter, *http.Request) {
	packet := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Basic realm="+login)
			http.Error(w, login+" "+planted, code)
		}
	}
	git := func(body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			fmt.Fprint(w, body)
		}
	}
	return []func(http.ResponseWriter, *http.Request){
		status(http.StatusUnauthorized), status(http.StatusForbidden), status(http.StatusNotFound),
		status(http.StatusTooManyRequests), status(http.StatusInternalServerError),
		git(packet("ERR " + planted + " " + login)),
		git(packet("version 2\n") + packet("ls-refs\n") + packet("object-format="+planted+"\n") + "0000"),
		git(planted), git(packet(planted + " refs/heads/main\x00" + planted)),
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, planted) },
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "ftp://"+url.QueryEscape(planted)+"@h/?t="+url.QueryEscape(planted))
			w.WriteHeader(http.StatusFound)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://"+planted)
			w.WriteHeader(http.StatusFound)
		},
	}
}

// forms are the ways in which the secret may be written.
func forms() []string {
	quoted, _ := json.Marshal(planted)
	return []string{
		planted, url.QueryEscape(planted), url.PathEscape(planted), strings.Trim(string(quoted), `"`),
		base64.StdEncoding.EncodeToString([]byte(planted)),
		base64.StdEncoding.EncodeToString([]byte("ada:" + planted)),
		base64.StdEncoding.EncodeToString([]byte("x-access-token:" + planted)),
		"pl4nted",
	}
}

func wantNoPlanted(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range forms() {
		if strings.Contains(text, form) {
			t.Errorf("%s shows the secret as %q:\n%s", where, form, text)
		}
	}
}

// Whatever a server does with the credentials that it is sent, they are in no
// log, error, metric, or object of the cluster.
func TestNothingThatIsPrintedHoldsASecret(t *testing.T) {
	for kind, files := range map[string]map[string]string{
		"password":   {"username": "ada", "password": planted},
		"token":      {"password": planted},
		"bearer":     {"bearerToken": planted},
		"app":        {"githubAppID": "1", "githubAppInstallationID": "2", "githubAppPrivateKey": planted},
		"SSH key":    {"identity": planted, "known_hosts": "h " + planted, "password": planted},
		"jump key":   {"identity": planted, "known_hosts": "h " + planted, "jumpIdentity": planted},
		"cert":       {"tls.crt": planted, "tls.key": planted},
		"two kinds":  {"password": planted, "bearerToken": planted},
		"known host": {"identity": planted, "password": planted},
	} {
		t.Run(kind, func(t *testing.T) {
			p := &parrot{}
			login := cmp.Or(files["username"], "x-access-token") + ":" + planted
			turns := p.turns(base64.StdEncoding.EncodeToString([]byte(login)))
			p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				turns[int(p.turn.Load())%len(turns)](w, r)
			}))
			t.Cleanup(p.Close)
			dir := t.TempDir()
			ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
			for name, text := range files {
				writeSecret(t, dir, name, text)
			}
			caFile := writeSecret(t, t.TempDir(), "ca", ca)
			for turn := range turns {
				p.turn.Store(int64(turn))
				for _, repo := range []string{p.URL + "/etcd.git", "ssh://git@" + p.Listener.Addr().String() + "/etcd.git"} {
					wantQuiet(t, repo, dir, caFile)
				}
			}
		})
	}
}

func writeSecret(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantQuiet follows a repository and plans from it, and checks all its output.
func wantQuiet(t *testing.T, repo, dir, caFile string) {
	t.Helper()
	var out, errs, said bytes.Buffer
	if status := execute(t.Context(), []string{"plan", "--repo=" + repo, "--git-credentials-dir=" + dir, "--git-ca-file=" + caFile}, &out, &errs); status != 1 || errs.Len() == 0 {
		t.Errorf("plan ended with %d: %s", status, errs.String())
	}
	wantNoPlanted(t, "plan", out.String()+errs.String())

	flags := &runFlags{lease: daemon.Lease{Namespace: "quorate-system"}}
	flags.repository.config.URL, flags.repository.config.Auth.Dir, flags.repository.config.CAFile = repo, dir, caFile
	flags.status = statusFlags{mode: statusBranch, interval: time.Minute, config: sources.PublishConfig{Branch: "quorate/status"}}
	c, err := flags.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	registry, kube := prometheus.NewRegistry(), fake.NewClientset()
	log := slog.New(slog.NewJSONHandler(&said, nil))
	c.Follow.Kube = kube
	follow.New(c.Follow, log, registry).Once(t.Context(), reconciler.New(kube, etcd.New(), record.NewFakeRecorder(10), report.NewMetrics(registry), log, reconciler.Options{}))
	if !strings.Contains(said.String(), `"msg":"fetch failed"`) {
		t.Errorf("the poller said %s", said.String())
	}
	c.Status.Kube = fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	publish.NewBranch(*c.Status, inForce, log, registry).Once(t.Context(), oneStatus{}, false)
	if !strings.Contains(said.String(), `"msg":"publishing failed, will retry","what":"status"`) {
		t.Errorf("the status writer said %s", said.String())
	}
	wantNoPlanted(t, "the log", said.String())
	metrics := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(metrics.Body.String(), "quorate_git_consecutive_failures 1") {
		t.Errorf("metrics:\n%s", metrics.Body)
	}
	wantNoPlanted(t, "a metric", metrics.Body.String())
	list, err := kube.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantNoPlanted(t, "the cluster", fmt.Sprint(list.Items))
}

// inForce is what a poll knows that has accepted a commit.
func inForce() follow.State { return follow.State{Commit: "6dcb09b5b57875f334f61aebed695e2e4193db5e"} }

// oneStatus is how one cluster is.
type oneStatus struct{}

func (oneStatus) Statuses() ([]schema.Status, bool) {
	return []schema.Status{cmdtest.Ready("orders")}, true
}

// The same holds of the forge's token.
func TestNothingThatIsPrintedHoldsTheForgesToken(t *testing.T) {
	p := &parrot{}
	turns := append(p.turns(planted), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"message": "your token is %s"}`, planted)
	})
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { turns[int(p.turn.Load())](w, r) }))
	t.Cleanup(p.Close)
	dir := t.TempDir()
	flags := &runFlags{}
	flags.repository.config.URL = p.URL + "/shop/etcd.git"
	flags.repository.config.CAFile = writeSecret(t, dir, "ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})))
	flags.status.mode = statusNone
	flags.forge = forgeFlags{kind: "gitea", url: p.URL, tokenFile: writeSecret(t, dir, "token", planted), pulls: true}
	for turn := range turns {
		p.turn.Store(int64(turn))
		var said bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&said, nil))
		c, err := flags.config(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := publish.NewPulls(*c.Pulls, inForce, log).Once(t.Context(), nil); err == nil || !strings.Contains(said.String(), "list the open pull requests") {
			t.Errorf("turn %d: %v, said %s", turn, err, said.String())
		}
		wantNoPlanted(t, "the log", said.String())
	}
}
