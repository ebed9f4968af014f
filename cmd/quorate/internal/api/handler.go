package api

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
)

// Prefix is the path under which everything is served.
const Prefix = "/api/v1"

// openapi is the description of all answers.
//
//go:embed openapi.json
var openapi []byte

// StatusList is the answer to a query for statuses.
type StatusList struct {
	// Items are the statuses that are asked for, in order.
	Items []schema.Status `json:"items"`
	// Continue is the token of the next answer, opaque; empty at the end.
	Continue string `json:"continue"`
	// Total counts what is asked for, in all answers together.
	Total int `json:"total"`
	// Whole is false while some object was not reconciled yet.
	Whole bool `json:"whole"`
}

// Git is what is known of the repository that is followed.
type Git struct {
	// Source is the repository with the branch, tag or commit and the directory in it,
	// without credentials; Reference says which, as in "branch main".
	Source    string `json:"source"`
	Reference string `json:"reference"`
	// Accepted is the commit in force; absent before the first.
	Accepted *Commit `json:"accepted,omitempty"`
	// Held is why no newer commit is accepted; absent where nothing is held.
	Held *Held `json:"held,omitempty"`
	// Problems of the files of the accepted commit, each in one line.
	Problems []string `json:"problems"`
	// LastSuccess is when the repository was last read, in UTC; absent before the first
	// time. Failures counts the reads that have failed since.
	LastSuccess string `json:"lastSuccess,omitempty"`
	Failures    int    `json:"failures"`
}

// Commit is one commit, as far as it is known.
type Commit struct {
	// Hash is the full hash.
	Hash string `json:"hash"`
	// Author as "Name <address>", Subject the first line of the message, and Time of the
	// commit by its committer's clock, in UTC.
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`
	Time    string `json:"time,omitempty"`
	// Signer is the key that its signature was verified with, and whose that is by
	// allowed_signers; absent where no signature was wanted.
	Signer string `json:"signer,omitempty"`
	// Tag is the tag that named the commit, and TagSigner whose signature of that was
	// verified; absent where a branch or a commit is followed, or no signature was wanted.
	Tag       string `json:"tag,omitempty"`
	TagSigner string `json:"tagSigner,omitempty"`
	// Approval is the transition, FROM..TO, that a person approved to have it accepted, and
	// ApprovedBy how and when; both are absent where none was needed.
	Approval   string `json:"approval,omitempty"`
	ApprovedBy string `json:"approvedBy,omitempty"`
}

// Held is why no newer commit is accepted.
type Held struct {
	// Message says why, in one sentence.
	Message string `json:"message"`
	// Commit is the one that is held, by its full hash; absent where no commit is the
	// cause, but the server or the network.
	Commit string `json:"commit,omitempty"`
	// Author, Subject and Time are as in a Commit, where it was read. One that is not
	// trusted may say of itself what it likes.
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`
	Time    string `json:"time,omitempty"`
	// Reason is history, signature or mass-change where a person can approve the commit,
	// and Approve is the command that does; both are absent otherwise.
	Reason  string `json:"reason,omitempty"`
	Approve string `json:"approve,omitempty"`
}

// PullList is what the open pull requests would do.
type PullList struct {
	// Items are those that were planned and change files that quorate reads, the newest
	// first; none without --pull-requests.
	Items []Pull `json:"items"`
}

// Pull is what one open pull request would do to the live clusters.
type Pull struct {
	Number int `json:"number"`
	// Head is the commit that it proposes, by its full hash.
	Head string `json:"head"`
	// Planned is when it was planned last, in UTC.
	Planned string `json:"planned"`
	// Report is the plan, as quorate plan -o json gives it.
	Report *preview.Report `json:"report"`
}

// Error is the answer to a request that fails.
type Error struct {
	// Error says why, in one sentence.
	Error string `json:"error"`
}

// GitOf is what is shown of what is known of the repository.
func GitOf(d follow.Details) Git {
	g := Git{Source: d.Source, Reference: d.Reference, Problems: slices.Clone(d.Problems), LastSuccess: schema.TimeText(d.LastSuccess), Failures: d.Failures}
	if g.Problems == nil {
		g.Problems = []string{}
	}
	if d.Commit != "" {
		g.Accepted = &Commit{
			Hash: d.Commit, Author: d.Author, Subject: d.Subject, Time: schema.TimeText(d.When),
			Signer: d.Signer, Tag: d.Tag.Name, TagSigner: d.Tag.Signer, Approval: d.Approval.String(), ApprovedBy: d.Approval.By,
		}
	}
	if d.Held != "" {
		g.Held = &Held{
			Message: d.Held, Commit: d.HeldCommit, Author: d.HeldAuthor, Subject: d.HeldSubject, Time: schema.TimeText(d.HeldWhen),
			Reason: d.Reason, Approve: d.Approve,
		}
	}
	return g
}

// Handler serves what is under Prefix.
func Handler(feed *Feed) http.Handler {
	h := handler{feed}
	mux := http.NewServeMux()
	for _, r := range h.routes() {
		mux.Handle(r.pattern, readOnly(r.serve))
	}
	return mux
}

type handler struct{ feed *Feed }

// route is a path, and what answers there.
type route struct {
	pattern string
	serve   http.HandlerFunc
}

