package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"

	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// Request is an EtcdBackup or an EtcdBackupSchedule as Git has it.
type Request struct {
	// Metadata names it.
	Metadata schema.Metadata
	// Spec says what to back up, and where to.
	Spec schema.BackupRequest
	// Schedule is nil for a backup that is taken once.
	Schedule *schema.BackupScheduleSpec
	// Commit is the Git commit that says so.
	Commit string
	// Held says that the newest commit has errors about it, and that this is what
	// was last said well: backups go on, and nothing is removed.
	Held bool
}

// BackupOf is the request of an EtcdBackup.
func BackupOf(b schema.EtcdBackup, commit string) Request {
	return Request{Metadata: b.Metadata, Spec: b.Spec, Commit: commit}
}

// ScheduleOf is the request of an EtcdBackupSchedule.
func ScheduleOf(s schema.EtcdBackupSchedule, commit string) Request {
	return Request{Metadata: s.Metadata, Spec: s.Spec.BackupTemplate, Schedule: &s.Spec, Commit: commit}
}

// Kind is the kind of the document.
func (q Request) Kind() string {
	if q.Schedule != nil {
		return schema.KindBackupSchedule
	}
	return schema.KindBackup
}

// Name is namespace/name.
func (q Request) Name() string { return q.Metadata.Namespace + "/" + q.Metadata.Name }

// Key is kind namespace/name.
func (q Request) Key() string { return q.Kind() + " " + q.Name() }

// hash says which backup or schedule it is, beside the name.
func (q Request) hash() string {
	if q.Schedule != nil {
		return schema.ScheduleHash(*q.Schedule)
	}
	return schema.BackupHash(q.Spec)
}

// times is the part of a schedule that says when; "" for a single backup.
func (q Request) times() string {
	if q.Schedule == nil {
		return ""
	}
	return q.Schedule.Schedule + " " + q.Schedule.TimeZone
}

// due says whether a backup is to begin.
func (q Request) due(record requestRecord, now time.Time) (schedule.Due, error) {
	if q.Schedule != nil {
		return schedule.Next(*q.Schedule, q.Name(), record.past(), now)
	}
	_, taken := record.Done[q.hash()]
	return schedule.Once(record.past(), taken, now), nil
}

const (
	// lookAgain is the longest time between two looks at a schedule, so that a
	// clock that jumps delays no backup by more.
	lookAgain = 5 * time.Minute
	// placeWait is how long a backup waits before it asks for a place again.
	placeWait = 5 * time.Second
)

// requests is what the second loop works on: backups and schedules.
type requests struct {
	queue workqueue.TypedRateLimitingInterface[string]
	// drilling is held by who begins a restore drill, so that they are counted.
	drilling sync.Mutex
	// places are those of the backups that are taken at the same time, of whatever
	// cluster and for whatever reason.
	places chan struct{}
	// bandwidth of the backups that pass through this process together, nil for no
	// limit; share, in bytes a second, is that of a Job, 0 for no limit.
	bandwidth *rate.Limiter
	share     int64

	mu     sync.Mutex
	wished map[string]Request
	// needed are the backups that Git names, by URL, with who does.
	needed map[string]string
	// doubt is why Git may name more of them, or "".
	doubt string
}

func newRequests(o Options) *requests {
	q := &requests{
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](250*time.Millisecond, time.Minute)),
		places: make(chan struct{}, o.MaxBackups), wished: map[string]Request{},
	}
	q.bandwidth = backupLimit(o.BackupBandwidth)
	if o.BackupBandwidth > 0 {
		// Jobs know nothing of one another: each gets what is left for it when as
		// many run as may.
		q.share = max(1, o.BackupBandwidth/int64(o.MaxBackups))
	}
	return q
}

// SetRequests replaces what Git says of backups and schedules. For one that is no
// longer named no further backup is taken; those that were taken stay.
func (r *Reconciler) SetRequests(list []Request) {
	q := r.requests
	q.mu.Lock()
	defer q.mu.Unlock()
	next := make(map[string]Request, len(list))
	for _, request := range list {
		key := request.Key()
		next[key] = request
		if old, known := q.wished[key]; !known || old.hash() != request.hash() || old.Held != request.Held {
			q.queue.Add(key)
		}
	}
	for key, old := range q.wished {
		if _, named := next[key]; !named {
			r.forgetRequest(old)
		}
	}
	q.wished = next
}

