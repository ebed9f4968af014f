package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// Parse reads the files of a snapshot, those that the parser does not know.
func Parse(p *schema.Parser, s sources.Snapshot) schema.Set {
	files := make([]schema.File, len(s.Files))
	for i, f := range s.Files {
		files[i] = schema.File{Path: f.Path, Data: f.Data}
	}
	return p.Parse(files)
}

// Config says what is followed, and how.
type Config struct {
	// Repository is read again and again, Interval is the time between two reads.
	Repository *sources.Repository
	Interval   time.Duration
	// Limits bound what one commit may change without an approval.
	Limits Limits
	// Approved is the hash of a commit that a person has approved; "" for none.
	Approved string
	// Kube and Namespace are where the accepted commit is stored, Instance is the
	// daemon's --instance.
	Kube                kubernetes.Interface
	Namespace, Instance string
}

// Poller brings what Git says to the reconciler.
type Poller struct {
	repository *sources.Repository
	store      store
	interval   time.Duration
	limits     Limits
	approved   string // a commit that a person has approved
	log        *slog.Logger
	// read is set once a commit has been read, or the one that was kept.
	read atomic.Bool
	// shown is what others than the poll may know.
	shown shownGit
	// wake makes the next look come now.
	wake chan struct{}

	lastSuccess prometheus.Gauge
	failures    prometheus.Gauge
	problems    prometheus.Gauge
	held        *prometheus.GaugeVec

	parser   schema.Parser
	accepted *accepted // what was accepted last; nil before anything was
	loaded   bool      // whether the cluster was asked for it
	failed   int       // looks since the last good one
	said     string
	// tooMuch is a commit that is held because it changes many clusters.
	tooMuch struct {
		commit string
		err    error
	}
}

// The reasons of quorate_git_held.
const (
	heldHistory   = "history"
	heldSignature = "signature"
	heldMass      = "mass-change"
)

// New prepares a Poller, which has read nothing yet.
func New(c Config, log *slog.Logger, registry prometheus.Registerer) *Poller {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_" + name, Help: help})
		registry.MustRegister(g)
		return g
	}
	p := &Poller{
		repository: c.Repository, interval: c.Interval, limits: c.Limits, approved: c.Approved, log: log,
		store:       newStore(c.Kube, c.Namespace, c.Instance, c.Repository.Source()),
		wake:        make(chan struct{}, 1),
		lastSuccess: gauge("git_last_success_timestamp_seconds", "When the repository was last read, as Unix time."),
		failures:    gauge("git_consecutive_failures", "Reads of the repository that have failed since the last success."),
		problems:    gauge("git_file_errors", "Errors in the files of the last commit that was read."),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quorate_git_held", Help: "1 while a commit waits for a person's approval: for its history, a signature, or because it changes many clusters at once.",
		}, []string{"reason"}),
	}
	registry.MustRegister(p.held)
	p.setHeld("")
	return p
}

// Ready reports whether a commit is in force.
func (p *Poller) Ready() bool { return p.read.Load() }

// State is what is known of the repository.
func (p *Poller) State() State { return p.shown.get() }

// Target takes what the commit in force declares.
type Target interface {
	SetDesired(clusters []desired.Cluster)
	SetNeeded(needed map[string]string, doubt string)
	SetBackups(backups []desired.Backup)
}

