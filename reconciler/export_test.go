package reconciler

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// MaxSilentConflicts is for tests.
const MaxSilentConflicts = changesUntold

// The parts of a pass, one by one, for tests.

func (r *Reconciler) Decide(ctx context.Context, c desired.Cluster) (*view, plan.Plan, error) {
	return r.decide(ctx, c)
}

func (r *Reconciler) Again(ctx context.Context, v *view, a action.Action) (*view, error) {
	return r.again(ctx, v, a)
}

func (r *Reconciler) CarryOut(ctx context.Context, v *view, s plan.Step) error {
	return r.carryOut(ctx, v, s)
}

func (r *Reconciler) Next(ctx context.Context) bool { return r.next(ctx) }

func (r *Reconciler) TakesPlace(v *view, a action.Action) bool { return r.takesPlace(v, a) }

func (r *Reconciler) FindOrphans() { r.findOrphans() }

func (r *Reconciler) WatchOrphans(ctx context.Context) { r.watchOrphans(ctx) }

func (r *Reconciler) Enqueue(key string) { r.enqueue(key) }

func (r *Reconciler) Queue() workqueue.TypedRateLimitingInterface[string] { return r.queue }

func (e *Executor) Note(ctx context.Context, v *view, edit func(*record.Record)) error {
	return e.note(ctx, v, edit)
}

func (e *Executor) NoteIf(ctx context.Context, v *view, edit func(*record.Record) bool) error {
	return e.noteIf(ctx, v, edit)
}

func (e *Executor) DeleteObject(ctx context.Context, v *view, a action.DeleteObject) error {
	return e.deleteObject(ctx, v, a)
}

func (e *Executor) ManifestOf(v *view, a action.TakeBackup) backup.Manifest {
	return e.manifestOf(v, a)
}

func (e *Executor) OfferBackup(ctx context.Context, v *view, g record.Recovering) error {
	return e.offerBackup(ctx, v, g)
}

func (e *Executor) Rest(ctx context.Context, g *record.Recovering, store backup.Store, a action.BeginRecovery, d schema.DecryptionSpec) error {
	return e.rest(ctx, g, store, a, d)
}

func (o *Observer) HostOfVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	return o.hostOfVolume(ctx, claim)
}

func (o *Observer) RenderWith(v *view, with manifests.Options) error { return o.renderWith(v, with) }

func (o *Observer) Rigidity(ctx context.Context, class string) (string, error) {
	return o.rigidity(ctx, class)
}

func (r *Reporter) ReportCorrection(v *view, a action.Action) { r.reportCorrection(v, a) }

func (m *Metrics) Corrected(c desired.Cluster, kind, manager string) { m.corrected(c, kind, manager) }

func (m *Metrics) CountFailure(c desired.Cluster) { m.failed(c) }

func (m *Metrics) Passes() prometheus.Histogram { return m.passes }

func (s *Scheduler) Effective(q desired.Backup) schema.Destination { return s.effective(q) }

func (s *Scheduler) FindStranger(ctx context.Context, q desired.Backup) (from backupSource, awaited string, err error) {
	return s.findStranger(ctx, q)
}

func (s *Scheduler) StrangerEndpoint(ctx context.Context, q desired.Backup) (e etcd.Endpoint, awaited string, err error) {
	return s.strangerEndpoint(ctx, q)
}

func (s *Scheduler) ReadRequest(ctx context.Context, q desired.Backup) (*keptRequest, error) {
	return s.readRequest(ctx, q)
}

func (s *Scheduler) NextRequest(ctx context.Context) bool { return s.nextRequest(ctx) }