// Requests returns what Git says of backups and schedules, by kind and name.
func (r *Reconciler) Requests() map[string]Request {
	r.requests.mu.Lock()
	defer r.requests.mu.Unlock()
	return maps.Clone(r.requests.wished)
}

// nextRequest makes one pass over the next request in the queue.
func (r *Reconciler) nextRequest(ctx context.Context) bool {
	q := r.requests
	key, shutdown := q.queue.Get()
	if shutdown {
		return false
	}
	defer q.queue.Done(key)
	q.mu.Lock()
	request, named := q.wished[key]
	q.mu.Unlock()
	if !named {
		q.queue.Forget(key)
		return true
	}
	wait, err := r.RequestPass(ctx, request)
	switch {
	case errors.Is(err, errChanged), ctx.Err() != nil:
		q.queue.AddAfter(key, Soon)
	case err != nil:
		r.reportRequestError(request, err)
		q.queue.AddRateLimited(key)
	default:
		r.statuses.succeeded(key)
		q.queue.Forget(key)
		q.queue.AddAfter(key, wait)
	}
	return true
}

// RequestPass looks at one backup or schedule, decides, and takes one step: it
// notes what is new, finishes what a killed quorate began, takes the backup that is
// due, restores the newest on trial, or removes those that nobody keeps. It returns how long until the next look.
func (r *Reconciler) RequestPass(ctx context.Context, q Request) (time.Duration, error) {
	k, err := r.readRequest(ctx, q)
	if err != nil {
		return 0, err
	}
	if k.record.begin(q, r.now()) {
		return 0, r.writeRequest(ctx, q, k)
	}
	r.metrics.requested(q, k.record, r.now())
	due, err := q.due(k.record, r.now())
	drill, errDrill := q.drillAt(k.record)
	r.noteRequest(q, k.record, due)
	switch begun := k.record.Begun; {
	case errDrill != nil:
		return 0, errDrill
	case err != nil:
		return 0, fmt.Errorf("%s: %w", q.Key(), err)
	case begun != nil && begun.Job != "" && !begun.Failed:
		return r.followTaking(ctx, q, k)
	case begun != nil && (!begun.Failed || due.Now):
		return 0, r.settle(ctx, q, k)
	case due.Now:
		return r.takeRequested(ctx, q, k, due)
	case k.record.Drill != nil:
		return r.followDrill(ctx, q, k)
	case !drill.IsZero() && !r.now().Before(drill):
		return r.beginDrill(ctx, q, k)
	case q.retains(k.record, r.now()): // what a drill has found is known by then
		return 0, r.retain(ctx, q, k)
	}
	r.reportDue(q, k, due)
	return r.untilLook(q, k.record, due, drill), nil
}

// untilLook is how long nothing is to be done.
func (r *Reconciler) untilLook(q Request, record requestRecord, due schedule.Due, drill time.Time) time.Duration {
	now, wait := r.now(), lookAgain
	if !due.Begins.IsZero() {
		wait = min(wait, due.Begins.Sub(now))
	}
	if drill.After(now) {
		wait = min(wait, drill.Sub(now))
	}
	if late := record.overdueAt(q, now); late.After(now) {
		wait = min(wait, late.Sub(now))
	}
	return max(wait, Soon)
}

// waitsFor says why a backup that is due does not begin, and looks again later.
func (r *Reconciler) waitsFor(q Request, why string, again time.Duration) (time.Duration, error) {
	if r.said.news(q.Key(), topicState, why) {
		r.log.Info("backup waits", "request", q.Key(), "cluster", q.clusterName(), "message", why)
	}
	return again, nil
}

// clusterName is the cluster for people.
func (q Request) clusterName() string {
	if q.Spec.Source.ClusterName != "" {
		return q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName
	}
	return cmp.Or(q.Spec.Source.ClusterURL, q.Name())
}
