package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quorate/quorate/sources"
)

// lab is the API of GitLab.
type lab struct {
	project string // as a path of the API
}

func (l lab) status(s Status) sources.Request {
	state := string(s.State)
	if s.State == Failure {
		state = "failed"
	}
	return sources.Request{Method: http.MethodPost, Path: l.project + "/statuses/" + s.Commit, Body: struct {
		State       string `json:"state"`
		Name        string `json:"name"`
		TargetURL   string `json:"target_url,omitempty"`
		Description string `json:"description"`
	}{state, s.Context, s.Link, s.Description}}
}

// isSet is so where the state was the same: older releases take that
// for an error, and keep the description of the first time.
func (l lab) isSet(refusal sources.Answer) bool {
	return refusal.Status == http.StatusBadRequest && strings.Contains(string(refusal.Body), "Cannot transition status")
}

func (l lab) pulls(base string, page int) string {
	query := url.Values{
		"state": {"opened"}, "target_branch": {base}, "order_by": {"updated_at"}, "sort": {"desc"},
		"per_page": {"100"}, "page": {strconv.Itoa(page)},
	}
	return l.project + "/merge_requests?" + query.Encode()
}

func (l lab) readPulls(body []byte) ([]Pull, error) {
	var list []struct {
		IID          int
		SHA          string
		TargetBranch string `json:"target_branch"`
		Draft        bool
		Source       int64 `json:"source_project_id"`
		Target       int64 `json:"target_project_id"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	var pulls []Pull
	for _, p := range list {
		if p.IID == 0 || p.TargetBranch == "" {
			return nil, errors.New("a merge request without a number or a branch")
		}
		if p.SHA == "" {
			continue // its branch is gone, or GitLab has not processed it yet
		}
		pulls = append(pulls, Pull{
			Number: p.IID, Head: p.SHA, Reference: fmt.Sprintf("refs/merge-requests/%d/head", p.IID), Base: p.TargetBranch, Draft: p.Draft,
			Fork: p.Source != p.Target || p.Source == 0,
		})
	}
	return pulls, nil
}

func (l lab) comments(pull, page int) string {
	return fmt.Sprintf("%s/merge_requests/%d/notes?order_by=created_at&sort=asc&per_page=100&page=%d", l.project, pull, page)
}

func (l lab) readComments(body []byte) ([]comment, error) {
	var list []struct {
		ID     int64
		Body   string
		Author struct{ ID int64 }
		System bool
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	var comments []comment
	for _, one := range list {
		if !one.System {
			comments = append(comments, comment{id: one.ID, text: one.Body, author: one.Author.ID})
		}
	}
	return comments, nil
}

func (l lab) write(pull int, id int64, text string) sources.Request {
	path := fmt.Sprintf("%s/merge_requests/%d/notes", l.project, pull)
	body := map[string]string{"body": text}
	if id != 0 {
		return sources.Request{Method: http.MethodPut, Path: fmt.Sprintf("%s/%d", path, id), Body: body}
	}
	return sources.Request{Method: http.MethodPost, Path: path, Body: body}
}

func (l lab) self() string { return "/user" }
