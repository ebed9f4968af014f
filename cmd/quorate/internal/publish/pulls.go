package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/sources/forge"
)

// Pulls keeps a comment on each open pull request that says what it would do to the
// live clusters. It only looks: what it plans is never handed to the reconciler
// that acts. It runs beside the poll of the followed branch, which never waits for it.
type Pulls struct {
	host       PullHost
	repository *sources.Repository
	// branch is the followed one, and marker names the comments of this daemon.
	branch, marker string
	forks          bool
	interval       time.Duration
	// options are those of the reconciler that acts.
	options preview.Options
	git     func() follow.State
	log     *slog.Logger

	// known is what was planned; it saves work and decides nothing.
	known map[int]planned
	said  map[int]string
}

// PullHost is where pull requests are.
type PullHost interface {
	OpenPulls(ctx context.Context, base string) ([]forge.Pull, error)
	Comment(ctx context.Context, pull int, marker, text string) error
}

// planTimeout bounds the plan of one pull request.
const planTimeout = 2 * time.Minute

// planned is when a head was planned, and against which commit.
type planned struct {
	head, applied string
	at            time.Time
	// touches says that the head changes files that quorate reads.
	touches bool
}

const (
	// pullsMost are looked after, those that changed last.
	pullsMost = 100
	// pullsARound are planned at most in one round; the others have their turn next.
	pullsARound = 5
	// planAgain is how long a plan stands before it is made anew for the same head:
	// the clusters may have changed.
	planAgain = 5 * time.Minute
	// commentBytes is below the limit of every forge.
	commentBytes = 60000
)

// PullsConfig says which pull requests are planned, and how.
type PullsConfig struct {
	Host       PullHost
	Repository *sources.Repository
	// Branch is the followed one, Instance is the daemon's --instance.
	Branch, Instance string
	// Forks says that pull requests from forks are planned, too.
	Forks bool
	// Interval is the time between two rounds.
	Interval time.Duration
	// Options are those of the reconciler that acts.
	Options preview.Options
}

// NewPulls prepares what comments on pull requests.
func NewPulls(c PullsConfig, git func() follow.State, log *slog.Logger) *Pulls {
	return &Pulls{
		host: c.Host, repository: c.Repository, branch: c.Branch,
		marker: "quorate-pull-" + follow.Identity(c.Instance, c.Repository.Source()), forks: c.Forks,
		interval: c.Interval, options: c.Options, git: git, log: log,
		known: map[int]planned{}, said: map[int]string{},
	}
}

// Live is what is in force.
type Live interface {
	// Desired returns the clusters in force, by key.
	Desired() map[string]desired.Cluster
	// Planner returns a planner that sees the live clusters and changes nothing.
	Planner() preview.Planner
}

// Run looks at the pull requests again and again until ctx ends.
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

// Once looks at the pull requests once. One that fails keeps no other from its
// turn; where the forge wants to be left alone, the round ends.
func (p *Pulls) Once(ctx context.Context, live Live) error {
	applied := p.git().Commit
	if applied == "" {
		return nil
	}
	open, err := p.host.OpenPulls(ctx, p.branch)
	p.tell(ctx, 0, err)
	if err != nil {
		return err
	}
	p.forgetClosed(open)
	left := pullsARound
	for _, pull := range open[:min(len(open), pullsMost)] {
		if !p.isDue(pull, applied) {
			continue
		}
		left--
		if left < 0 {
			break
		}
		err := p.propose(ctx, live, pull, applied)
		p.tell(ctx, pull.Number, err)
		if ctx.Err() != nil || sources.RetryAfter(err) > 0 {
			return err
		}
	}
	return nil
}

// isDue says whether a pull request is to be planned now.
func (p *Pulls) isDue(pull forge.Pull, applied string) bool {
	known, was := p.known[pull.Number]
	switch {
	case pull.Draft, pull.Fork && !p.forks:
		return false
	case !was || known.head != pull.Head:
		return true
	}
	return known.touches && (known.applied != applied || time.Since(known.at) > planAgain)
}

