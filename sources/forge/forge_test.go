package forge

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
)

const (
	head  = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	token = "t0ken/of+somebody"
)

// server answers as a forge's documentation says, and keeps what it was asked.
type server struct {
	*httptest.Server
	t  *testing.T
	mu sync.Mutex
	// asked are the requests, as METHOD PATH?QUERY BODY.
	asked []string
	// answers are given in order for each METHOD PATH; the last one again and again.
	answers map[string][]answer
}

type answer struct {
	status int
	header http.Header
	body   string
}

func serve(t *testing.T, answers map[string][]answer) *server {
	t.Helper()
	s := &server{t: t, answers: answers}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := r.Header.Get("Authorization"); got != "Bearer "+token {
		s.t.Errorf("authorization %q", got)
	}
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	key := r.Method + " " + r.URL.EscapedPath()
	list := s.answers[key]
	if len(list) == 0 {
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
		return
	}
	a := list[0]
	if len(list) > 1 {
		s.answers[key] = list[1:]
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if etag := a.header.Get("Etag"); etag != "" && r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(a.status)
	fmt.Fprint(w, a.body)
}

// requests are those since the last call.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *server) wantRequests(want ...string) {
	s.t.Helper()
	if got := s.requests(); !slices.Equal(got, want) {
		s.t.Errorf("it was asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// client is one of the repository shop/etcd there.
func (s *server) client(kind Kind) *Client {
	s.t.Helper()
	dir := s.t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string]string{"ca.crt": string(ca), "bearerToken": token + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	c, err := New(Config{Kind: kind, URL: s.URL, Repository: s.URL + "/shop/etcd.git", Auth: sources.Auth{Dir: dir}, Timeout: 10 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func ok(body string) []answer      { return []answer{{status: http.StatusOK, body: body}} }
func created(body string) []answer { return []answer{{status: http.StatusCreated, body: body}} }

// One status has this form at each of them, and is sent once.
func TestStatusIsSentWhereItChanged(t *testing.T) {
	for kind, c := range map[Kind]struct{ path, sent, failed string }{
		GitHub: {
			"/api/v3/repos/shop/etcd/statuses/" + head,
			`{"state":"pending","target_url":"https://x/y","description":"1 of 3 members at 3.6.16","context":"quorate"}`,
			`{"state":"failure","description":"held","context":"quorate"}`,
		},
		Gitea: {
			"/api/v1/repos/shop/etcd/statuses/" + head,
			`{"state":"pending","target_url":"https://x/y","description":"1 of 3 members at 3.6.16","context":"quorate"}`,
			`{"state":"failure","description":"held","context":"quorate"}`,
		},
		GitLab: {
			"/api/v4/projects/shop%2Fetcd/statuses/" + head,
			`{"state":"pending","name":"quorate","target_url":"https://x/y","description":"1 of 3 members at 3.6.16"}`,
			`{"state":"failed","name":"quorate","description":"held"}`,
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := serve(t, map[string][]answer{"POST " + c.path: created(`{"id":1}`)})
			client := s.client(kind)
			pending := Status{Commit: head, Context: "quorate", State: Pending, Description: "1 of 3 members\n at 3.6.16", Link: "https://x/y"}
			failed := Status{Commit: head, Context: "quorate", State: Failure, Description: "held"}
			for _, status := range []Status{pending, pending, failed, failed} {
				if err := client.Status(t.Context(), status); err != nil {
					t.Fatal(err)
				}
			}
			s.wantRequests("POST "+c.path+" "+c.sent, "POST "+c.path+" "+c.failed)
		})
	}
}

func TestDescriptionIsCutAtTheLimitOfGitHub(t *testing.T) {
	s := serve(t, map[string][]answer{"POST /api/v3/repos/shop/etcd/statuses/" + head: created(`{}`)})
	if err := s.client(GitHub).Status(t.Context(), Status{Commit: head, State: Pending, Description: strings.Repeat("ä", 200)}); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[0]; !strings.Contains(got, strings.Repeat("ä", 139)+"…\"") {
		t.Errorf("sent %s", got)
	}
}

// GitLab refuses a state that the commit has already.
func TestStatusThatGitLabHasIsNoError(t *testing.T) {
	path := "POST /api/v4/projects/shop%2Fetcd/statuses/" + head
	s := serve(t, map[string][]answer{path: {
		{status: http.StatusBadRequest, body: `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`},
		{status: http.StatusBadRequest, body: `{"message":"state does not have a valid value"}`},
	}})
	c := s.client(GitLab)
	if err := c.Status(t.Context(), Status{Commit: head, State: Pending}); err != nil {
		t.Error(err)
	}
	if err := c.Status(t.Context(), Status{Commit: head, State: Success}); err == nil || !strings.Contains(err.Error(), "state does not have a valid value") {
		t.Errorf("another refusal: %v", err)
	}
}

const hubPulls = `[
 {"number":7,"state":"open","draft":false,"title":"Upgrade","head":{"label":"up","ref":"up","sha":"` + head + `","repo":{"id":1}},"base":{"ref":"main","sha":"a","repo":{"id":1}}},
 {"number":8,"state":"open","draft":true,"head":{"ref":"main","sha":"b","repo":{"id":2}},"base":{"ref":"main","repo":{"id":1}}},
 {"number":9,"state":"open","head":{"ref":"main","sha":"c","repo":null},"base":{"ref":"main","repo":{"id":1}}},
 {"number":3,"state":"open","head":{"ref":"x","sha":"d","repo":{"id":1}},"base":{"ref":"release","repo":{"id":1}}}]`

// giteaLost is one whose head Gitea has lost.
const giteaLost = `{"number":10,"state":"open","draft":false,"head":{"ref":"lost","sha":"","repo":{"id":1}},"base":{"ref":"main","sha":"a","repo":{"id":1}}},`

// giteaAGit is what Gitea and Forgejo list of pushes to refs/for/main: by somebody who may
// only read, the second of a topic that is named like a branch.
const giteaAGit = `{"number":11,"state":"open","head":{"label":"","ref":"refs/pull/11/head","sha":"e","repo_id":1,"repo":{"id":1}},"base":{"label":"main","ref":"main","repo":{"id":1}}},
 {"number":12,"state":"open","head":{"label":"","ref":"mallory/topic","sha":"f","repo_id":1,"repo":{"id":1}},"base":{"label":"main","ref":"main","repo":{"id":1}}},
 {"number":13,"state":"open","flow":1,"head":{"label":"topic","ref":"topic","sha":"g","repo_id":1,"repo":{"id":1}},"base":{"label":"main","ref":"main","repo":{"id":1}}},
 {"number":14,"state":"open","flow":0,"head":{"label":"gone","ref":"refs/pull/14/head","sha":"h","repo_id":1,"repo":{"id":1}},"base":{"label":"main","ref":"main","repo":{"id":1}}}`

// Whoever may read a repository at Gitea may push to refs/for/main, which makes a pull
// request with its head in that repository.
func TestPushesToRefsForAreForks(t *testing.T) {
	forks := func(h hub) (forks []int) {
		pulls, err := h.readPulls([]byte("[" + giteaAGit + "]"))
		if err != nil || len(pulls) != 4 {
			t.Fatalf("%+v, %v", pulls, err)
		}
		for _, p := range pulls {
			if p.Fork {
				forks = append(forks, p.Number)
			}
		}
		return forks
	}
	if got := forks(hub{gitea: true}); !slices.Equal(got, []int{11, 12, 13}) {
		t.Errorf("at Gitea %v are forks", got)
	}
	if got := forks(hub{}); got != nil { // it has no such pushes
		t.Errorf("at GitHub %v are forks", got)
	}
}

const labPulls = `[
 {"id":1,"iid":7,"state":"opened","target_branch":"main","source_branch":"up","source_project_id":3,"target_project_id":3,"draft":false,"sha":"` + head + `"},
 {"id":2,"iid":8,"state":"opened","target_branch":"main","source_branch":"main","source_project_id":2,"target_project_id":3,"draft":true,"sha":"b"},
 {"id":3,"iid":9,"state":"opened","target_branch":"main","source_branch":"main","source_project_id":null,"target_project_id":3,"sha":"c"},
 {"id":5,"iid":10,"state":"opened","target_branch":"main","source_branch":"main","source_project_id":3,"target_project_id":3,"sha":null}]`

func TestOpenPullsAreListedPageByPageAndNotTwice(t *testing.T) {
	hubPath, giteaPath, labPath := "/api/v3/repos/shop/etcd/pulls", "/api/v1/repos/shop/etcd/pulls", "/api/v4/projects/shop%2Fetcd/merge_requests"
	for kind, c := range map[Kind]struct{ path, first, second, list, ref string }{
		GitHub: {hubPath, "?base=main&direction=desc&page=1&per_page=100&sort=updated&state=open", "?base=main&direction=desc&page=2&per_page=100&sort=updated&state=open", hubPulls, "refs/pull/%d/head"},
		Gitea:  {giteaPath, "?base_branch=main&limit=50&page=1&sort=recentupdate&state=open", "?base_branch=main&limit=50&page=2&sort=recentupdate&state=open", "[" + giteaLost + hubPulls[1:], "refs/pull/%d/head"},
		GitLab: {labPath, "?order_by=updated_at&page=1&per_page=100&sort=desc&state=opened&target_branch=main", "?order_by=updated_at&page=2&per_page=100&sort=desc&state=opened&target_branch=main", labPulls, "refs/merge-requests/%d/head"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			first := answer{status: http.StatusOK, body: c.list, header: http.Header{"Etag": {`W/"1"`}, "Link": {`<https://elsewhere.example.com/?page=2>; rel="next", <https://elsewhere.example.com/?page=2>; rel="last"`}}}
			second := answer{status: http.StatusOK, body: `[]`}
			s := serve(t, map[string][]answer{"GET " + c.path: {first, second, first, second}})
			client := s.client(kind)
			ref := func(n int) string { return fmt.Sprintf(c.ref, n) }
			want := []Pull{
				{Number: 7, Head: head, Reference: ref(7), Base: "main"},
				{Number: 8, Head: "b", Reference: ref(8), Base: "main", Draft: true, Fork: true},
				{Number: 9, Head: "c", Reference: ref(9), Base: "main", Fork: true},
			}
			for range 2 { // the second time from what is kept
				got, err := client.OpenPulls(t.Context(), "main")
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%+v, %v", got, err)
				}
				s.wantRequests("GET "+c.path+c.first, "GET "+c.path+c.second)
			}
		})
	}
}

// marked is a comment of ours.
const marked = "<!-- quorate -->\nthe plan"

func TestOneCommentIsKeptUpToDate(t *testing.T) {
	for kind, c := range map[Kind]struct{ list, one, method, user, theirs, ours string }{
		GitHub: {"/api/v3/repos/shop/etcd/issues/7/comments", "/api/v3/repos/shop/etcd/issues/comments/2", "PATCH", "/api/v3/user", `{"id":1,"body":%s,"user":{"id":11,"login":"eve"}}`, `{"id":2,"body":%s,"user":{"id":12,"login":"bot"}}`},
		Gitea:  {"/api/v1/repos/shop/etcd/issues/7/comments", "/api/v1/repos/shop/etcd/issues/comments/2", "PATCH", "/api/v1/user", `{"id":1,"body":%s,"user":{"id":11,"login":"eve"}}`, `{"id":2,"body":%s,"user":{"id":12,"login":"bot"}}`},
		GitLab: {"/api/v4/projects/shop%2Fetcd/merge_requests/7/notes", "/api/v4/projects/shop%2Fetcd/merge_requests/7/notes/2", "PUT", "/api/v4/user", `{"id":1,"body":%s,"author":{"id":11,"username":"eve"},"system":false}`, `{"id":2,"body":%s,"author":{"id":12,"username":"bot"},"system":false}`},
	} {
		t.Run(string(kind), func(t *testing.T) {
			body := func(text string) string {
				quoted, _ := json.Marshal(text)
				return string(quoted)
			}
			list := func(comments ...string) answer {
				return answer{status: http.StatusOK, body: "[" + strings.Join(comments, ",") + "]"}
			}
			theirs := fmt.Sprintf(c.theirs, body(marked))
			s := serve(t, map[string][]answer{
				"GET " + c.user:        ok(`{"id":12}`),
				"GET " + c.list:        {list(theirs), list(theirs), list(theirs, fmt.Sprintf(c.ours, body("<!-- quorate -->\r\nthe plan\r\n")))},
				"POST " + c.list:       created(`{"id":2}`),
				c.method + " " + c.one: ok(`{"id":2}`),
			})
			client := s.client(kind)
			asked := func(err error) []string {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				var short []string
				for _, r := range s.requests() {
					method, rest, _ := strings.Cut(r, " ")
					path, _, _ := strings.Cut(rest, "?")
					short = append(short, method+" "+path)
				}
				return short
			}
			comment := func(client *Client, text string) []string {
				t.Helper()
				return asked(client.Comment(t.Context(), 7, "<!-- quorate -->", text))
			}
			amend := func(client *Client, text string) []string {
				t.Helper()
				return asked(client.Amend(t.Context(), 7, "<!-- quorate -->", text))
			}
			wrote := func(got []string, want ...string) {
				t.Helper()
				if !slices.Equal(got, want) {
					t.Errorf("asked %q, want %q", got, want)
				}
			}
			text := func(s string) string { return s + ` {"body":` + body(marked) + `}` }
			wrote(amend(client, marked), "GET "+c.user, "GET "+c.list) // there is none yet
			wrote(comment(client, marked), "GET "+c.user, "GET "+c.list, text("POST "+c.list))
			wrote(comment(client, marked))
			wrote(comment(client, marked+" B"), c.method+" "+c.one+` {"body":`+body(marked+" B")+`}`)
			// A process that has just started finds it, and leaves it where it is the same.
			wrote(comment(s.client(kind), marked), "GET "+c.user, "GET "+c.list)
			wrote(amend(s.client(kind), marked+" B"), "GET "+c.user, "GET "+c.list, c.method+" "+c.one+` {"body":`+body(marked+" B")+`}`)
			// It was deleted: it is created again.
			s.mu.Lock()
			s.answers[c.method+" "+c.one] = nil
			s.answers["GET "+c.list] = []answer{list(theirs)}
			s.mu.Unlock()
			wrote(comment(client, marked), text(c.method+" "+c.one), "GET "+c.user, "GET "+c.list, text("POST "+c.list))
		})
	}
}

// Every refusal tells what to do, and keeps its kind and how long to wait.
func TestEveryRefusalIsUnderstood(t *testing.T) {
	reset := http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1377013266"}, "Date": {"Tue, 20 Aug 2013 15:40:06 GMT"}}
	for name, c := range map[string]struct {
		answer answer
		kind   error
		after  time.Duration
		says   string
	}{
		"401":              {answer{status: 401, body: `{"message":"Bad credentials ` + token + `"}`}, sources.ErrAuthentication, 0, "check that the token is valid"},
		"403":              {answer{status: 403, body: `{"message":"Resource not accessible"}`}, sources.ErrAuthentication, 0, "give the token the right"},
		"403 rate limit":   {answer{status: 403, header: reset, body: `{}`}, sources.ErrUnreachable, 60 * time.Second, "retries after 1m0s"},
		"403 with a pause": {answer{status: 403, header: http.Header{"Retry-After": {"7"}}}, sources.ErrUnreachable, 7 * time.Second, "retries after 7s"},
		"404":              {answer{status: 404}, sources.ErrRepositoryNotFound, 0, "that the token may see it"},
		"422":              {answer{status: 422, body: `{"message":"No commit found for SHA: x ` + token + `"}`}, nil, 0, "422 Unprocessable Entity (No commit found for SHA: x ***)"},
		"422 in parts":     {answer{status: 422, body: `{"message":{"base":["is ` + token + `"]}}`}, nil, 0, `({"base":["is ***"]})`},
		"429":              {answer{status: 429}, sources.ErrUnreachable, time.Minute, "too many requests"},
		"429 with a pause": {answer{status: 429, header: http.Header{"Retry-After": {"30"}}}, sources.ErrUnreachable, 30 * time.Second, "too many requests"},
		"500":              {answer{status: 500, body: token}, sources.ErrUnreachable, 0, "500 Internal Server Error"},
		"503":              {answer{status: 503, header: http.Header{"Retry-After": {"9"}}}, sources.ErrUnreachable, 9 * time.Second, "503"},
		"garbage":          {answer{status: 200, body: `<html>` + token}, nil, 0, "the answer is not the API's"},
		"half of it":       {answer{status: 200, body: `[{"number":7}]`}, nil, 0, "the answer is not the API's"},
		"elsewhere":        {answer{status: 302, header: http.Header{"Location": {"https://elsewhere.example.com/?t=" + token}}}, sources.ErrUnreachable, 0, "does not follow"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]answer{"GET /api/v3/repos/shop/etcd/pulls": {c.answer}})
			_, err := s.client(GitHub).OpenPulls(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "list the open pull requests") {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if c.kind != nil && !errors.Is(err, c.kind) || sources.RetryAfter(err) != c.after {
				t.Errorf("%v: kind %t, after %s", err, errors.Is(err, c.kind), sources.RetryAfter(err))
			}
			if strings.Contains(err.Error(), "t0ken") {
				t.Errorf("it shows the token: %v", err)
			}
		})
	}
}

func TestServerThatHangsIsGivenUp(t *testing.T) {
	s := serve(t, nil)
	gone := make(chan struct{})
	s.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gone })
	defer close(gone)
	c := s.client(GitHub)
	c.api, _ = sources.NewAPI(s.URL, sources.Auth{BearerTokenFile: s.file("t", token)}, s.file("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))), 50*time.Millisecond)
	if err := c.Status(t.Context(), Status{Commit: head}); !errors.Is(err, sources.ErrUnreachable) || !strings.Contains(err.Error(), "no complete answer in time") {
		t.Errorf("got %v", err)
	}
}

func (s *server) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// A token is never sent where everybody could read it, nor from nowhere.
func TestTokenStaysSecret(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer plain.Close()
	file := (&server{t: t}).file("t", token)
	for address, c := range map[string]struct {
		auth sources.Auth
		says string
	}{
		plain.URL:             {sources.Auth{BearerTokenFile: file}, "use https"},
		"https://127.0.0.1:1": {sources.Auth{}, "there is no token"},
		"https://127.0.0.1:2": {sources.Auth{PasswordFile: file + ".gone"}, "cannot be read"},
	} {
		c2, err := New(Config{Kind: Gitea, URL: address, Repository: address + "/shop/etcd", Auth: c.auth})
		if err != nil {
			t.Fatal(err)
		}
		if err := c2.Status(t.Context(), Status{Commit: head}); !errors.Is(err, sources.ErrAuthentication) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", address, err, c.says)
		}
	}
}

