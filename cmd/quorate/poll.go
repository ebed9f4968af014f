package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/sources"
)

// poller brings what Git says to the reconciler.
type poller struct {
	repository *sources.Repository
	interval   time.Duration
	log        *slog.Logger
	// read is set once a commit has been read.
	read atomic.Bool

	lastSuccess prometheus.Gauge
	failures    prometheus.Gauge
	problems    prometheus.Gauge

	tree, said string
	seen       map[string]origin
	requests   []asked
}

func newPoller(f *runFlags, log *slog.Logger, registry prometheus.Registerer) (*poller, error) {
	if f.repository.config.URL == "" {
		return nil, errors.New("say with --repo which Git repository to follow")
	}
	repository, err := f.repository.open(f.kube.connect)
	if err != nil {
		return nil, err
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_" + name, Help: help})
		registry.MustRegister(g)
		return g
	}
	return &poller{
		repository: repository, interval: f.interval, log: log,
		lastSuccess: gauge("git_last_success_timestamp_seconds", "When the repository was last read, as Unix time."),
		failures:    gauge("git_consecutive_failures", "Reads of the repository that have failed since the last success."),
		problems:    gauge("git_file_errors", "Errors in the files of the last commit that was read."),
	}, nil
}

// poll reads the repository again and again. While it cannot be read, what the
// last good commit said goes on.
func (p *poller) poll(ctx context.Context, r *reconciler.Reconciler) {
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for {
		p.once(ctx, r)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// once reads the repository once.
func (p *poller) once(ctx context.Context, r *reconciler.Reconciler) {
	s, err := p.repository.Fetch(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.failures.Inc()
		if text := err.Error(); text != p.said {
			p.said = text
			p.log.Error("git", "error", text, "message", "the last commit that was read stays in force")
		}
		return
	}
	p.failures.Set(0)
	p.lastSuccess.SetToCurrentTime()
	p.said = ""
	if p.read.Load() && s.Tree == p.tree {
		return
	}
	p.take(s, r)
}

// take hands a commit with changed files to the reconciler.
func (p *poller) take(s sources.Snapshot, r *reconciler.Reconciler) {
	set := parse(s)
	set.Problems = append(set.Problems, remains(set, p.seen)...)
	_, failed := countProblems(set.Problems)
	p.problems.Set(float64(failed))
	p.log.Info("commit", "commit", s.Commit, "subject", s.Subject, "author", s.Author, "clusters", len(set.Clusters), "held", len(set.Held))
	for _, skipped := range s.Skipped {
		p.log.Warn("skipped", "file", skipped)
	}
	for _, problem := range set.Problems {
		p.log.Warn("problem", "commit", s.Commit, "message", problem.String())
	}
	r.SetDesired(wishes(set, s.Commit, p.seen))
	p.requests = requests(set, s.Commit, p.requests)
	r.SetNeeded(neededBy(set))
	r.SetRequests(requestsOf(p.requests))
	p.seen = origins(set, p.seen)
	p.tree = s.Tree
	p.read.Store(true)
}
