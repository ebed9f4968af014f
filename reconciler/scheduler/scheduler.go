package scheduler

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

// Members gives backups; etcd.Client does.
type Members interface {
	// Round looks at every member once, and compares hashes where it is deep.
	Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round
	// Snapshot streams the member's database. The caller closes it.
	Snapshot(ctx context.Context, cluster string, member etcd.Target) (io.ReadCloser, error)
	// Forget closes what is kept for a cluster.
	Forget(cluster string)
}

// Clusters is what Git says of clusters.
type Clusters interface {
	Get(key string) (c desired.Cluster, named bool)
	Desired() map[string]*desired.Cluster
}

// Parts are what a Scheduler works with.
type Parts struct {
	Kube     kubernetes.Interface
	Cache    *observe.Cache
	Observer *observe.Observer
	Clusters Clusters
	Reporter *report.Reporter
	Stores   stores.Stores
	Slots    *slots.Slots
	Jobs     jobs.Client
	Members  Members
	// Enter begins work on a cluster, by namespace/name, or what stands for it in
	// desired.Backup.ClusterName; mine is false where another process does that.
	Enter func(ctx context.Context, cluster string) (entered context.Context, leave func(), mine bool)
	// Mine reports whether Enter would let in.
	Mine func(cluster string) bool
	// Lease returns an error unless something of the cluster may be changed.
	Lease   func(cluster string) error
	Now     func() time.Time
	Log     *slog.Logger
	Options Options
}

// Scheduler takes the backups that Git asks for.
type Scheduler struct {
	Parts
	queue queue.Queue
	// turns are those of the namespaces whose backups wait for a place.
	turns slots.Turns
	// starting are the restore drills that are being started, and not counted yet.
	starting atomic.Int32

	// telling guards told, and is held while what is overdue is told: told is the last
	// that is known of each schedule's record, for people. It decides nothing.
	telling sync.Mutex
	told    map[string]Record

	mu sync.Mutex
	// desired is replaced, and never changed.
	desired map[string]desired.Backup
	// needed are the backups that Git names, by URL, with what names them.
	needed map[string]string
	// doubt is why Git may name more of them, or "".
	doubt string
}

// New returns a Scheduler that Git has asked for nothing yet.
func New(parts Parts) *Scheduler {
	return &Scheduler{Parts: parts, queue: queue.New(250 * time.Millisecond), turns: slots.Turns{Grace: turnKept}, told: map[string]Record{}}
}

// Run takes backups with so many workers until ShutDown is called, and returns when
// those that were being taken have ended.
func (s *Scheduler) Run(ctx context.Context, workers int) {
	telling, ended := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.watchOverdue(telling) })
	s.queue.Run(ctx, workers, handler{s})
	ended()
	watch.Wait()
}

// Waiting is how many backups and schedules wait for a worker.
func (s *Scheduler) Waiting() int { return s.queue.Len() }

// ShutDown lets Run end.
func (s *Scheduler) ShutDown() { s.queue.ShutDown() }

// Motionless returns for how long no pass over a backup or schedule has moved.
func (s *Scheduler) Motionless(now time.Time) time.Duration { return s.queue.Motionless(now) }

// handler makes the passes over the queue's keys.
type handler struct{ *Scheduler }

// Pass implements queue.Handler.
func (h handler) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	q, named := h.get(key)
	if !named {
		return 0, false, nil
	}
	ctx, leave, mine := h.Enter(ctx, q.ClusterName())
	if !mine {
		return 0, false, nil // Take adds it again
	}
	defer leave()
	defer h.forgetFormer(q)
	wait, err := h.Scheduler.Pass(ctx, q)
	return wait, true, err
}

// forgetFormer drops what a pass has noted, as a backup takes its time, of what a commit took out or
// gave to another cluster meanwhile.
func (h handler) forgetFormer(q desired.Backup) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch is, named := h.desired[q.Key()]; {
	case !named:
		h.forgetRequest(q)
	case is.Spec.Source.ClusterName != q.Spec.Source.ClusterName:
		h.Reporter.Metrics.Backups.Forget(q)
	}
}

// Failed implements queue.Handler.
func (h handler) Failed(key string, err error) {
	if q, named := h.get(key); named {
		h.reportRequestError(q, err)
	}
}

// Succeeded implements queue.Handler.
func (h handler) Succeeded(key string) {
	h.Reporter.Board.Succeeded(key)
	if q, named := h.get(key); named {
		h.Reporter.Metrics.Backups.Passed(q)
	}
}

// get is the backup or schedule of a key, if Git names it.
func (s *Scheduler) get(key string) (q desired.Backup, named bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, named = s.desired[key]
	return q, named
}

// Options are the daemon's settings.
type Options struct {
	Owner     state.Owner
	Render    manifests.Options
	BackupURL string
	Runner    Runner
	MaxDrills int
	Resync    time.Duration
}

// due reports whether a backup is to begin.
func dueOf(q desired.Backup, rec Record, now time.Time) (schedule.Due, error) {
	if q.Schedule != nil {
		return schedule.Next(*q.Schedule, q.Name(), rec.past(), now)
	}
	_, taken := rec.Done[q.Hash()]
	return schedule.Once(rec.past(), taken, now), nil
}

