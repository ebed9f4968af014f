package publish

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources/forge"
)

// Marks marks commits at the forge with how far they are carried out. It
// reads what is known, and decides nothing.
type Marks struct {
	turns
	host    StatusHost
	context string
	// link is where a mark leads; "" for nowhere.
	link string
	git  func() follow.State

	// open are the commits that were marked as something else than a success. A
	// process that has lost them leaves a mark behind where a commit is overtaken
	// meanwhile.
	open map[string]forge.State
}

// StatusHost is where commits are marked.
type StatusHost interface {
	Status(ctx context.Context, s forge.Status) error
}

// statusPause is the shortest time between two rounds: forges bound how many marks a
// commit may get.
const statusPause = 5 * time.Second

// marksMost is how many commits are looked after. The client at the forge remembers
// more than that, so that no mark is sent twice.
const marksMost = 20

// MarksConfig says where commits are marked, and how.
type MarksConfig struct {
	Host StatusHost
	// Context is the name of the marks, Link where they lead; "" for nowhere.
	Context, Link string
}

// NewMarks prepares what marks commits as git knows them.
func NewMarks(m MarksConfig, git func() follow.State, log *slog.Logger) *Marks {
	return &Marks{
		turns: turns{what: "commit status", interval: statusPause, log: log},
		host:  m.Host, context: m.Context, link: m.Link, git: git, open: map[string]forge.State{},
	}
}

// Run marks commits again and again until ctx ends.
func (c *Marks) Run(ctx context.Context, from Statuses) {
	c.each(ctx, func(time.Time) { c.Once(ctx, from) })
}

// Once marks what has changed.
func (c *Marks) Once(ctx context.Context, from Statuses) {
	list, whole := from.Statuses()
	git := c.git()
	if git.Commit == "" || !whole {
		return
	}
	c.next = time.Now().Add(statusPause)
	for _, mark := range c.marks(git, list) {
		mark.Context, mark.Link = c.context, c.link
		if err := c.host.Status(ctx, mark); err != nil {
			if ctx.Err() == nil {
				c.fail(ctx, err)
			}
			return
		}
		c.open[mark.Commit] = mark.State
		if mark.State == forge.Success {
			delete(c.open, mark.Commit)
		}
	}
	c.succeed()
}

// marks are those of the commit in force, of one that is held, of earlier ones that
// are still being carried out, and of those that were overtaken.
func (c *Marks) marks(git follow.State, list []schema.Status) []forge.Status {
	brought := map[string][]schema.Status{git.Commit: nil}
	for _, s := range list {
		if s.Status.Commit != "" && s.Kind == schema.KindCluster {
			brought[s.Status.Commit] = append(brought[s.Status.Commit], s)
		}
	}
	var marks []forge.Status
	for commit, changed := range brought {
		mark := markOf(changed)
		if commit == git.Commit {
			mark = markOfHead(git, list, mark)
		} else if c.open[commit] == "" && mark.State == forge.Success {
			continue // it was told, by this process or an earlier one
		}
		mark.Commit = commit
		marks = append(marks, mark)
	}
	if git.HeldCommit != "" && git.HeldCommit != git.Commit {
		marks = append(marks, forge.Status{Commit: git.HeldCommit, State: forge.Failure, Description: "not followed: " + git.Held})
	}
	marks = append(marks, c.overtaken(git, brought)...)
	first := func(s forge.Status) int {
		return slices.Index([]bool{s.Commit == git.Commit, s.Commit == git.HeldCommit, c.open[s.Commit] != "", true}, true)
	}
	slices.SortFunc(marks, func(a, b forge.Status) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.Commit, b.Commit))
	})
	return marks[:min(len(marks), marksMost)]
}

// overtaken are the commits that nothing is carried out of any more, and which were
// not carried out before.
func (c *Marks) overtaken(git follow.State, brought map[string][]schema.Status) []forge.Status {
	var marks []forge.Status
	for commit, state := range c.open {
		switch _, there := brought[commit]; {
		case there, commit == git.HeldCommit:
		case state == forge.Pending:
			marks = append(marks, forge.Status{Commit: commit, State: forge.Failure, Description: "overtaken by " + preview.ShortCommit(git.Commit) + " before it was carried out"})
		default:
			delete(c.open, commit)
		}
	}
	return marks
}

// markOfHead is the mark of the commit in force: its files may be wrong, and not
// everybody may have looked at it yet.
func markOfHead(git follow.State, list []schema.Status, changed forge.Status) forge.Status {
	if n := len(git.Problems); n > 0 {
		return forge.Status{State: forge.Failure, Description: state.Plural(n, "problem") + " in its files: " + git.Problems[0]}
	}
	ahead := 0
	for _, s := range list {
		if s.Observed != git.Commit && s.Kind == schema.KindCluster && s.Observed != "" {
			ahead++
		}
	}
	if ahead > 0 && changed.State != forge.Failure {
		return forge.Status{State: forge.Pending, Description: state.Plural(ahead, "cluster") + " not looked at with it yet"}
	}
	return changed
}

// markOf says how far the clusters are that a commit changed.
func markOf(changed []schema.Status) forge.Status {
	if len(changed) == 0 {
		return forge.Status{State: forge.Success, Description: "it changes no cluster"}
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

// progress is how far one cluster is: "orders: 2 of 3 members at 3.6.16".
func progress(s schema.Status) string {
	c := s.Status.Cluster
	if c == nil {
		_, why := s.Phase()
		return s.Metadata.Name + ": " + why.Message
	}
	there := 0
	for _, m := range c.Members {
		if m.Version == c.Version.Wanted && m.Health == schema.HealthHealthy {
			there++
		}
	}
	return fmt.Sprintf("%s: %d of %d members at %s", s.Metadata.Name, there, c.Replicas.Wanted, c.Version.Wanted)
}
