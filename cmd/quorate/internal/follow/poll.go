package follow

import (
	"cmp"
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

	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// Config is what to follow, and how.
type Config struct {
	// Repository is polled, with Interval between two polls.
	Repository *sources.Repository
	Interval   time.Duration
	// Bounds are what the files may declare.
	Bounds schema.Bounds
	// Limits bound what one commit may change without an approval.
	Limits Limits
	// Approved is what a person has approved by a flag, which outlives the transition.
	Approved Approval
	// Kube and Namespace are where the accepted commit is stored. Instance is the
	// value of --instance.
	Kube                kubernetes.Interface
	Namespace, Instance string
	// Leads returns an error unless this process accepts commits now. While it does not, it
	// applies the one that another has accepted. Default: it always does.
	Leads func() error
	// Begin is called before each poll, and what it returns after it; nil for nothing.
	Begin func() (end func())
}

// Poller polls a repository and hands what its commits declare to a Target.
type Poller struct {
	repository *sources.Repository
	store      store
	interval   time.Duration
	limits     Limits
	approved   Approval // by the flag
	leads      func() error
	begin      func() (end func())
	log        *slog.Logger
	// inForce is set once a commit is applied, be it the stored one.
	inForce atomic.Bool
	// state is what other goroutines may read.
	state sharedState
	// wake ends the pause before the next poll.
	wake chan struct{}

	lastSuccess prometheus.Gauge
	failures    prometheus.Gauge
	problems    prometheus.Gauge
	held        *prometheus.GaugeVec
	fetches     prometheus.Histogram

	parser   schema.Parser
	accepted *accepted // the commit that was accepted last; nil before the first
	loaded   bool      // whether it was read from the ConfigMap
	failed   int       // polls since the last good one
	said     memo.Once // the error that was logged last
	// logged are the problems of the commit that was applied last.
	logged map[string]bool
	// tooManyChanges is the commit that is held because of how many clusters it changes.
	tooManyChanges struct {
		head sources.Head
		err  error
	}
}

// The reasons of quorate_git_held.
const (
	heldHistory        = "history"
	heldSignature      = "signature"
	heldTooManyChanges = "mass-change"
)

// New returns a Poller that has read nothing yet.
func New(c Config, log *slog.Logger, registry prometheus.Registerer) *Poller {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_" + name, Help: help})
		registry.MustRegister(g)
		return g
	}
	p := &Poller{
		repository: c.Repository, interval: c.Interval, parser: schema.Parser{Bounds: c.Bounds}, limits: c.Limits, approved: c.Approved, log: log,
		store:       newStore(c.Kube, c.Namespace, c.Instance, c.Repository.Source()),
		wake:        make(chan struct{}, 1),
		lastSuccess: gauge("git_last_success_timestamp_seconds", "When the repository was last read, as Unix time."),
		failures:    gauge("git_consecutive_failures", "Reads of the repository that have failed since the last success."),
		problems:    gauge("git_file_errors", "Errors in the files of the last commit that was read."),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quorate_git_held", Help: "1 while a commit waits for a person's approval: for its history, a signature, or because it changes many clusters at once.",
		}, []string{"reason"}),
		fetches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quorate_git_fetch_duration_seconds", Help: "How long one read of the repository took, whether it failed or not.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 30, 120},
		}),
	}
	if p.leads = c.Leads; p.leads == nil {
		p.leads = func() error { return nil }
	}
	if p.begin = c.Begin; p.begin == nil {
		p.begin = func() func() { return func() {} }
	}
	gauge("git_interval_seconds", "Time between two reads of the repository that are due, --interval.").Set(c.Interval.Seconds())
	registry.MustRegister(p.held, p.fetches)
	p.approved.By = "--approve-commit"
	p.setHeld("")
	return p
}

// Ready reports whether a commit is in force.
func (p *Poller) Ready() bool { return p.inForce.Load() }

// State returns what is known of the repository.
func (p *Poller) State() State { return p.state.get() }

// Details returns what is known of the repository, and of its last polls.
func (p *Poller) Details() Details {
	d := p.state.details()
	d.Source, d.Reference = p.repository.Source(), p.repository.Reference()
	if d.Reason != "" && d.HeldCommit != "" {
		d.Approve = p.approveCommand(Approval{From: d.Commit, To: d.HeldCommit})
	}
	return d
}

