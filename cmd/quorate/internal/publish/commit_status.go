package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/sources/forge"
)

// CommitStatuses sets the status of commits at the forge: how far each is applied.
type CommitStatuses struct {
	writer
	host    StatusHost
	context string
	// link is the target URL of a status; "" for none.
	link string
	git  func() follow.State

	// open holds the commits whose last status was not success. A process that has lost
	// them leaves a stale status behind if such a commit is superseded meanwhile.
	open map[string]forge.State
}

// StatusHost is a forge that takes the status of a commit.
type StatusHost interface {
	Status(ctx context.Context, s forge.Status) error
}

// minPause is the shortest time between two rounds: forges limit how many statuses a
// commit may have.
const minPause = 5 * time.Second

// maxCommits is how many commits have their status set. The client of the forge remembers
// more than that, so that no status is sent twice.
const maxCommits = 20

// CommitStatusesConfig is where commit statuses are set, and how.
type CommitStatusesConfig struct {
	Host StatusHost
	// Context is the name of the statuses, Link their target URL; "" for none.
	Context, Link string
}

// NewCommitStatuses returns a CommitStatuses that has set none yet.
func NewCommitStatuses(m CommitStatusesConfig, git func() follow.State, log *slog.Logger) *CommitStatuses {
	return &CommitStatuses{
		writer: writer{what: "commit status", interval: minPause, log: log},
		host:   m.Host, context: m.Context, link: m.Link, git: git, open: map[string]forge.State{},
	}
}

// Run sets statuses until ctx ends.
func (c *CommitStatuses) Run(ctx context.Context, from Statuses) {
	c.run(ctx, func(time.Time) { c.Once(ctx, from) })
}

// Once sets the statuses that are due. The host drops those that have not changed. A commit that it does not take
// one for keeps no other from its own, unless nothing can be set there now.
func (c *CommitStatuses) Once(ctx context.Context, from Statuses) {
	list, whole := from.Statuses()
	git := c.git()
	if git.Commit == "" || !whole {
		return
	}
	c.next = time.Now().Add(minPause)
	var failed error
	for _, status := range c.due(git, list) {
		status.Context, status.Link = c.context, c.link
		if err := c.host.Status(ctx, status); err != nil {
			failed = errors.Join(err, failed) // how long to wait is the last one's word
			if ctx.Err() != nil || errors.Is(err, sources.ErrUnreachable) || errors.Is(err, sources.ErrAuthentication) {
				break
			}
			continue // the forge may not know this commit any more
		}
		c.open[status.Commit] = status.State
		if status.State == forge.Success {
			delete(c.open, status.Commit)
		}
	}
	if failed != nil {
		if ctx.Err() == nil {
			c.fail(ctx, failed)
		}
		return
	}
	c.succeed()
}

// due returns the statuses of the commit in force, of one that is held, of earlier ones
// that are still being applied, and of those that were superseded.
func (c *CommitStatuses) due(git follow.State, list []schema.Status) []forge.Status {
	changedBy := map[string][]schema.Status{git.Commit: nil}
	for _, s := range list {
		if s.Status.Commit != "" && s.Kind == schema.KindCluster {
			changedBy[s.Status.Commit] = append(changedBy[s.Status.Commit], s)
		}
	}
	var statuses []forge.Status
	for commit, changed := range changedBy {
		status := statusOf(changed)
		if commit == git.Commit {
			status = statusOfHead(git, list, status)
		} else if c.open[commit] == "" && status.State == forge.Success {
			continue // set before, by this process or an earlier one
		}
		status.Commit = commit
		statuses = append(statuses, status)
	}
	if git.HeldCommit != "" && git.HeldCommit != git.Commit {
		statuses = append(statuses, forge.Status{Commit: git.HeldCommit, State: forge.Failure, Description: "not applied: " + git.Held})
	}
	statuses = append(statuses, c.superseded(git, changedBy)...)
	rank := func(s forge.Status) int {
		switch {
		case s.Commit == git.Commit:
			return 0
		case s.Commit == git.HeldCommit:
			return 1
		case c.open[s.Commit] != "":
			return 2
		}
		return 3
	}
	slices.SortFunc(statuses, func(a, b forge.Status) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Commit, b.Commit))
	})
	return statuses[:min(len(statuses), maxCommits)]
}

// superseded returns the statuses of commits of which nothing is applied any more, and
// which were not applied in full before.
func (c *CommitStatuses) superseded(git follow.State, changedBy map[string][]schema.Status) []forge.Status {
	var statuses []forge.Status
	for commit, state := range c.open {
		switch _, there := changedBy[commit]; {
		case there, commit == git.HeldCommit:
		case state == forge.Pending:
			statuses = append(statuses, forge.Status{Commit: commit, State: forge.Failure, Description: "superseded by " + preview.ShortCommit(git.Commit) + " before it was applied"})
		default:
			delete(c.open, commit)
		}
	}
	return statuses
}

// statusOfHead returns the status of the commit in force: its files may have errors, and
// not every cluster may have been checked against it yet.
func statusOfHead(git follow.State, list []schema.Status, changed forge.Status) forge.Status {
	if n := len(git.Problems); n > 0 {
		return forge.Status{State: forge.Failure, Description: state.Plural(n, "problem") + " in its files: " + git.Problems[0]}
	}
	behind := 0
	for _, s := range list {
		if s.Observed != git.Commit && s.Kind == schema.KindCluster && s.Observed != "" {
			behind++
		}
	}
	if behind > 0 && changed.State != forge.Failure {
		return forge.Status{State: forge.Pending, Description: state.Plural(behind, "cluster") + " not checked against it yet"}
	}
	return changed
}

// statusOf returns the status of a commit from the clusters that it changed.
func statusOf(changed []schema.Status) forge.Status {
	if len(changed) == 0 {
		return forge.Status{State: forge.Success, Description: "no cluster changed"}
	}
	done := 0
	state, worst := forge.Success, changed[0]
	for _, s := range changed {
		switch phase, _ := s.Phase(); {
		case phase == schema.PhaseReady:
			done++
		case phase == schema.PhaseStalled && state != forge.Failure:
			state, worst = forge.Failure, s
		case phase != schema.PhaseStalled && state == forge.Success:
			state, worst = forge.Pending, s
		}
	}
	text := progress(worst)
	if state == forge.Failure {
		_, why := worst.Phase()
		text = worst.Metadata.Name + ": " + why.Message
	}
	if len(changed) > 1 {
		text = fmt.Sprintf("%d of %d clusters done", done, len(changed))
		if state != forge.Success {
			text += "; " + progress(worst)
		}
	}
	return forge.Status{State: state, Description: text}
}

// progress tells how far one cluster is: "orders: 2 of 3 members at 3.6.16".
func progress(s schema.Status) string {
	c := s.Status.Cluster
	if c == nil {
		_, why := s.Phase()
		return s.Metadata.Name + ": " + why.Message
	}
	done := 0
	for _, m := range c.Members {
		if m.Version == c.Version.Wanted && m.Health == schema.HealthHealthy {
			done++
		}
	}
	return fmt.Sprintf("%s: %d of %d members at %s", s.Metadata.Name, done, c.Replicas.Wanted, c.Version.Wanted)
}
