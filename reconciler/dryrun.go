package reconciler

import (
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler/report"
)

var errDryRun = errors.New("dry run: refusing to change anything")

// DryRun returns a Reconciler that plans for what Git does not say yet, such as a
// pull request. It sees what r's caches hold of Kubernetes and has all else of its
// own, what Git says, what was said, connections to members: nothing that it is
// asked leaves a trace in r. It refuses to change anything.
func (r *Reconciler) DryRun(members Members) *Reconciler {
	options := r.Options
	options.Lease = func() error { return errDryRun }
	options.CheckHosts = nil // nor does a pull request have anything asked
	dry := r.With(options, members, &eventrecord.FakeRecorder{}, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	// What is not followed yet names no place that the daemon's credentials go to.
	dry.Observer.Choose = nil
	dry.shutDown() // nothing is ever queued
	return dry
}

// With returns a Reconciler with other options that sees what r's caches hold, and has
// everything else its own.
func (r *Reconciler) With(o Options, members Members, events eventrecord.EventRecorder, metrics *report.Metrics, log *slog.Logger) *Reconciler {
	next := wire(r.kube, r.cache, r.copies, members, events, metrics, log, o.withDefaults())
	next.filled.Store(r.filled.Load())
	return next
}