const (
	// lookAgain is the longest time between two looks at a schedule, so that a
	// clock that jumps delays no backup by more.
	lookAgain = 5 * time.Minute
	// placeWait is how long a backup waits before it asks for a place again.
	placeWait = 5 * time.Second
	// turnKept is how long the turn of a namespace is kept: two of its tries may be late.
	turnKept = 3 * placeWait
)

// SetDesired replaces what Git says of backups and schedules. For one that is no
// longer named no further backup is taken; those that were taken stay.
func (s *Scheduler) SetDesired(list []desired.Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]desired.Backup, len(list))
	for _, request := range list {
		key := request.Key()
		next[key] = request
		if old, known := s.desired[key]; !known || !desired.SameBackup(old, request) {
			s.queue.Add(key)
		}
	}
	for key, old := range s.desired {
		request, named := next[key]
		switch {
		case !named && s.Mine(old.ClusterName()):
			s.forgetRequest(old)
			s.Log.Info("backup is not in Git any more", "request", old.Key(), "cluster", old.ClusterName())
		case !named, !s.Mine(request.ClusterName()):
			s.forgetRequest(old)
		case request.Spec.Source.ClusterName != old.Spec.Source.ClusterName:
			s.Reporter.Metrics.Backups.Forget(old) // its series have the name of another cluster
		}
	}
	for _, request := range list {
		if s.Mine(request.ClusterName()) {
			s.Reporter.Metrics.Backups.Begin(request)
		}
	}
	s.desired = next
}

// Reassigned begins with the backups and schedules of clusters that have become this process's,
// or drops what is known of those that are not this process's any more.
func (s *Scheduler) Reassigned(of func(cluster string) bool, mine bool) {
	s.tellOverdue() // of those that are not, no more
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, q := range s.desired {
		switch {
		case !of(q.ClusterName()):
		case mine:
			s.Reporter.Metrics.Backups.Begin(q)
			s.queue.Add(key)
		default:
			s.forgetRequest(q)
		}
	}
}

// Backups returns what Git says of backups and schedules, by kind and name. It is shared, and never
// changed.
func (s *Scheduler) Backups() map[string]desired.Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.desired
}

// Pass looks at one backup or schedule, decides, and takes one step: it
// notes what is new, finishes what a killed quorate began, takes the backup that is
// due, restores the newest on trial, or removes those that no rule keeps.
// It returns how long until the next pass.
func (s *Scheduler) Pass(ctx context.Context, q desired.Backup) (wait time.Duration, err error) {
	k, err := s.readRequest(ctx, q)
	if err != nil {
		return 0, err
	}
	err = contain.Run(func() (err error) {
		wait, err = s.step(ctx, q, k)
		return err
	})
	if contain.Panicked(err) && k.live != nil {
		s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "Failed", report.Shorten(err.Error()))
	}
	return wait, err
}

// step takes the one step of a pass.
func (s *Scheduler) step(ctx context.Context, q desired.Backup, k *kept) (time.Duration, error) {
	if k.record.begin(q, s.Now()) || k.disbelieved {
		return 0, s.writeRequest(ctx, q, k)
	}
	s.measure(q, k.record)
	due, err := dueOf(q, k.record, s.Now())
	drill, errDrill := drillAt(q, k.record, s.Now())
	s.noteRequest(q, k.record, due)
	switch begun := k.record.Begun; {
	case errDrill != nil:
		return 0, errDrill
	case err != nil:
		return 0, fmt.Errorf("%s: %w", q.Key(), err)
	case begun != nil && begun.Job != "" && !begun.Failed:
		return s.pollJob(ctx, q, k)
	case begun != nil && (!begun.Failed || due.Now):
		return s.settle(ctx, q, k)
	case due.Now:
		return s.take(ctx, q, k, due)
	case k.record.Drill != nil:
		return driller{s}.followDrill(ctx, q, k)
	case !drill.IsZero() && !s.Now().Before(drill):
		return driller{s}.beginDrill(ctx, q, k)
	case retains(q, k.record, s.Now()): // what a drill has found is known by then
		return 0, s.retain(ctx, q, k)
	}
	s.reportDue(q, k, due)
	return s.untilLook(q, k.record, due, drill), nil
}

// untilLook is how long nothing is to be done.
func (s *Scheduler) untilLook(q desired.Backup, rec Record, due schedule.Due, drill time.Time) time.Duration {
	now, wait := s.Now(), lookAgain
	if !due.Begins.IsZero() {
		wait = min(wait, due.Begins.Sub(now))
	}
	if drill.After(now) {
		wait = min(wait, drill.Sub(now))
	}
	if late := rec.overdueAt(q, now); late.After(now) {
		wait = min(wait, late.Sub(now))
	}
	return max(wait, state.MinRequeue)
}

// waitsFor says why a backup that is due does not begin, and looks again later.
func (s *Scheduler) waitsFor(q desired.Backup, why string, again time.Duration) (time.Duration, error) {
	if s.Reporter.Said.Changed(q.Key(), report.TopicState, why) {
		s.Log.Info("backup waits", "request", q.Key(), "cluster", q.ClusterName(), "reason", why)
	}
	return again, nil
}
