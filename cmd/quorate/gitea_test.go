package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/cmd/quorate/internal/publish"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// TestGitea has the daemon's parts work with a real Gitea, by way of its flags, with
// tokens that have the rights that docs/status.md and docs/pull-requests.md name and no others.
func TestGitea(t *testing.T) {
	g := startGitea(t)
	t.Run("132, 133: a private repository is followed, and what becomes of the token or the repository deletes nothing", g.follows)
	t.Run("a webhook makes the next poll start now", g.calls)
	t.Run("commits are marked", g.marks)
	t.Run("a pull request has one comment", g.comments)
	t.Run("which pull requests are planned", g.leavesOut)
	t.Run("137, 138, 142: the status branch is pushed", g.publishes)
}

// atGitea is quorate and a private repository of the user shop that it follows, as the
// user quorate; Dir is a clone of it.
type atGitea struct {
	*cmdtest.Repository
	g           *gitea
	path        string // of the repository, in Gitea's API
	credentials string // the directory with those of quorate
	args        []string
	kube        *fake.Clientset
	log         *slog.Logger
	said        *bytes.Buffer
	metrics     *prometheus.Registry
	p           *follow.Poller
	r           *reconciler.Reconciler
	list        []schema.Status // how everything is
}

func (f *atGitea) Statuses() ([]schema.Status, bool) { return f.list, true }

// newAtGitea makes the repository, in which the user quorate has a role, and hands a
// token to quorate.
func (g *gitea) newAtGitea(t *testing.T, name, role, token string, args ...string) *atGitea {
	t.Helper()
	g.must(t, "shop", http.MethodPost, "/user/repos", fields{"name": name, "private": true}, nil)
	said := &bytes.Buffer{}
	f := &atGitea{Repository: cmdtest.NewRepository(t), g: g, path: "/repos/shop/" + name, credentials: t.TempDir(), said: said}
	f.log = slog.New(slog.NewTextHandler(said, nil))
	g.must(t, "shop", http.MethodPut, f.path+"/collaborators/quorate", fields{"permission": role}, nil)
	f.Git("remote", "add", "origin", g.remote("shop", "shop/"+name))
	f.give("password", token)
	f.give("ca.crt", string(g.ca))
	f.kube = fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "3f2a"}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "forge", Namespace: ownNamespace()},
			Data:       map[string][]byte{"bearerToken": []byte(token), "ca.crt": g.ca},
		},
	)
	f.args = append([]string{
		"--repo", g.url + "/shop/" + name + ".git", "--path", "clusters", "--git-credentials-dir", f.credentials,
		"--guard-image", "quorate:test", "--interval", "1s",
	}, args...)
	if slices.Contains(args, "--commit-statuses") || slices.Contains(args, "--pull-requests") {
		f.args = append(f.args, "--forge", "gitea", "--forge-url", g.url, "--forge-secret", "forge")
	}
	f.start()
	return f
}

// config is what the flags of quorate run say.
func (f *atGitea) config() daemon.Config {
	f.Helper()
	flags, cmd := &runFlags{}, &cobra.Command{}
	flags.add(cmd)
	if err := cmd.ParseFlags(f.args); err != nil {
		f.Fatal(err)
	}
	c, err := flags.config(func() (kubernetes.Interface, error) { return f.kube, nil })
	if err != nil {
		f.Fatal(err)
	}
	c.Follow.Kube = f.kube
	return c
}