// tell says once what is wrong with a pull request, or with the list of them.
func (p *Pulls) tell(ctx context.Context, number int, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		delete(p.said, number)
	case p.said[number] != err.Error():
		p.said[number] = err.Error()
		p.log.WarnContext(ctx, "pull request", "number", number, "error", err.Error(), "message", "it is tried again; what is in force does not depend on it")
	}
}

// forgetClosed drops what is known of pull requests that are over.
func (p *Pulls) forgetClosed(open []forge.Pull) {
	over := func(number int) bool {
		return number != 0 && !slices.ContainsFunc(open, func(pull forge.Pull) bool { return pull.Number == number })
	}
	maps.DeleteFunc(p.known, func(number int, _ planned) bool { return over(number) })
	maps.DeleteFunc(p.said, func(number int, _ string) bool { return over(number) })
}

// propose plans one pull request, and comments on it. What it reads is written by
// whoever may open one: not even a mistake in quorate that it finds ends the daemon.
func (p *Pulls) propose(ctx context.Context, live Live, pull forge.Pull, applied string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	defer func() {
		if mistake := recover(); mistake != nil {
			err = fmt.Errorf("plan pull request %d: quorate cannot cope with it (%v); please report this", pull.Number, mistake)
			p.known[pull.Number] = planned{head: pull.Head, applied: applied, at: time.Now()}
		}
	}()
	report, err := p.report(ctx, live, pull, applied)
	if err != nil {
		return err
	}
	now := planned{head: pull.Head, applied: applied, at: time.Now(), touches: report != nil}
	if report == nil && p.known[pull.Number].touches {
		report = preview.NewReport(schema.Set{}) // it has taken everything back
	}
	if report != nil {
		if err := p.host.Comment(ctx, pull.Number, "<!-- "+p.marker+" ", p.comment(report)); err != nil {
			return err
		}
	}
	p.known[pull.Number] = now
	return nil
}

// report is what a pull request would do; nil where it changes no file that is
// read.
func (p *Pulls) report(ctx context.Context, live Live, pull forge.Pull, applied string) (*preview.Report, error) {
	found, err := p.repository.FetchProposal(ctx, pull.Reference, applied)
	switch {
	case errors.Is(err, sources.ErrTooLarge), errors.Is(err, sources.ErrPathGone), errors.Is(err, sources.ErrRewritten):
		report := preview.NewReport(schema.Set{Problems: []schema.Problem{{Message: "it cannot be planned: " + err.Error()}}})
		report.Count(0)
		return report, nil
	case err != nil:
		return nil, err
	case sameFiles(found.Base.Files, found.Head.Files):
		return nil, nil
	}
	return planProposal(ctx, live, found, p.options)
}

func sameFiles(a, b []sources.File) bool {
	return slices.EqualFunc(a, b, func(a, b sources.File) bool { return a.Path == b.Path && bytes.Equal(a.Data, b.Data) })
}

// comment is the report as one comment.
func (p *Pulls) comment(report *preview.Report) string {
	const rest = "\nThe rest would be too long for one comment; `quorate plan` shows it.\n"
	parts := report.Markdown(preview.MarkdownOptions{Marker: p.marker, Limit: commentBytes})
	if len(parts) > 1 {
		return parts[0] + rest
	}
	return parts[0]
}

// planProposal plans, for the clusters that run, what a proposal changes.
func planProposal(ctx context.Context, live Live, p sources.Proposal, options preview.Options) (*preview.Report, error) {
	parser := &schema.Parser{} // most files are in both
	before, after := follow.Parse(parser, p.Base), follow.Parse(parser, p.Head)
	return preview.Proposal(ctx, live.Planner(), live.Desired(),
		preview.Revision{Set: before, Commit: p.Base.Commit}, preview.Revision{Set: after, Commit: p.Head.Commit}, options)
}