func TestWhereTheAPIIs(t *testing.T) {
	for _, c := range []struct {
		kind            Kind
		url, repository string
		path, want      string
	}{
		{"", "", "https://github.com/shop/etcd.git", "/repos/shop/etcd", ""},
		{"", "", "git@github.com:shop/etcd.git", "/repos/shop/etcd", ""},
		{"", "", "https://gitlab.com/group/sub/etcd", "/projects/group%2Fsub%2Fetcd", ""},
		{Gitea, "https://git.example.com/code", "https://git.example.com/code/shop/etcd.git", "/repos/shop/etcd", ""},
		{Gitea, "https://git.example.com", "ssh://git@git.example.com:2222/shop/etcd.git", "/repos/shop/etcd", ""},
		{"", "", "https://git.example.com/shop/etcd", "", "say with --forge and --forge-url"},
		{GitLab, "", "https://git.example.com/shop/etcd", "", "--forge and --forge-url go together"},
		{"", "https://git.example.com", "https://git.example.com/shop/etcd", "", "--forge and --forge-url go together"},
		{Gitea, "https://git.example.com", "https://git.example.com/etcd", "", "names no owner and repository"},
		{GitHub, "https://git.example.com", "https://git.example.com/a/b/c", "", "names no owner and repository"},
		{Gitea, "https://git.example.com", "/srv/etcd", "", "names no owner and repository"},
		{"svn", "https://git.example.com", "https://git.example.com/a/b", "", `--forge is "svn"`},
		{Gitea, "https://t0ken@git.example.com", "https://git.example.com/a/b", "", "carries user information"},
		{Gitea, "git.example.com", "https://git.example.com/a/b", "", "it cannot be parsed"},
	} {
		client, err := New(Config{Kind: c.kind, URL: c.url, Repository: c.repository})
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "t0ken") {
				t.Errorf("%s %s: got %v, want %q", c.url, c.repository, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", c.repository, err)
		default:
			if got := client.forge.pulls("main", 1); !strings.HasPrefix(got, c.path+"/") {
				t.Errorf("%s: %s", c.repository, got)
			}
		}
	}
}