// start prepares what polls, and what plans.
func (f *atGitea) start() {
	f.Helper()
	c := f.config()
	f.metrics = prometheus.NewRegistry()
	f.p = follow.New(c.Follow, f.log, f.metrics)
	f.r = reconciler.New(fake.NewClientset(), etcd.New(), record.NewFakeRecorder(100), report.NewMetrics(f.metrics), f.log, c.Options)
	if err := f.r.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// pollOnce polls, and wants these clusters, metrics and lines about Git.
func (f *atGitea) pollOnce(clusters []string, failures, problems float64, errorLines int) {
	f.Helper()
	f.said.Reset()
	f.p.Once(f.Context(), f.r)
	if list := desiredtest.Summary(desired.Values(f.r.Desired())); !slices.Equal(list, clusters) {
		f.Errorf("clusters %q, want %q", list, clusters)
	}
	if n := f.metric("quorate_git_consecutive_failures"); n != failures {
		f.Errorf("%v failures, want %v", n, failures)
	}
	if n := f.metric("quorate_git_file_errors"); n != problems {
		f.Errorf("%v file errors, want %v", n, problems)
	}
	if n := strings.Count(f.said.String(), `msg="fetch failed"`); n != errorLines {
		f.Errorf("%d lines about Git, want %d:\n%s", n, errorLines, f.said)
	}
}

// metric is the value of a gauge without labels.
func (f *atGitea) metric(name string) float64 {
	f.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	f.Fatalf("no metric %s", name)
	return 0
}

// give writes one of quorate's credentials.
func (f *atGitea) give(key, text string) {
	f.Helper()
	write(f.T, filepath.Join(f.credentials, key), text)
}

// take removes one of them.
func (f *atGitea) take(key string) {
	f.Helper()
	if err := os.Remove(filepath.Join(f.credentials, key)); err != nil {
		f.Fatal(err)
	}
}

// push commits a file upon what is checked out, pushes that to a branch, and returns
// the commit when Gitea has taken note of it, which is a moment later.
func (f *atGitea) push(branch, path, text string) string {
	f.Helper()
	f.Commit(path, text)
	f.Git("push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	head := f.Head()
	cmdtest.Await(f.T, func() bool {
		_, repository := f.g.call(f.T, "shop", http.MethodGet, f.path, nil)
		_, noted := f.g.call(f.T, "shop", http.MethodGet, f.path+"/branches/"+branch, nil)
		return bytes.Contains(repository, []byte(`"empty":false`)) && bytes.Contains(noted, []byte(head))
	})
	return head
}

// remote is a repository with a user's name and password.
func (g *gitea) remote(user, path string) string {
	return strings.Replace(g.url, "https://", "https://"+user+":"+giteaPassword+"@", 1) + "/" + path + ".git"
}

// wantSaid wants a text in the log, and a secret never.
func (f *atGitea) wantSaid(secret string, texts ...string) {
	f.Helper()
	log := f.said.String()
	for _, text := range texts {
		if !strings.Contains(log, text) {
			f.Errorf("the log does not say %q:\n%s", text, log)
		}
	}
	if strings.Contains(log, secret) {
		f.Errorf("the log holds a secret:\n%s", log)
	}
}

func (g *gitea) follows(t *testing.T) {
	token := g.token(t, "quorate", "read:repository")
	f := g.newAtGitea(t, "follows", "read", token)
	f.push("main", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
	if f.said.Len() > 0 {
		t.Errorf("a branch that has not moved was said:\n%s", f.said)
	}
	f.push("main", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	clusters := []string{"shop/orders 3.6.16"}
	f.pollOnce(clusters, 0, 0, 0)

	wrong := strings.Repeat("0123456789", 4)
	for i, bad := range []struct{ token, says string }{
		{wrong, "401 Unauthorized; check that the credentials are valid"},
		{g.token(t, "quorate", "read:user"), "403 Forbidden; check that the credentials are valid and may read the repository"},
		{g.token(t, "mallory", "read:repository"), "404 Not Found; check the URL, and that the credentials may see the repository"},
	} {
		f.give("password", bad.token)
		f.pollOnce(clusters, float64(i+1), 0, 1)
		f.wantSaid(bad.token, bad.says)
	}
	f.give("password", "")
	f.pollOnce(clusters, 4, 0, 1)
	f.take("password")
	f.give("bearerToken", token)
	f.pollOnce(clusters, 0, 0, 0)

	g.must(t, "shop", http.MethodDelete, f.path, nil, nil)
	f.pollOnce(clusters, 1, 0, 1)
	f.wantSaid(token, "404 Not Found; check the URL")
}

func (g *gitea) calls(t *testing.T) {
	for _, kind := range []string{"json", "form"} {
		t.Run(kind, func(t *testing.T) { g.callsWith(t, kind) })
	}
}

// callsWith has Gitea call with a content type. No poll but the first comes without a
// call.
func (g *gitea) callsWith(t *testing.T, kind string) {
	f := g.newAtGitea(t, "calls-"+kind, "read", g.token(t, "quorate", "read:repository"), "--interval", "1h")
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "hook-secret\n")
	hooks := httptest.NewServer(sources.NewWebhook(secret, f.p.Wake))
	defer hooks.Close()
	f.push("main", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.p.Run(ctx, f.r); close(ended) }()
	defer func() { stop(); <-ended }()
	says := func(version string) func() bool {
		return func() bool { return f.r.Desired()["shop/orders"].Spec.Version == version }
	}
	cmdtest.Await(t, says("3.6.12"))
	g.must(t, "shop", http.MethodPost, f.path+"/hooks", fields{
		"type": "gitea", "active": true, "events": []string{"push"},
		"config": fields{"url": hooks.URL, "content_type": kind, "secret": "hook-secret"},
	}, nil)
	f.push("main", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	cmdtest.Await(t, says("3.6.16"))
}

// giteaStatus is one as Gitea shows it.
type giteaStatus struct {
	ID                           int64
	Status, Description, Context string
	TargetURL                    string `json:"target_url"`
	Creator                      struct{ Login string }
}

// wantMarks wants these statuses of a commit, the oldest first, and what Gitea makes
// of all of them.
func (f *atGitea) wantMarks(commit, whole string, want ...string) {
	f.Helper()
	var list []giteaStatus
	f.g.must(f.T, "shop", http.MethodGet, f.path+"/commits/"+commit+"/statuses", nil, &list)
	var marks []string
	slices.SortFunc(list, func(a, b giteaStatus) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range list {
		marks = append(marks, s.Status+": "+s.Description)
		if link := f.g.url + strings.TrimPrefix(f.path, "/repos") + "/src/branch/quorate/status"; s.Context != "quorate" || s.TargetURL != link || s.Creator.Login != "quorate" {
			f.Errorf("marked with %+v, want a link to %s", s, link)
		}
	}
	if !slices.Equal(marks, want) {
		f.Errorf("%s is marked %q, want %q", commit, marks, want)
	}
	var combined struct {
		State    string
		Statuses []struct{}
	}
	f.g.must(f.T, "shop", http.MethodGet, f.path+"/commits/"+commit+"/status", nil, &combined)
	if combined.State != whole || len(combined.Statuses) != 1 {
		f.Errorf("as a whole it is %+v, want %s", combined, whole)
	}
}

func (g *gitea) marks(t *testing.T) {
	f := g.newAtGitea(t, "marks", "write", g.token(t, "quorate", "write:repository"), "--commit-statuses", "--status", "branch")
	marks := publish.NewCommitStatuses(*f.config().CommitStatuses, f.p.State, f.log)
	first := f.push("main", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	mark := func(phase schema.Phase, done int) {
		f.list = []schema.Status{cmdtest.Changed(first, "orders", phase, done)}
		f.list[0].Observed = f.p.State().Commit
		marks.Once(t.Context(), f)
		marks.Once(t.Context(), f)
	}
	mark(schema.PhaseReconciling, 2)
	want := []string{"pending: orders: 2 of 3 members at 3.6.16"}
	f.wantMarks(first, "pending", want...)
	mark(schema.PhaseReady, 3)
	want = append(want, "success: orders: 3 of 3 members at 3.6.16")
	f.wantMarks(first, "success", want...)

	second := f.push("main", "clusters/ledger.yaml", desiredtest.BrokenFile)
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 1, 0)
	mark(schema.PhaseStalled, 3)
	f.wantMarks(first, "failure", append(want, "failure: orders: it is so")...)
	f.wantMarks(second, "failure", "failure: 1 problem in its files: "+f.p.State().Problems[0])
	if text := f.said.String(); strings.Contains(text, "publishing failed") {
		t.Errorf("said\n%s", text)
	}

	f.push("main", "README.md", "1")
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 1, 0)
	g.refuses(f, "read:repository")
}

// refuses wants that a token that may not write is reported.
func (g *gitea) refuses(f *atGitea, scope string) {
	f.Helper()
	token := g.token(f.T, "quorate", scope)
	secret, err := f.kube.CoreV1().Secrets(ownNamespace()).Get(f.Context(), "forge", metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	secret.Data["bearerToken"] = []byte(token)
	if _, err := f.kube.CoreV1().Secrets(ownNamespace()).Update(f.Context(), secret, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.said.Reset()
	publish.NewCommitStatuses(*f.config().CommitStatuses, f.p.State, f.log).Once(f.Context(), f)
	f.wantSaid(token, "publishing failed", "403", "give the token the right to do this")
}

// proposingAt is a repository at Gitea with pull requests. Its token has the rights
// that --pull-requests needs, and its user may do no more than read.
type proposingAt struct {
	*atGitea
	pulls *publish.Pulls
}

// Desired and Planner are those of the reconciler that acts.
func (f *proposingAt) Desired() map[string]*desired.Cluster { return f.r.Desired() }
func (f *proposingAt) Planner() preview.Planner             { return f.r.DryRun(etcd.New()) }

func (g *gitea) newProposingAt(t *testing.T, name string) *proposingAt {
	t.Helper()
	token := g.token(t, "quorate", "read:repository", "write:issue", "read:user")
	f := &proposingAt{atGitea: g.newAtGitea(t, name, "read", token, "--pull-requests", "--backup-url", "s3://backups/{{ .UID }}.db")}
	f.push("main", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
	f.restart()
	return f
}

// restart forgets what was planned and written.
func (f *proposingAt) restart() {
	f.Helper()
	c := f.config()
	c.Pulls.Options = daemon.PreviewOptions(c.Options)
	f.pulls = publish.NewPulls(*c.Pulls, f.p.State, f.log)
}

// branch pushes a branch that gives orders a version, upon main.
func (f *proposingAt) branch(remote, name, version string) {
	f.Helper()
	f.Git("checkout", "--quiet", "-B", name, "main")
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", version))
	f.Git("push", "--quiet", "--force", remote, name)
	f.Git("checkout", "--quiet", "main")
}

// open opens a pull request as a user, as soon as Gitea knows of the branch.
func (f *proposingAt) open(user, head, base, title string) int {
	f.Helper()
	status, answer := 0, []byte{}
	cmdtest.Await(f.T, func() bool {
		status, answer = f.g.call(f.T, user, http.MethodPost, f.path+"/pulls", fields{"head": head, "base": base, "title": title})
		return status != http.StatusNotFound
	})
	var made struct{ Number int }
	if err := json.Unmarshal(answer, &made); err != nil || status != http.StatusCreated {
		f.Fatalf("open a pull request: %d %s", status, answer)
	}
	return made.Number
}

func (f *proposingAt) edit(number int, with fields) {
	f.Helper()
	f.g.must(f.T, "shop", http.MethodPatch, fmt.Sprintf("%s/pulls/%d", f.path, number), with, nil)
}

func (f *proposingAt) round() {
	f.Helper()
	if err := f.pulls.Once(f.Context(), f); err != nil {
		f.Fatal(err)
	}
}

// giteaComment is one as Gitea shows it.
type giteaComment struct {
	ID      int64
	Body    string
	User    struct{ Login string }
	Updated string `json:"updated_at"`
}

// written are the comments on a pull request by a user.
func (f *proposingAt) written(number int, user string) []giteaComment {
	f.Helper()
	var all []giteaComment
	f.g.must(f.T, "shop", http.MethodGet, fmt.Sprintf("%s/issues/%d/comments", f.path, number), nil, &all)
	return slices.DeleteFunc(all, func(c giteaComment) bool { return c.User.Login != user })
}

// awaitComment polls until the one comment of quorate has a text: a forge may show
// a push a moment later.
func (f *proposingAt) awaitComment(number int, text string) giteaComment {
	f.Helper()
	var found []giteaComment
	cmdtest.Await(f.T, func() bool {
		f.round()
		found = f.written(number, "quorate")
		return len(found) > 0 && strings.Contains(found[0].Body, text)
	})
	if len(found) != 1 {
		f.Fatalf("%d comments on %d: %+v", len(found), number, found)
	}
	return found[0]
}

func (g *gitea) comments(t *testing.T) {
	f := g.newProposingAt(t, "comments")
	f.branch("origin", "upgrade", "3.6.16")
	number := f.open("shop", "upgrade", "main", "Upgrade orders")
	first := f.awaitComment(number, "3.6.12 → 3.6.16")
	quoted := fmt.Sprintf("%s/issues/%d/comments", f.path, number)
	g.must(t, "shop", http.MethodPost, quoted, fields{"body": first.Body}, nil)

	f.branch("origin", "upgrade", "3.7.3")
	second := f.awaitComment(number, "3.6.12 → 3.7.3")
	if second.ID != first.ID {
		t.Errorf("the comment %d took the place of %d", second.ID, first.ID)
	}
	if theirs := f.written(number, "shop"); len(theirs) != 1 || theirs[0].Body != first.Body {
		t.Errorf("another author's comment is now %+v", theirs)
	}

	f.restart()
	f.round()
	if third := f.written(number, "quorate"); !slices.Equal(third, []giteaComment{second}) {
		t.Errorf("a daemon that was restarted made %+v of %+v", third, second)
	}
	f.edit(number, fields{"state": "closed"})
	f.round()
	if open, err := f.config().Pulls.Host.OpenPulls(t.Context(), "main"); err != nil || len(open) > 0 {
		t.Errorf("a closed pull request is still open: %+v, %v", open, err)
	}
	if text := f.said.String(); strings.Contains(text, `msg="planning pull requests failed`) {
		t.Errorf("said\n%s", text)
	}
}

func (g *gitea) leavesOut(t *testing.T) {
	f := g.newProposingAt(t, "leaves-out")
	f.branch("origin", "draft", "3.6.16")
	draft := f.open("shop", "draft", "main", "WIP: upgrade orders")
	g.must(t, "shop", http.MethodPut, f.path+"/collaborators/mallory", fields{"permission": "read"}, nil)
	g.must(t, "mallory", http.MethodPost, f.path+"/forks", fields{}, nil)
	f.branch(g.remote("mallory", "mallory/leaves-out"), "foreign", "3.6.16")
	foreign := f.open("mallory", "mallory:foreign", "main", "Upgrade orders")
	f.Git("push", "--quiet", "origin", "main:stage")
	f.branch("origin", "other", "3.6.16")
	other := f.open("shop", "other", "stage", "Upgrade orders")
	headless := f.openHeadless()

	f.round()
	for _, number := range []int{draft, foreign, other, headless} {
		if found := f.written(number, "quorate"); len(found) > 0 {
			t.Errorf("%d has the comment %+v", number, found)
		}
	}
	f.edit(draft, fields{"title": "Upgrade orders"})
	f.awaitComment(draft, "3.6.12 → 3.6.16")
	f.args = append(f.args, "--pull-requests-from-forks")
	f.restart()
	f.awaitComment(foreign, "3.6.12 → 3.6.16")
}

// openHeadless opens a pull request whose head Gitea has lost, as it may when a
// repository is restored: it lists it with an empty commit.
func (f *proposingAt) openHeadless() int {
	f.Helper()
	f.branch("origin", "headless", "3.6.16")
	number := f.open("shop", "headless", "main", "Upgrade orders")
	bare := filepath.Join(f.g.dir, "data", "gitea-repositories", strings.TrimPrefix(f.path, "/repos/")+".git")
	output(f.T, exec.Command("git", "--git-dir", bare, "update-ref", "-d", fmt.Sprintf("refs/pull/%d/head", number)))
	return number
}

// newWriter prepares what writes the status branch, as a daemon does that starts.
func (f *atGitea) newWriter() *publish.Branch {
	f.Helper()
	c := f.config().Status
	c.Kube = f.kube
	return publish.NewBranch(*c, f.p.State, f.log, prometheus.NewRegistry())
}

// wantBranch wants a history of the status branch, the newest commit first.
func (f *atGitea) wantBranch(want ...string) {
	f.Helper()
	var list []struct{ Commit struct{ Message string } }
	f.g.must(f.T, "shop", http.MethodGet, f.path+"/commits?sha="+url.QueryEscape("quorate/status"), nil, &list)
	var subjects []string
	for _, c := range list {
		subject, _, _ := strings.Cut(c.Commit.Message, "\n")
		subjects = append(subjects, subject)
	}
	if !slices.Equal(subjects, want) {
		f.Errorf("the status branch is %q, want %q", subjects, want)
	}
}

func (g *gitea) publishes(t *testing.T) {
	token := g.token(t, "quorate", "write:repository")
	f := g.newAtGitea(t, "publishes", "write", token, "--commit-statuses", "--status", "branch")
	f.push("main", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	first, second := f.newWriter(), f.newWriter()
	write := func(w *publish.Branch, list ...schema.Status) {
		f.list = list
		w.Once(t.Context(), f, false)
	}
	write(first, cmdtest.Ready("orders"))
	write(first, cmdtest.Ready("orders"))
	f.wantBranch("status: shop/orders ready (Idle)")
	write(second, cmdtest.Cluster("orders", schema.PhaseStalled, "Blocked", "no quorum"))
	// The first does not know of it, and pushes upon what it wrote itself.
	write(first, cmdtest.Ready("orders"), cmdtest.Ready("carts"))
	history := []string{"status: shop/carts ready (Idle)", "status: shop/orders stalled (Blocked)", "status: shop/orders ready (Idle)"}
	f.wantBranch(history...)
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	if f.said.Len() > 0 {
		t.Errorf("quorate follows what it writes:\n%s", f.said)
	}
	g.shows(f)
	g.guards(f, first, token, history)
}

// shows wants that the link of a status has a target.
func (g *gitea) shows(f *atGitea) {
	f.Helper()
	g.must(f.T, "shop", http.MethodPatch, f.path, fields{"private": false}, nil)
	link := f.config().CommitStatuses.Link
	res, err := g.client.Get(link)
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	if page, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(page), "2 clusters") {
		f.Errorf("%s: %s, %v\n%s", link, res.Status, err, page)
	}
}

// guards wants that the branch is left alone where Gitea does not let it be written,
// and where another author wrote to it.
func (g *gitea) guards(f *atGitea, w *publish.Branch, token string, history []string) {
	f.Helper()
	f.list = f.list[:1]
	g.must(f.T, "shop", http.MethodPost, f.path+"/branch_protections", fields{"rule_name": "quorate/**", "enable_push": false}, nil)
	w.Once(f.Context(), f, false)
	f.wantSaid(token, "publishing failed", "the server takes no push to this branch", "(pre-receive hook declined: Not allowed to push to protected branch quorate/status)")
	f.wantBranch(history...)
	g.must(f.T, "shop", http.MethodDelete, f.path+"/branch_protections/quorate/**", nil, nil)

	f.said.Reset()
	weak := g.token(f.T, "quorate", "read:repository")
	f.give("password", weak)
	w.Once(f.Context(), f, false)
	f.wantSaid(weak, "publishing failed", "403 Forbidden; check that the credentials are valid and may write to the repository")
	f.give("password", token)
	w.Once(f.Context(), f, false)
	history = append([]string{"status: 1 object gone"}, history...)
	f.wantBranch(history...)

	f.said.Reset()
	f.Git("fetch", "--quiet", "origin", "quorate/status")
	f.Git("checkout", "--quiet", "FETCH_HEAD")
	f.push("quorate/status", "notes.md", "mine")
	f.list = append(f.list, cmdtest.Ready("users"))
	w.Once(f.Context(), f, false)
	f.wantSaid(token, "publishing failed", "was not made by quorate")
	f.wantBranch(append([]string{"Change notes.md"}, history...)...)
}
