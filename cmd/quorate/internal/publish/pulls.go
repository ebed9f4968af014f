package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/sources/forge"
)

// Pulls keeps a comment on each open pull request that shows what it would do to the live
// clusters. What it plans is never handed to the reconciler that acts, and the poll of
// the followed branch never waits for it.
type Pulls struct {
	host       PullHost
	repository *sources.Repository
	// branch is the followed one, marker identifies the comments of this daemon.
	branch, marker string
	bounds         schema.Bounds
	forks          bool
	interval       time.Duration
	// options are those of the reconciler that acts.
	options preview.Options
	git     func() follow.State
	log     *slog.Logger
	now     func() time.Time
	// timeout bounds the plan of one pull request, and the time to write it down.
	timeout time.Duration

	// known is what was planned, by number; said the errors that were logged last.
	known map[int]planned
	said  memo.Once
	// plans are what people may read of those that are open, by number.
	mu    sync.Mutex
	plans map[int]PullPlan
}

// PullPlan is what one open pull request would do. It is never changed.
type PullPlan struct {
	Number int
	// Head is the commit that it proposes.
	Head   string
	At     time.Time
	Report *preview.Report
}

// Plans returns what the open pull requests would do, those with the highest number first.
func (p *Pulls) Plans() []PullPlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.plans), func(a, b PullPlan) int { return cmp.Compare(b.Number, a.Number) })
}

// setPlan keeps what a pull request would do; nil for nothing that quorate reads.
func (p *Pulls) setPlan(plan PullPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if plan.Report == nil {
		delete(p.plans, plan.Number)
		return
	}
	p.plans[plan.Number] = plan
	if len(p.plans) > maxPlans {
		oldest := slices.MinFunc(slices.Collect(maps.Values(p.plans)), func(a, b PullPlan) int { return a.At.Compare(b.At) })
		delete(p.plans, oldest.Number)
	}
}

// PullHost is a forge with pull requests.
type PullHost interface {
	OpenPulls(ctx context.Context, base string) ([]forge.Pull, error)
	// Comment keeps one comment with a marker, and Amend does so where there is one already.
	Comment(ctx context.Context, pull int, marker, text string) error
	Amend(ctx context.Context, pull int, marker, text string) error
}

// planned is when a head was planned, and against which commit.
type planned struct {
	head, applied string
	at            time.Time
	// relevant is true if the head changes files that quorate reads.
	relevant bool
	// failed counts the tries that failed since one succeeded.
	failed int
	// turn is when it is its turn again: the earliest goes first.
	turn time.Time
}

// Planning pull requests has a budget of its own: anyone who may open one decides how many
// there are, how large they are, and how often they change.
const (
	// planTimeout bounds the plan of one pull request, and the time to write it down.
	planTimeout = 2 * time.Minute
	// roundTime is after which no other one begins in the same round, so that those that
	// were opened meanwhile are seen.
	roundTime = 2 * time.Minute
	// maxPlans are kept to be read, those that were made last.
	maxPlans = 100
	// pullsPerRound are planned at most in one round; the others follow in the next.
	pullsPerRound = 5
	// slowRest is for how many times the time that it took a pull request gives way to others.
	slowRest = 10
	// failRest is the time until one that failed is tried again; it doubles with each failure,
	// up to maxFailRest.
	failRest    = time.Minute
	maxFailRest = 32 * time.Minute
	// maxPlanAge is when the same head is planned again: the clusters may have changed.
	maxPlanAge = 5 * time.Minute
	// maxCommentBytes is below the limit of every forge.
	maxCommentBytes = 60000
)

// PullsConfig is which pull requests are planned, and how.
type PullsConfig struct {
	Host       PullHost
	Repository *sources.Repository
	// Branch is the followed one, Instance the value of --instance.
	Branch, Instance string
	// Bounds are what the files may declare.
	Bounds schema.Bounds
	// Forks allows pull requests from forks.
	Forks bool
	// Interval is the time between two rounds.
	Interval time.Duration
	// Options are those of the reconciler that acts.
	Options preview.Options
}

