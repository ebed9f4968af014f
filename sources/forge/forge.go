// Package forge writes back to where a Git repository is hosted, at GitHub, GitLab
// or Gitea (and Forgejo, which speaks Gitea's API): statuses of commits, and
// comments on pull requests. What it calls a pull request is a merge request at
// GitLab.
//
// It asks for little: a status is sent only where it differs from the one sent
// last, a comment only where its text does, and the list of open pull requests is
// asked for with what was known of it. All that is kept only saves requests: a
// process that has lost it sends once more what is there already.
package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/sources"
)

// Config is where the repository is hosted.
type Config struct {
	// Kind of the host; empty where the repository is at github.com or gitlab.com.
	Kind Kind
	// URL of the host, such as https://git.example.com; empty likewise.
	URL string
	// Repository is the URL by which Git reads the repository.
	Repository string
	// Auth has a token, or a GitHub App.
	Auth sources.Auth
	// CAFile holds PEM certificates that are trusted besides the system's.
	CAFile string
	// Timeout bounds one request. Default 30 seconds.
	Timeout time.Duration
}

// Kind of a forge.
type Kind string

// The kinds.
const (
	GitHub Kind = "github"
	GitLab Kind = "gitlab"
	Gitea  Kind = "gitea"
)

// State of a commit.
type State string

// The states.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is what a commit is marked with.
type Status struct {
	// Commit is a full hash.
	Commit string
	// Context tells apart the statuses of several programs on one commit.
	Context string
	State   State
	// Description is one line, cut at 140 characters, which is GitHub's limit.
	Description string
	// Link is where it leads; empty for nowhere.
	Link string
}

// Pull is an open pull request.
type Pull struct {
	Number int
	// Head is the commit that it proposes, and Reference its full name in Git.
	Head, Reference string
	// Base is the branch that it is for.
	Base string
	// Draft is one that is not ready for review yet.
	Draft bool
	// Fork is one that may be of somebody who may not write to the repository: its head
	// lies in another one or, at Gitea, was pushed to refs/for/BRANCH.
	Fork bool
}

// Client writes to one repository at a forge. Its methods may be called
// concurrently.
type Client struct {
	api   *sources.API
	forge dialect
	// branches is what a browser shows a branch below.
	branches string

	mu       sync.Mutex
	statuses map[subject]Status // the last that was sent
	comments map[int]written    // the last that was written, by pull request
	pages    map[string]kept    // of the list of pull requests, by path
}

// subject is what has one status.
type subject struct{ commit, context string }

// written is a comment of ours.
type written struct {
	id   int64
	text string
}

// kept is a page of the list, and what the server calls it.
type kept struct {
	etag  string
	pulls []Pull
	more  bool
}

// dialect is what the forges differ in.
type dialect interface {
	// status sets a status, and isSet reports of a refusal that it was set already.
	status(s Status) sources.Request
	isSet(refusal sources.Answer) bool
	// pulls is a page, from 1, of the open pull requests for a branch.
	pulls(base string, page int) string
	readPulls(body []byte) ([]Pull, error)
	// comments is a page of those on a pull request.
	comments(pull, page int) string
	readComments(body []byte) ([]comment, error)
	// write creates a comment or, where it has an ID, changes it.
	write(pull int, id int64, text string) sources.Request
	// self is the account that owns the token.
	self() string
}

// comment is one on a pull request.
type comment struct {
	id     int64
	text   string
	author int64
	apps   []string // IDs of the GitHub App that wrote it
}

// New finds out where the API is. It does not connect.
func New(cfg Config) (*Client, error) {
	host, path, err := sources.Address(cfg.Repository)
	if err != nil {
		return nil, err
	}
	if cfg.Kind == "" && cfg.URL == "" {
		switch host {
		case "github.com":
			cfg.Kind = GitHub
		case "gitlab.com":
			cfg.Kind = GitLab
		default:
			return nil, errors.New("the repository is neither at github.com nor at gitlab.com: say with --forge and --forge-url what hosts it")
		}
	}
	if cfg.URL == "" && (host == "github.com" && cfg.Kind == GitHub || host == "gitlab.com" && cfg.Kind == GitLab) {
		cfg.URL = "https://" + host
	}
	if cfg.Kind == "" || cfg.URL == "" {
		return nil, errors.New("--forge and --forge-url go together: give both")
	}
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("forge URL: it cannot be parsed; give it in the form https://host")
	}
	forge, address, branches, err := newDialect(cfg.Kind, base, path)
	if err != nil {
		return nil, err
	}
	api, err := sources.NewAPI(address, cfg.Auth, cfg.CAFile, cmp.Or(cfg.Timeout, 30*time.Second))
	if err != nil {
		return nil, err
	}
	return &Client{api: api, forge: forge, branches: branches, statuses: map[subject]Status{}, comments: map[int]written{}, pages: map[string]kept{}}, nil
}