func (h handler) routes() []route {
	return []route{
		{Prefix + "/statuses", knowing(h.statuses, "kind", "namespace", "name", "phase", "q", "sort", "limit", "continue", "branch")},
		{Prefix + "/statuses/{kind}/{namespace}/{name}", knowing(h.status, "branch")},
		{Prefix + "/statuses/EtcdCluster/{namespace}/{name}/measured", knowing(h.measured)},
		{Prefix + "/statuses/EtcdCluster/{namespace}/{name}/events", knowing(h.happened)},
		{Prefix + "/git", knowing(h.git)},
		{Prefix + "/pulls", knowing(h.pulls)},
		{Prefix + "/branches", knowing(h.branches)},
		{Prefix + "/events", knowing(h.events)},
		{Prefix + "/openapi.json", h.openapi},
		{Prefix + "/", func(w http.ResponseWriter, r *http.Request) {
			WriteError(w, http.StatusNotFound, fmt.Errorf("there is no %s; %s/openapi.json says what there is", r.URL.Path, Prefix))
		}},
	}
}

// readOnly refuses what is no GET or HEAD.
func readOnly(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			WriteError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s is not allowed: quorate is changed by commits, and this only reads", r.Method))
			return
		}
		next(w, r)
	})
}

func (h handler) statuses(w http.ResponseWriter, r *http.Request) {
	parameters := r.URL.Query()
	q, err := ParseQuery(parameters)
	limit, err2 := limitOf(parameters.Get("limit"))
	if err := errors.Join(err, err2); err != nil {
		WriteError(w, http.StatusBadRequest, err)
		return
	}
	look, ok := h.look(w, r)
	if !ok {
		return
	}
	items, next, total, err := q.After(look, parameters.Get("continue"), limit)
	if err != nil {
		WriteError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusOK, StatusList{items, next, total, look.Whole})
}

func (h handler) status(w http.ResponseWriter, r *http.Request) {
	if found, ok := h.find(w, r, r.PathValue("kind")); ok {
		writeJSON(w, http.StatusOK, found)
	}
}

func (h handler) measured(w http.ResponseWriter, r *http.Request) {
	if _, ok := h.find(w, r, schema.KindCluster); ok {
		m := h.feed.Measured(r.PathValue("namespace"), r.PathValue("name"))
		m.Members = append([]schema.MemberDatabase{}, m.Members...)
		writeJSON(w, http.StatusOK, m)
	}
}

func (h handler) happened(w http.ResponseWriter, r *http.Request) {
	found, ok := h.find(w, r, schema.KindCluster)
	if !ok {
		return
	}
	look, err := h.feed.Look()
	var list Happened
	if err == nil {
		list, err = h.feed.Happened(look, found.Metadata.Namespace, found.Metadata.Name)
	}
	if err != nil {
		WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

// find returns the status of the object of a kind that a request names. Where there is
// none it answers, and returns false.
func (h handler) find(w http.ResponseWriter, r *http.Request, kind string) (schema.Status, bool) {
	look, ok := h.look(w, r)
	if !ok {
		return schema.Status{}, false
	}
	found, err := look.Find(kind, r.PathValue("namespace"), r.PathValue("name"))
	if err != nil {
		WriteError(w, http.StatusNotFound, err)
		return schema.Status{}, false
	}
	return found, true
}

// look is what is known of the objects that this daemon reconciles, or of those on the status
// branch that a request names. Where there is nothing it answers, and returns false.
func (h handler) look(w http.ResponseWriter, r *http.Request) (Look, bool) {
	look, branch := h.feed.Look, cmp.Or(r.URL.Query().Get("branch"), Here)
	if branch != Here {
		look = h.feed.LookAround
	}
	found, err := look()
	if err != nil {
		WriteError(w, http.StatusServiceUnavailable, err)
		return found, false
	}
	if branch != Here {
		if found, err = found.OnBranch(branch); err != nil {
			WriteError(w, http.StatusNotFound, err)
			return found, false
		}
	}
	return found, true
}

func (h handler) git(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, GitOf(h.feed.Git()))
}

func (h handler) pulls(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, PullList{append([]Pull{}, h.feed.Pulls()...)})
}

func (h handler) openapi(w http.ResponseWriter, _ *http.Request) {
	head(w.Header())
	_, _ = w.Write(openapi)
}

// knowing refuses a query with parameters that mean nothing, or mean two things.
func knowing(next http.HandlerFunc, known ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := checkParameters(r.URL, known); err != nil {
			WriteError(w, http.StatusBadRequest, err)
			return
		}
		next(w, r)
	}
}

func checkParameters(u *url.URL, known []string) error {
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	for name, values := range parameters {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no parameter %q; known are: %s", name, strings.Join(known, ", "))
		}
		if len(values) > 1 {
			return fmt.Errorf("the parameter %s is given %d times: give it once", name, len(values))
		}
	}
	return nil
}

// head sets what every answer has: it is JSON and nothing else, and kept nowhere.
func head(h http.Header) {
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	head(w.Header())
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client has gone
}

// WriteError answers with an error.
func WriteError(w http.ResponseWriter, code int, err error) {
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	writeJSON(w, code, Error{err.Error()})
}