// Lasting returns for how long the poll under way has lasted; 0 between two polls. Each
// has an end: reading the repository takes --git-timeout at most.
func (p *Poller) Lasting(now time.Time) time.Duration {
	if since := p.state.since(); !since.IsZero() {
		return now.Sub(since)
	}
	return 0
}

// approveCommand returns the command that approves a transition.
func (p *Poller) approveCommand(a Approval) string {
	return fmt.Sprintf("kubectl -n %s annotate --overwrite configmap %s %s=%s", p.store.namespace, p.store.name, annotationApprove, a)
}

// Target receives what the commit in force declares.
type Target interface {
	SetDesired(clusters []desired.Cluster)
	SetNeeded(needed map[string]string, doubt string)
	SetBackups(backups []desired.Backup)
}

// Run polls until ctx ends. While the repository cannot be read, the last accepted
// commit stays in force.
func (p *Poller) Run(ctx context.Context, target Target) {
	for {
		wait := p.Once(ctx, target)
		timer := time.NewTimer(Pause(p.interval, p.failed, wait, rand.Float64()))
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

// Wake makes the next poll start now.
func (p *Poller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Once polls once. It returns how long the server asks to wait before the next poll.
func (p *Poller) Once(ctx context.Context, target Target) time.Duration {
	defer p.begin()()
	defer p.state.begin()()
	if p.leads() != nil {
		p.follow(ctx, target)
		return 0
	}
	err := contain.Run(func() error { return p.poll(ctx, target) })
	switch {
	case ctx.Err() != nil:
		return 0
	case err == nil:
		p.setHeld("")
		if p.failed > 0 {
			p.log.Info("repository reachable again", "failures", p.failed)
		}
		p.failed = 0
		p.said.Forget("repository")
		p.state.update(func(d *Details) {
			d.hold("", "", sources.Head{})
			d.LastSuccess = time.Now()
		})
		p.lastSuccess.SetToCurrentTime()
	default:
		p.fail(ctx, target, err)
	}
	p.state.update(func(d *Details) { d.Failures = p.failed })
	p.failures.Set(float64(p.failed))
	return sources.RetryAfter(err)
}

// poll accepts the head, unless it is held.
func (p *Poller) poll(ctx context.Context, target Target) error {
	if !p.loaded {
		found, err := p.store.load(ctx)
		if err != nil {
			return err
		}
		if p.inForce.Load() && (found == nil || found.snapshot.Commit != p.commit()) {
			p.inForce.Store(false) // it was accepted by another process a moment ago
		}
		if found == nil {
			found = p.accepted // the ConfigMap was deleted: what is in force is stored again
		}
		p.accepted, p.loaded = found, true
	}
	given := p.approved
	if p.accepted != nil && p.accepted.spent == given.String() {
		given = Approval{}
	}
	err := p.acceptHead(ctx, target, given)
	if reasonOf(err) == "" {
		return err
	}
	// It may have been approved since.
	given, readErr := p.store.approval(ctx)
	held := p.heldCommit(err).Commit // unknown where the keys for signatures cannot be read
	if to := given.at(p.commit()); readErr != nil || to == "" || held != "" && held != to {
		return errors.Join(err, readErr)
	}
	return p.acceptHead(ctx, target, given)
}

// acceptHead reads the head, and stores and applies it if it is new.
func (p *Poller) acceptHead(ctx context.Context, target Target, given Approval) error {
	inForce := p.commit()
	trust := sources.Trust{Applied: inForce, Tag: p.tag(), Approved: given.at(inForce)}
	began := time.Now()
	s, err := p.repository.FetchAfter(ctx, trust)
	p.fetches.Observe(time.Since(began).Seconds())
	switch {
	case err != nil:
		return err
	case s.Commit == inForce:
		if p.inForce.Load() && s.Tag == trust.Tag {
			return nil
		}
		s.Signer = p.accepted.snapshot.Signer // it was verified when it was accepted, and not again
	}
	if p.tooManyChanges.head.Commit == s.Commit && s.Commit != trust.Approved {
		return p.tooManyChanges.err
	}
	approved := s.Commit == trust.Approved && (s.Commit != inForce || s.Tag != trust.Tag)
	if !approved {
		given = Approval{}
	}
	next, set := p.parse(s, given)
	if err := p.checkChanges(next, trust.Approved); err != nil {
		p.tooManyChanges.head, p.tooManyChanges.err = sources.Head{Commit: s.Commit, Subject: s.Subject, Author: s.Author, When: s.When}, err
		return err
	}
	if err := p.leads(); err != nil {
		return err
	}
	whole, err := p.store.save(ctx, next, inForce)
	if errors.Is(err, errOvertaken) {
		p.loaded = false
	}
	if err != nil {
		return err
	}
	if !whole {
		p.log.Warn("files too large to save: a restart while Git is unreachable waits until it is reachable", "commit", s.Commit)
	}
	if approved {
		p.log.Warn("approval used", "approval", next.approval.String(), "by", next.approval.By)
	}
	said := newsAccepted
	if p.accepted != nil && p.inForce.Load() && s.Tree == p.accepted.snapshot.Tree {
		said = noNews // it changes no file that is read, and clusters are still to be checked against it
	}
	p.apply(next, set, target, said)
	p.accepted = &next
	p.tooManyChanges.head = sources.Head{} // it was measured against the one before
	p.state.update(func(d *Details) { d.accept(next) })
	return nil
}

// parse reads what a commit declares, given the commit that was accepted last, and the
// approval that is used for it; none for none.
func (p *Poller) parse(s sources.Snapshot, used Approval) (accepted, schema.Set) {
	set := Parse(&p.parser, s)
	next := accepted{snapshot: s, clusters: desired.Origins(set, p.clusters()), approval: used}
	var before []desired.Backup
	if was := p.accepted; was != nil {
		before, next.spent = was.backups, was.spent
		if used.To == "" && was.snapshot.Commit == s.Commit {
			next.approval = was.approval
		}
	}
	if p.approved.To == s.Commit {
		next.spent = p.approved.String()
	}
	next.backups = desired.Backups(set, s.Commit, before)
	for i := range next.backups {
		if q := &next.backups[i]; !q.Held { // one that is held is what an earlier commit declared
			q.Accepted = next.acceptance()
		}
	}
	return next, set
}

// Parse parses the files of a snapshot that p has not parsed before.
func Parse(p *schema.Parser, s sources.Snapshot) schema.Set {
	files := make([]schema.File, len(s.Files))
	for i, f := range s.Files {
		files[i] = schema.File{Path: f.Path, Data: f.Data, Unread: f.Unread}
	}
	return p.Parse(files)
}

// errTooManyChanges holds a commit that changes too many clusters at once.
var errTooManyChanges = errors.New("mass change")

// maxListed keeps a log line readable.
const maxListed = 100

// checkChanges holds a commit that changes too many clusters, unless it is approved.
func (p *Poller) checkChanges(next accepted, approved string) error {
	changes, tooMany := changedClusters(p.clusters(), next.clusters, p.limits)
	if !tooMany || next.snapshot.Commit == approved {
		return nil
	}
	count := len(changes)
	if count > maxListed {
		changes = append(changes[:maxListed], fmt.Sprintf("and %d more", count-maxListed))
	}
	return fmt.Errorf("%w: commit %s removes, deletes, hibernates or changes the version, image, security context or storage of %d of %d clusters at once: %s; revert it, or approve %[2]s if it is intended",
		errTooManyChanges, next.snapshot.Commit, count, len(p.clusters()), strings.Join(changes, ", "))
}

// commit returns the commit that was accepted last; "" for none.
func (p *Poller) commit() string {
	if p.accepted == nil {
		return ""
	}
	return p.accepted.snapshot.Commit
}

// tag returns the tag by which that commit was accepted; none where that is not known.
func (p *Poller) tag() sources.Tag {
	if p.accepted == nil {
		return sources.Tag{}
	}
	return p.accepted.snapshot.Tag
}

// clusters returns the clusters of the accepted commit.
func (p *Poller) clusters() map[string]desired.Origin {
	if p.accepted == nil {
		return nil
	}
	return p.accepted.clusters
}

// minShownFailures keeps a single failure off the status page.
const minShownFailures = 3

// reasonOf returns why a commit is held; "" for an error of another kind.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, sources.ErrRewritten):
		return heldHistory
	case errors.Is(err, sources.ErrUntrusted):
		return heldSignature
	case errors.Is(err, errTooManyChanges):
		return heldTooManyChanges
	}
	return ""
}

func (p *Poller) setHeld(reason string) {
	for _, each := range []string{heldHistory, heldSignature, heldTooManyChanges} {
		value := 0.0
		if each == reason {
			value = 1
		}
		p.held.WithLabelValues(each).Set(value)
	}
}

// fail logs each reason once why the head is not accepted. A commit that is held was
// read, so that is no failure of the repository. The commit that was accepted last stays
// in force: a daemon that has just started applies the stored one.
func (p *Poller) fail(ctx context.Context, target Target, err error) {
	reason := reasonOf(err)
	p.setHeld(reason)
	if reason == "" {
		p.failed++
	} else {
		p.failed = 0
		p.state.update(func(d *Details) { d.LastSuccess = time.Now() })
		p.lastSuccess.SetToCurrentTime()
	}
	if !p.inForce.Load() && p.accepted != nil && p.accepted.snapshot.Tree != "" {
		again, set := p.parse(p.accepted.snapshot, Approval{})
		p.apply(again, set, target, newsAccepted)
	}
	text := err.Error()
	if reason != "" || p.failed >= minShownFailures {
		p.state.update(func(d *Details) { d.hold(text, reason, p.heldCommit(err)) })
	}
	if !p.said.Changed("repository", "error", text) {
		return
	}
	if reason == "" {
		p.log.ErrorContext(ctx, "fetch failed", "error", text)
		return
	}
	approve := p.approveCommand(Approval{From: p.commit(), To: cmp.Or(p.heldCommit(err).Commit, "COMMIT")})
	p.log.WarnContext(ctx, "commit held", "error", text, "reason", reason, "remedy", "approve it: "+approve+", or --approve-commit")
}

// heldCommit returns the commit that is the cause of err; none if the server or the
// network is.
func (p *Poller) heldCommit(err error) sources.Head {
	switch {
	case errors.Is(err, errTooManyChanges):
		return p.tooManyChanges.head
	case errors.Is(err, sources.ErrUnreachable):
		return sources.Head{}
	}
	return sources.HeadOf(err)
}

// news is what the log says of a commit that is applied: nothing, or that this process has accepted it, or another one.
type news int

const (
	noNews news = iota
	newsAccepted
	newsFollowed
)

// apply hands what a commit declares to the target, and logs that.
func (p *Poller) apply(next accepted, set schema.Set, target Target, said news) {
	s, before := next.snapshot, p.clusters()
	set.Problems = append(set.Problems, desired.Unreadable(set, before)...)
	p.problems.Set(float64(countErrors(set.Problems)))
	p.logCommit(said, s, set)
	p.logProblems(s.Commit, set.Problems)
	clusters := desired.Clusters(set, s.Commit, before)
	for i := range clusters {
		clusters[i].Accepted = next.acceptance()
	}
	target.SetDesired(clusters)
	p.state.update(func(d *Details) {
		d.accept(next)
		d.Problems = texts(set.Problems)
	})
	target.SetNeeded(desired.Needed(set))
	target.SetBackups(next.backups)
	p.inForce.Store(true)
}

// logCommit logs that a commit is applied, whose it is, and what of it is not read.
func (p *Poller) logCommit(said news, s sources.Snapshot, set schema.Set) {
	if said == noNews {
		return
	}
	log := p.log
	for _, known := range []struct{ key, value string }{{"signer", s.Signer}, {"tag", s.Tag.Name}, {"tagSigner", s.Tag.Signer}} {
		if known.value != "" {
			log = log.With(known.key, known.value)
		}
	}
	log = log.With("commit", s.Commit, "subject", s.Subject, "author", s.Author, "clusters", len(set.Clusters), "held", len(set.Held))
	if said == newsAccepted {
		log.Info("commit accepted")
	} else {
		log.Info("commit followed")
	}
	for _, skipped := range s.Skipped {
		p.log.Warn("manifest skipped", "file", skipped)
	}
}

// logProblems logs those that the commit before did not have.
func (p *Poller) logProblems(commit string, problems []schema.Problem) {
	logged := make(map[string]bool, len(problems))
	for _, problem := range problems {
		text := problem.String()
		if logged[text] = true; !p.logged[text] {
			p.log.Warn("problem in a manifest", "commit", commit, "problem", text)
		}
	}
	p.logged = logged
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