// Run reads the repository again and again. While it cannot be read, what the
// last good commit said goes on.
func (p *Poller) Run(ctx context.Context, r Target) {
	for {
		asked := p.Once(ctx, r)
		timer := time.NewTimer(Pause(p.interval, p.failed, asked, rand.Float64()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-p.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Wake makes the next look come now.
func (p *Poller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Once reads the repository once. It returns how long the server wants to be
// left alone.
func (p *Poller) Once(ctx context.Context, r Target) time.Duration {
	err := p.look(ctx, r)
	switch {
	case ctx.Err() != nil:
		return 0
	case err == nil:
		p.setHeld("")
		if p.failed > 0 {
			p.log.Info("git is read again", "failures", p.failed)
		}
		p.failed, p.said = 0, ""
		p.shown.change(func(g *State) { g.Held, g.HeldCommit = "", "" })
		p.lastSuccess.SetToCurrentTime()
	default:
		p.fail(ctx, r, err)
	}
	p.failures.Set(float64(p.failed))
	return sources.RetryAfter(err)
}

// look follows the head, if it may be followed.
func (p *Poller) look(ctx context.Context, r Target) error {
	if !p.loaded {
		found, err := p.store.load(ctx)
		if err != nil {
			return err
		}
		p.accepted, p.loaded = found, true
	}
	err := p.follow(ctx, r)
	if reasonOf(err) == "" {
		return err
	}
	// A person may have approved it meanwhile.
	approved, askErr := p.store.approved(ctx)
	if askErr != nil || approved == "" || approved == p.approved {
		return errors.Join(err, askErr)
	}
	p.approved = approved
	return p.follow(ctx, r)
}

// follow reads the head and hands it on where it is new.
func (p *Poller) follow(ctx context.Context, r Target) error {
	trust := sources.Trust{Approved: p.approved}
	if p.accepted != nil {
		trust.Applied = p.accepted.snapshot.Commit
	}
	s, err := p.repository.FetchAfter(ctx, trust)
	switch {
	case err != nil:
		return err
	case p.accepted != nil && p.read.Load() && s.Commit == p.accepted.snapshot.Commit:
		return nil
	}
	if p.tooMuch.commit == s.Commit && s.Commit != p.approved {
		return p.tooMuch.err
	}
	next, set := p.parse(s)
	if err := p.checkMass(next); err != nil {
		p.tooMuch.commit, p.tooMuch.err = s.Commit, err
		return err
	}
	whole, err := p.store.save(ctx, next)
	if err != nil {
		return err
	}
	if !whole {
		p.log.Warn("the files are too large to be kept in the cluster", "commit", s.Commit, "message", "a daemon that starts while Git cannot be read waits for it")
	}
	if p.accepted == nil || !p.read.Load() || s.Tree != p.accepted.snapshot.Tree {
		p.take(next, set, r)
	}
	p.accepted = &next
	p.shown.change(func(g *State) { g.Commit = next.snapshot.Commit })
	return nil
}

// parse says what a commit asks for, after the one that was accepted last.
func (p *Poller) parse(s sources.Snapshot) (accepted, schema.Set) {
	set := Parse(&p.parser, s)
	next := accepted{snapshot: s, clusters: desired.Origins(set, p.seen())}
	var before []desired.Backup
	if p.accepted != nil {
		before = p.accepted.requests
	}
	next.requests = desired.Backups(set, s.Commit, before)
	return next, set
}

// errMass is a commit that changes too many clusters at once.
var errMass = errors.New("mass change")

// listedMost keeps a log line readable.
const listedMost = 100

// checkMass holds a commit that changes too many clusters, unless it is approved.
func (p *Poller) checkMass(next accepted) error {
	changes, tooMany := massChange(p.seen(), next.clusters, p.limits)
	if !tooMany || next.snapshot.Commit == p.approved {
		return nil
	}
	count := len(changes)
	if count > listedMost {
		changes = append(changes[:listedMost], fmt.Sprintf("and %d more", count-listedMost))
	}
	return fmt.Errorf("%w: commit %s removes, deletes or gives another version to %d of %d clusters at once: %s; revert it, or approve %[2]s if it is meant",
		errMass, next.snapshot.Commit, count, len(p.seen()), strings.Join(changes, ", "))
}

// seen are the clusters of the accepted commit.
func (p *Poller) seen() map[string]desired.Origin {
	if p.accepted == nil {
		return nil
	}
	return p.accepted.clusters
}

// shownFailures keeps a blip from being news.
const shownFailures = 3

// reasonOf is why a commit is held; "" for an error of another kind.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, sources.ErrRewritten):
		return heldHistory
	case errors.Is(err, sources.ErrUntrusted):
		return heldSignature
	case errors.Is(err, errMass):
		return heldMass
	}
	return ""
}

func (p *Poller) setHeld(reason string) {
	for _, each := range []string{heldHistory, heldSignature, heldMass} {
		value := 0.0
		if each == reason {
			value = 1
		}
		p.held.WithLabelValues(each).Set(value)
	}
}

// fail says once why the head is not followed. A commit that is held was read all
// the same, so it is no failure of the repository. What was accepted last stays in
// force: a daemon that has just started takes it from where it is kept.
func (p *Poller) fail(ctx context.Context, r Target, err error) {
	reason := reasonOf(err)
	p.setHeld(reason)
	if reason == "" {
		p.failed++
	} else {
		p.failed = 0
		p.lastSuccess.SetToCurrentTime()
	}
	if !p.read.Load() && p.accepted != nil && p.accepted.snapshot.Tree != "" {
		again, set := p.parse(p.accepted.snapshot)
		p.take(again, set, r)
	}
	text := err.Error()
	if reason != "" || p.failed >= shownFailures {
		p.shown.change(func(g *State) { g.Held, g.HeldCommit = text, p.toBlame(err) })
	}
	if text != p.said {
		p.said = text
		args := []any{"error", text, "message", "the last commit that was read stays in force"}
		if reason != "" {
			args = append(args, "held", reason, "approve", fmt.Sprintf("kubectl -n %s annotate --overwrite configmap %s %s=COMMIT, or --approve-commit", p.store.namespace, p.store.name, annotationApprove))
		}
		p.log.ErrorContext(ctx, "git", args...)
	}
}

// toBlame is the commit that cannot be followed because of what it is; "" where the
// server or the network is why.
func (p *Poller) toBlame(err error) string {
	switch {
	case errors.Is(err, errMass):
		return p.tooMuch.commit
	case errors.Is(err, sources.ErrUnreachable):
		return ""
	}
	return sources.HeadOf(err)
}

// take hands what a commit says to the reconciler.
func (p *Poller) take(next accepted, set schema.Set, r Target) {
	s, seen := next.snapshot, p.seen()
	set.Problems = append(set.Problems, desired.Unreadable(set, seen)...)
	p.problems.Set(float64(countErrors(set.Problems)))
	p.log.Info("commit", "commit", s.Commit, "subject", s.Subject, "author", s.Author, "clusters", len(set.Clusters), "held", len(set.Held))
	for _, skipped := range s.Skipped {
		p.log.Warn("skipped", "file", skipped)
	}
	for _, problem := range set.Problems {
		p.log.Warn("problem", "commit", s.Commit, "message", problem.String())
	}
	r.SetDesired(desired.Clusters(set, s.Commit, seen))
	p.shown.change(func(g *State) { g.Commit, g.Problems = s.Commit, texts(set.Problems) })
	r.SetNeeded(desired.Needed(set))
	r.SetBackups(next.requests)
	p.read.Store(true)
}

// countErrors leaves out the warnings.
func countErrors(problems []schema.Problem) int {
	errors := 0
	for _, p := range problems {
		if !p.Warning {
			errors++
		}
	}
	return errors
}