// newDialect is how to talk to a forge, where its API is, and below what it shows
// branches. path is that of the repository, which begins with the forge's own where
// that has one.
func newDialect(kind Kind, base *url.URL, path string) (how dialect, api, branches string, err error) {
	web := strings.TrimRight(base.String(), "/")
	path = strings.Trim(strings.TrimPrefix("/"+path, strings.TrimRight(base.Path, "/")+"/"), "/")
	owner, name, _ := strings.Cut(path, "/")
	if owner == "" || name == "" || kind != GitLab && strings.Contains(name, "/") {
		return nil, "", "", fmt.Errorf("the repository's URL names no owner and repository at %s: follow it with --repo by its URL there", base.Host)
	}
	page := web + "/" + path
	switch kind {
	case GitHub:
		api := web + "/api/v3"
		if strings.EqualFold(base.Hostname(), "github.com") {
			api = "https://api.github.com"
		}
		return hub{repository: "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name)}, api, page + "/tree/", nil
	case Gitea:
		return hub{repository: "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name), gitea: true}, web + "/api/v1", page + "/src/branch/", nil
	case GitLab:
		return lab{project: "/projects/" + url.PathEscape(path)}, web + "/api/v4", page + "/-/tree/", nil
	}
	return nil, "", "", fmt.Errorf("--forge is %q: give github, gitlab or gitea", kind)
}

const (
	// descriptionRunes is GitHub's limit.
	descriptionRunes = 140
	// maxStatuses is how many statuses are remembered; more are not followed
	// commits than a few at once.
	maxStatuses = 32
)

// BranchURL is where a browser shows a branch.
func (c *Client) BranchURL(branch string) string {
	return c.branches + (&url.URL{Path: branch}).EscapedPath()
}

// Status marks a commit, unless that was the last that this process marked.
func (c *Client) Status(ctx context.Context, s Status) error {
	s.Description = shorten(s.Description, descriptionRunes)
	about := subject{s.Commit, s.Context}
	c.mu.Lock()
	last := c.statuses[about]
	c.mu.Unlock()
	if last == s {
		return nil
	}
	answer, err := c.api.Call(ctx, "set the status of commit "+s.Commit, c.forge.status(s))
	if err != nil && !c.forge.isSet(answer) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.statuses) >= maxStatuses {
		clear(c.statuses)
	}
	c.statuses[about] = s
	return nil
}

// shorten cuts a line.
func shorten(line string, most int) string {
	runes := []rune(strings.Join(strings.Fields(line), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}

// maxPages bounds every list.
const maxPages = 20

// OpenPulls lists the open pull requests for a branch, those that changed last
// first, at most some thousand of them.
func (c *Client) OpenPulls(ctx context.Context, base string) ([]Pull, error) {
	var all []Pull
	for page := 1; page <= maxPages; page++ {
		found, err := c.page(ctx, c.forge.pulls(base, page))
		if err != nil {
			return nil, err
		}
		for _, p := range found.pulls {
			if p.Base == base {
				all = append(all, p)
			}
		}
		if !found.more {
			break
		}
	}
	c.forgetClosed(all)
	return all, nil
}

// page asks for one page, and gets none where it has not changed.
func (c *Client) page(ctx context.Context, path string) (kept, error) {
	c.mu.Lock()
	known := c.pages[path]
	c.mu.Unlock()
	const during = "list the open pull requests"
	answer, err := c.api.Call(ctx, during, sources.Request{Method: http.MethodGet, Path: path, ETag: known.etag})
	switch {
	case err != nil:
		return kept{}, err
	case answer.Status == http.StatusNotModified && known.etag != "":
		return known, nil
	}
	found := kept{etag: answer.Header.Get("ETag"), more: hasNext(answer.Header)}
	if found.pulls, err = c.forge.readPulls(answer.Body); err != nil {
		return kept{}, garbage(during)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages[path] = found
	return found, nil
}

// hasNext reports whether a list continues after this page.
func hasNext(header http.Header) bool {
	return strings.Contains(strings.Join(header.Values("Link"), ","), `rel="next"`)
}

// forgetClosed drops what is known of the comments on pull requests that are over.
func (c *Client) forgetClosed(open []Pull) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.comments
	c.comments = map[int]written{}
	for _, p := range open {
		if w, has := known[p.Number]; has {
			c.comments[p.Number] = w
		}
	}
}

// garbage is an answer that is not what the API promises. The decoder's words may
// hold a piece of it.
func garbage(during string) error {
	return fmt.Errorf("%s: the answer is not the API's; check --forge and --forge-url", during)
}
