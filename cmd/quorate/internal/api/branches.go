package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/schema"
)

// BranchList is what is known of the status branches of other Kubernetes clusters.
type BranchList struct {
	// Items are the branches by name; none without --page-status-branches.
	Items []Branch `json:"items"`
	// Read is when they were last read, in UTC; absent before the first time. They are read
	// while somebody asks.
	Read string `json:"read,omitempty"`
	// Problem says why they were not read since; absent where they were.
	Problem string `json:"problem,omitempty"`
}

// Branch is one status branch: what the daemon of another Kubernetes cluster has written.
type Branch struct {
	// Name is without refs/heads/; Commit is the commit that was read, by its full hash, absent
	// where none was.
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	// Written is when that was made, in UTC, by the clock of its writer.
	Written string `json:"written,omitempty"`
	// Objects counts the statuses that it holds.
	Objects int `json:"objects"`
	// Doubt says why nothing there counts as how things are now: then all its statuses are
	// Unknown. Absent where it does.
	Doubt string `json:"doubt,omitempty"`
	// Unread are the files that hold no status that is understood, by their paths; at most 100.
	Unread []string `json:"unread"`
}

// maxUnread bounds the files that are named.
const maxUnread = 100

// SetBranches has the feed show the status branches of other Kubernetes clusters. from returns the
// same view for as long as nothing has changed.
func (f *Feed) SetBranches(from func() *branches.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.branches = from
}

// Branches returns what is known of the status branches of other Kubernetes clusters; nil where
// they are not read.
func (f *Feed) Branches() *branches.View {
	f.mu.Lock()
	from := f.branches
	f.mu.Unlock()
	if from == nil {
		return nil
	}
	return from()
}

func (h handler) branches(w http.ResponseWriter, _ *http.Request) {
	view := h.feed.Branches()
	list := BranchList{Items: []Branch{}}
	if view == nil {
		list.Problem = errNoBranches.Error()
		writeJSON(w, http.StatusOK, list)
		return
	}
	list.Read, list.Problem = schema.TimeText(view.Read), view.Problem
	for _, b := range view.Branches {
		list.Items = append(list.Items, Branch{
			b.Name, b.Commit, schema.TimeText(b.Written), len(b.Statuses), b.Doubt, append([]string{}, b.Unread[:min(len(b.Unread), maxUnread)]...),
		})
	}
	writeJSON(w, http.StatusOK, list)
}

// errNoBranches is the answer where none are read.
var errNoBranches = errors.New("the status branches of other Kubernetes clusters are not read: give the daemon --page-status-branches")

// OnBranch returns a look that has, in the place of the objects that this daemon reconciles, those
// on a status branch.
func (l Look) OnBranch(name string) (Look, error) {
	if l.Branches == nil {
		return Look{}, errNoBranches
	}
	b, there := l.Branches.Find(name)
	if !there {
		return Look{}, fmt.Errorf("no status branch %s is known", name)
	}
	return Look{branch: name, List: b.Statuses, Whole: b.Doubt == "" && len(b.Unread) == 0}, nil
}