// NewPulls returns a Pulls that has planned nothing yet.
func NewPulls(c PullsConfig, git func() follow.State, log *slog.Logger) *Pulls {
	return &Pulls{
		host: c.Host, repository: c.Repository, branch: c.Branch,
		marker: "quorate-pull-" + follow.Identity(c.Instance, c.Repository.Source()), bounds: c.Bounds, forks: c.Forks,
		interval: c.Interval, options: c.Options, git: git, log: log, now: time.Now, timeout: planTimeout,
		known: map[int]planned{}, plans: map[int]PullPlan{},
	}
}

// Live is the state that is in force.
type Live interface {
	// Desired returns the clusters in force, by key.
	Desired() map[string]*desired.Cluster
	// Planner returns a planner that sees the live clusters and changes nothing.
	Planner() preview.Planner
}

// Run plans pull requests until ctx ends.
func (p *Pulls) Run(ctx context.Context, live Live) {
	for failed := 0; ; {
		err := p.Once(ctx, live)
		failed++
		if err == nil {
			failed = 0
		}
		timer := time.NewTimer(follow.Pause(p.interval, failed, sources.RetryAfter(err), rand.Float64()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// Once makes one round. A pull request that fails does not stop the others, unless the
// forge asks to wait.
func (p *Pulls) Once(ctx context.Context, live Live) error {
	applied := p.git().Commit
	if applied == "" {
		return nil
	}
	open, err := p.host.OpenPulls(ctx, p.branch)
	p.logError(ctx, 0, err)
	if err != nil {
		return err
	}
	p.forgetClosed(open)
	begun := p.now()
	for _, pull := range p.turns(open, applied) {
		if p.now().Sub(begun) >= roundTime {
			break
		}
		err := p.take(ctx, live, pull, applied)
		p.logError(ctx, pull.Number, err)
		if ctx.Err() != nil || sources.RetryAfter(err) > 0 {
			return err
		}
	}
	return nil
}

// turns are the pull requests that are due, in the order in which they are planned: those
// first that have not been planned yet or longest ago, those that failed or took long behind
// others. However many come from forks, they have one place of a round and what is left.
func (p *Pulls) turns(open []forge.Pull, applied string) []forge.Pull {
	due := slices.DeleteFunc(slices.Clone(open), func(pull forge.Pull) bool { return !p.isDue(pull, applied) })
	slices.SortStableFunc(due, func(a, b forge.Pull) int { return p.known[a.Number].turn.Compare(p.known[b.Number].turn) })
	var own, forks []forge.Pull
	for _, pull := range due {
		if pull.Fork {
			forks = append(forks, pull)
		} else {
			own = append(own, pull)
		}
	}
	turns := append(own[:min(len(own), pullsPerRound-min(len(forks), 1))], forks...)
	return turns[:min(len(turns), pullsPerRound)]
}

// isDue reports whether a pull request should be planned now.
func (p *Pulls) isDue(pull forge.Pull, applied string) bool {
	known, was := p.known[pull.Number]
	switch {
	case pull.Draft, pull.Fork && !p.forks:
		return false
	case !was || known.head != pull.Head:
		return true
	case known.failed > 0:
		return !p.now().Before(known.turn)
	}
	return known.relevant && (known.applied != applied || p.now().Sub(known.at) > maxPlanAge)
}

// take gives a pull request its turn, and notes when the next one is.
func (p *Pulls) take(ctx context.Context, live Live, pull forge.Pull, applied string) error {
	begun := p.now()
	err := p.propose(ctx, live, pull, applied)
	known, now := p.known[pull.Number], p.now()
	rest := slowRest * now.Sub(begun)
	if err != nil {
		rest += min(failRest<<min(known.failed, 10), maxFailRest)
		known.head = pull.Head
		known.failed++
	}
	known.turn = now.Add(rest)
	p.known[pull.Number] = known
	return err
}

// logError logs each error once about a pull request, or about the list of them (0).
func (p *Pulls) logError(ctx context.Context, number int, err error) {
	key := strconv.Itoa(number)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		p.said.Forget(key)
	case p.said.Changed(key, "error", err.Error()):
		p.log.WarnContext(ctx, "planning pull requests failed, will retry", "number", number, "error", err.Error())
	}
}

// forgetClosed drops what is known of closed pull requests.
func (p *Pulls) forgetClosed(open []forge.Pull) {
	isOpen := func(number int) bool {
		return slices.ContainsFunc(open, func(pull forge.Pull) bool { return pull.Number == number })
	}
	maps.DeleteFunc(p.known, func(number int, _ planned) bool { return !isOpen(number) })
	p.mu.Lock()
	maps.DeleteFunc(p.plans, func(number int, _ PullPlan) bool { return !isOpen(number) })
	p.mu.Unlock()
	p.said.Retain(func(key string) bool {
		number, _ := strconv.Atoi(key)
		return number == 0 || isOpen(number)
	})
}

// propose plans one pull request, and comments on it. Anyone who may open one writes what
// it reads, so that even a panic does not end the daemon.
func (p *Pulls) propose(ctx context.Context, live Live, pull forge.Pull, applied string) error {
	var report *preview.Report
	err := contain.Run(func() (err error) {
		report, err = p.report(ctx, live, pull, applied)
		return err
	})
	if contain.Panicked(err) {
		return fmt.Errorf("plan pull request %d: %w", pull.Number, err)
	}
	if err != nil {
		return err
	}
	now := planned{head: pull.Head, applied: applied, at: p.now(), relevant: report != nil}
	p.setPlan(PullPlan{pull.Number, pull.Head, now.at, report})
	write, before := p.host.Comment, p.known[pull.Number]
	if report == nil && (before.relevant || before.at.IsZero()) {
		// It has reverted everything, perhaps since an earlier process commented on it.
		write, report = p.host.Amend, preview.NewReport(schema.Set{})
	}
	if report != nil {
		ctx, cancel := context.WithTimeout(ctx, p.timeout)
		defer cancel()
		if err := write(ctx, pull.Number, "<!-- "+p.marker+" ", p.comment(report)); err != nil {
			return err
		}
	}
	p.known[pull.Number] = now
	return nil
}

// report returns what a pull request would do; nil if it changes no file that quorate
// reads.
func (p *Pulls) report(ctx context.Context, live Live, pull forge.Pull, applied string) (*preview.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	found, err := p.repository.FetchProposal(ctx, pull.Reference, applied)
	switch {
	case errors.Is(err, sources.ErrTooLarge), errors.Is(err, sources.ErrPathGone), errors.Is(err, sources.ErrRewritten):
		return notPlanned(err.Error()), nil
	case err != nil:
		return nil, err
	case sameFiles(found.Base.Files, found.Head.Files):
		return nil, nil
	}
	report, err := planProposal(ctx, live, found, p.bounds, p.options)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return notPlanned(fmt.Sprintf("that takes longer than %s; propose fewer changes at once, or see `quorate plan --offline`", p.timeout)), nil
	}
	return report, err
}

// notPlanned is the report on a pull request that cannot be planned, and why.
func notPlanned(why string) *preview.Report {
	report := preview.NewReport(schema.Set{Problems: []schema.Problem{{Message: "it cannot be planned: " + why}}})
	report.Count(0)
	return report
}

func sameFiles(a, b []sources.File) bool {
	return slices.EqualFunc(a, b, func(a, b sources.File) bool {
		return a.Path == b.Path && a.Unread == b.Unread && bytes.Equal(a.Data, b.Data)
	})
}

// comment formats the report as one comment.
func (p *Pulls) comment(report *preview.Report) string {
	const rest = "\nThe rest would be too long for one comment; `quorate plan` shows it.\n"
	parts := report.Markdown(preview.MarkdownOptions{Marker: p.marker, Limit: maxCommentBytes})
	if len(parts) > 1 {
		return parts[0] + rest
	}
	return parts[0]
}

// planProposal plans what a proposal changes in the clusters that run.
func planProposal(ctx context.Context, live Live, p sources.Proposal, bounds schema.Bounds, options preview.Options) (*preview.Report, error) {
	parser := &schema.Parser{Bounds: bounds} // most files are in both
	before, after := follow.Parse(parser, p.Base), follow.Parse(parser, p.Head)
	return preview.Proposal(ctx, live.Planner(), live.Desired(),
		preview.Revision{Set: before, Commit: p.Base.Commit}, preview.Revision{Set: after, Commit: p.Head.Commit}, options)
}
