package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quorate/quorate/sources"
)

// hub is the API of GitHub, which Gitea's follows.
type hub struct {
	repository string // as a path of the API
	gitea      bool
}

func (h hub) status(s Status) sources.Request {
	return sources.Request{Method: http.MethodPost, Path: h.repository + "/statuses/" + s.Commit, Body: struct {
		State       State  `json:"state"`
		TargetURL   string `json:"target_url,omitempty"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}{s.State, s.Link, s.Description, s.Context}}
}

// isSet is never so: the same status may be set again.
func (h hub) isSet(sources.Answer) bool { return false }

func (h hub) pulls(base string, page int) string {
	query := url.Values{"state": {"open"}, "page": {strconv.Itoa(page)}}
	if h.gitea {
		query.Set("base_branch", base)
		query.Set("sort", "recentupdate")
		query.Set("limit", "50") // the most that it gives by default
	} else {
		query.Set("base", base)
		query.Set("sort", "updated")
		query.Set("direction", "desc")
		query.Set("per_page", "100")
	}
	return h.repository + "/pulls?" + query.Encode()
}

// hubBranch is one side of a pull request. The repository of a fork that was
// deleted is null.
type hubBranch struct {
	Label string `json:"label"`
	Ref   string `json:"ref"`
	SHA   string `json:"sha"`
	Repo  *struct {
		ID int64 `json:"id"`
	} `json:"repo"`
}

// hubPull is a pull request in a list.
type hubPull struct {
	Number     int
	Draft      bool
	Head, Base hubBranch
	// Flow is Forgejo's: 1 for AGit.
	Flow int
}

// isFork reports whether somebody may have opened it who may not write to the repository.
// At Gitea that is so in the repository itself, too: whoever may read it may push to
// refs/for/BRANCH (AGit). The head of such a one has no branch of its own, and no label.
func (h hub) isFork(p hubPull) bool {
	if p.Head.Repo == nil || p.Head.Repo.ID != p.Base.Repo.ID {
		return true
	}
	return h.gitea && (p.Head.Label == "" || p.Flow != 0)
}

func (h hub) readPulls(body []byte) ([]Pull, error) {
	var list []hubPull
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	var pulls []Pull
	for _, p := range list {
		if h.gitea && p.Head.SHA == "" {
			continue // Gitea has lost it, as it may when a repository is restored
		}
		if p.Number == 0 || p.Head.SHA == "" || p.Base.Repo == nil {
			return nil, errors.New("a pull request without a number, a head or a base")
		}
		pulls = append(pulls, Pull{
			Number: p.Number, Head: p.Head.SHA, Reference: fmt.Sprintf("refs/pull/%d/head", p.Number), Base: p.Base.Ref, Draft: p.Draft,
			Fork: h.isFork(p),
		})
	}
	return pulls, nil
}

func (h hub) comments(pull, page int) string {
	return fmt.Sprintf("%s/issues/%d/comments?per_page=100&page=%d", h.repository, pull, page)
}

func (h hub) readComments(body []byte) ([]comment, error) {
	var list []struct {
		ID   int64
		Body string
		User struct{ ID int64 }
		App  *struct {
			ID       int64
			ClientID string `json:"client_id"`
		} `json:"performed_via_github_app"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	var comments []comment
	for _, one := range list {
		c := comment{id: one.ID, text: one.Body, author: one.User.ID}
		if one.App != nil {
			c.apps = []string{strconv.FormatInt(one.App.ID, 10), one.App.ClientID}
		}
		comments = append(comments, c)
	}
	return comments, nil
}

func (h hub) write(pull int, id int64, text string) sources.Request {
	body := map[string]string{"body": text}
	if id != 0 {
		return sources.Request{Method: http.MethodPatch, Path: fmt.Sprintf("%s/issues/comments/%d", h.repository, id), Body: body}
	}
	return sources.Request{Method: http.MethodPost, Path: fmt.Sprintf("%s/issues/%d/comments", h.repository, pull), Body: body}
}

func (h hub) self() string { return "/user" }

// readID reads the ID of a comment or a user.
func readID(body []byte) (int64, error) {
	var found struct{ ID int64 }
	if err := json.Unmarshal(body, &found); err != nil {
		return 0, err
	}
	if found.ID == 0 {
		return 0, errors.New("it has no ID")
	}
	return found.ID, nil
}