// A comment by an app is known by the app: its token has no owner.
func TestCommentOfAGitHubAppIsKnownByTheApp(t *testing.T) {
	comments, err := hub{}.readComments([]byte(`[{"id":5,"body":"x","user":{"id":9,"type":"Bot"},"performed_via_github_app":{"id":12345,"client_id":"Iv1.8a61f9b3a7aba766"}},{"id":6,"body":"y","user":{"id":9},"performed_via_github_app":null}]`))
	if err != nil || !slices.Equal(comments[0].apps, []string{"12345", "Iv1.8a61f9b3a7aba766"}) || comments[1].apps != nil {
		t.Errorf("%+v, %v", comments, err)
	}
}

func TestWhereABranchIsShown(t *testing.T) {
	for _, c := range []struct {
		kind                  Kind
		url, repository, want string
	}{
		{"", "", "git@github.com:shop/etcd.git", "https://github.com/shop/etcd/tree/quorate/status%231"},
		{"", "", "https://gitlab.com/group/sub/etcd", "https://gitlab.com/group/sub/etcd/-/tree/quorate/status%231"},
		{Gitea, "https://git.example.com/code", "https://git.example.com/code/shop/etcd.git", "https://git.example.com/code/shop/etcd/src/branch/quorate/status%231"},
	} {
		client, err := New(Config{Kind: c.kind, URL: c.url, Repository: c.repository})
		if err != nil {
			t.Fatal(err)
		}
		if got := client.BranchURL("quorate/status#1"); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
