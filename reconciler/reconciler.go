package reconciler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/backup/signing"
	"github.com/quorate/quorate/reconciler/checks"
	"github.com/quorate/quorate/reconciler/copies"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/handshake"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/rounds"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/reconciler/stores"
)

// Options are the daemon's settings.
type Options struct {
	// Render is what the daemon adds to each cluster's file.
	Render manifests.Options
	// BackupURL is the template of object URLs for clusters that name none.
	BackupURL string
	// BackupPlaces are templates of places that the daemon's own credentials serve beside
	// that of BackupURL, see schema.ObjectURLPlace.
	BackupPlaces []string
	// Drivers are those of the object stores that hold backups. Default: none, so that backups are in directories.
	Drivers driver.Set
	// InsecureStores lets object stores be reached without TLS.
	InsecureStores bool
	// BackupKeys sign the manifests of backups, and say whose are restored. Default: none,
	// so that nothing is signed, and need be.
	BackupKeys *signing.Keys
	// Namespaces are those that quorate works in; none for all.
	Namespaces kube.Namespaces
	// Owner is this instance: what it follows in Git, and its name. One without a
	// source is for plans only: it counts every cluster as its own.
	Owner state.Owner
	// MaxDisrupted is how many clusters may be disrupted at once. Default 1.
	MaxDisrupted int
	// CheckHosts are the only hosts and ports that checks of spec.upgrade.checks may ask, see
	// schema.CheckHost. Default nil, for plans only: no check is asked, not of a CronJob either,
	// and what one keeps waiting waits.
	CheckHosts []string
	// MaxBackups is how many backups of each kind are taken at once, of whatever clusters:
	// those that Git asks for, those before rollouts, and those before repairs. Default 2.
	MaxBackups int
	// Runner is what takes the backups that Git asks for. Default InDaemon.
	BackupRunner scheduler.Runner
	// MaxDrills is how many backups are restored on trial at once. Default 1.
	MaxDrills int
	// BackupBandwidth of all backups together in bytes a second. Default: no limit.
	BackupBandwidth int64
	// BackupStallTimeout is how long nothing of a backup may move before it fails. Default 5m.
	BackupStallTimeout time.Duration
	// Workers is how many clusters are reconciled at the same time, besides those that wait for their
	// members or for the API server. Default DefaultWorkers.
	Workers int
	// MaxAsks is how many clusters' members are asked at the same time; those that answer late
	// have eight times as many places of their own. Default DefaultMaxAsks.
	MaxAsks int
	// Glance asks members at rest only whether they are as they were. Default nil: they are asked
	// everything each time.
	Glance rounds.Glance
	// Resync is how often an idle cluster is reconciled, but for more than some thousands of them: these
	// have 5 ms each. Default DefaultResync.
	Resync time.Duration
	// Lease is asked before every mutation: an error means that another quorate
	// may be acting. Default: no lease.
	Lease func() error
	// Notes writes what is for people only, the statuses of objects, so that no action waits for it:
	// many change at once when a zone is down. Default: the client of everything else.
	Notes kubernetes.Interface
	// Shards says which clusters are this process's. Default: all are.
	Shards Shards
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// ServerNow is the clock of the API server, to a second or so. Default Now.
	ServerNow func() time.Time
}

// The defaults of how many clusters are looked at, and how often.
const (
	DefaultWorkers = 4
	DefaultMaxAsks = 32
	DefaultResync  = 30 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if o.MaxDisrupted == 0 {
		o.MaxDisrupted = 1
	}
	if o.MaxBackups == 0 {
		o.MaxBackups = 2
	}
	if o.MaxDrills == 0 {
		o.MaxDrills = 1
	}
	if o.MaxAsks == 0 {
		o.MaxAsks = DefaultMaxAsks
	}
	if o.Resync == 0 {
		o.Resync = DefaultResync
	}
	if o.Lease == nil {
		o.Lease = func() error { return nil }
	}
	if o.Shards == nil {
		o.Shards = undivided{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ServerNow == nil {
		o.ServerNow = o.Now
	}
	return o
}

// Members is what quorate asks of the members of etcd clusters; etcd.Client does it.
type Members interface {
	observe.Members
	execute.Members
	scheduler.Members
}

// Reconciler reconciles clusters to the state that Git declares.
type Reconciler struct {
	kube      kubernetes.Interface
	Observer  *observe.Observer
	Executor  *execute.Executor
	Reporter  *report.Reporter
	Scheduler *scheduler.Scheduler
	cache     *observe.Cache
	checks    *checks.Asker // nil asks none
	copies    *copies.Cache
	Options   Options

	pace pace
	// rules are those of package plan; tests of what a pass makes of a plan have others.
	rules rules
	// disrupting is a one-slot semaphore: one worker at a time may start to disrupt a
	// cluster.
	disrupting chan struct{}
	queue      queue.Queue
	filled     atomic.Bool
	// gitRead is true once Git has been read.
	gitRead atomic.Bool
	// seen counts what the watches have told, and taken the shards that were taken.
	seen, taken atomic.Uint64
	// told is one more than the revision of the statuses that are all written; 0 for none.
	told atomic.Uint64
	// mirror has what other processes tell of their clusters, where this one tells of all.
	mirror *statuses.Mirror

	mu sync.Mutex
	// desired is replaced, and never changed.
	desired map[string]*desired.Cluster
}

// New returns a Reconciler that has observed nothing yet.
func New(client kubernetes.Interface, members Members, events eventrecord.EventRecorder, metrics *report.Metrics, log *slog.Logger, o Options) *Reconciler {
	return wire(client, observe.NewCache(client, o.Namespaces), copies.New(client, o.Namespaces), members, events, metrics, log, o.withDefaults())
}

// wire gives each part what it needs of the others.
func wire(kube kubernetes.Interface, cache *observe.Cache, copied *copies.Cache, members Members, events eventrecord.EventRecorder, metrics *report.Metrics, log *slog.Logger, o Options) *Reconciler {
	if o.Notes == nil {
		o.Notes = kube
	}
	r := &Reconciler{
		kube: kube, Options: o, cache: cache, copies: copied, desired: map[string]*desired.Cluster{}, disrupting: make(chan struct{}, 1),
		queue: queue.New(state.MinRequeue), rules: rules{inTime(plan.Make), inTime(plan.Decide)},
		mirror: &statuses.Mirror{Kube: kube, Namespaces: o.Namespaces, By: statuses.ByOf(o.Owner)},
	}
	if o.CheckHosts != nil {
		r.checks = checks.New(o.CheckHosts, kube, o.Now)
	}
	fights := &drift.Fights{}
	slots := slots.New(o.MaxBackups, o.BackupBandwidth)
	calls := &backup.Calls{Stall: o.BackupStallTimeout, Aside: queue.Aside, Ended: metrics.Store}
	all := stores.Stores{
		Kube: kube, Log: log, BackupURL: o.BackupURL, More: o.BackupPlaces, Insecure: o.InsecureStores, Keys: o.BackupKeys,
		Drivers: o.Drivers, Calls: calls,
	}
	running := jobs.Client{Kube: kube, Namespaces: o.Namespaces}
	r.Observer = &observe.Observer{
		Kube: kube, Namespaces: o.Namespaces, Cache: cache, Jobs: running, Members: members, Lanes: rounds.NewLanes(o.MaxAsks), Rests: rounds.Rests{Glance: o.Glance}, Fights: fights, Now: o.Now, Choose: all.Choose, Shake: handshake.Ask,
		Copies:  &copies.Finder{Cache: copied, Fights: fights, Now: o.Now},
		Options: observe.Options{Render: o.Render, BackupURL: o.BackupURL, Owner: o.Owner},
	}
	r.Executor = &execute.Executor{
		Kube: kube, Records: record.Store{Kube: kube}, Stores: all, Slots: slots, Jobs: running, Members: members, Fights: fights,
		Lease: o.held, Now: o.Now, ServerNow: o.ServerNow, Options: execute.Options{GuardImage: o.Render.GuardImage, ClusterDomain: o.Render.ClusterDomain, BackupURL: o.BackupURL},
	}
	r.Reporter = &report.Reporter{Metrics: metrics, Log: log, Events: events, Subject: cache.Subject, Fights: fights, Now: o.Now}
	r.Scheduler = scheduler.New(scheduler.Parts{
		Kube: kube, Cache: cache, Observer: r.Observer, Clusters: r, Reporter: r.Reporter, Stores: all, Slots: slots, Jobs: running,
		Members: members, Enter: o.Shards.Enter, Mine: o.Shards.Mine, Lease: o.held, Now: o.Now, Log: log,
		Options: scheduler.Options{Owner: o.Owner, Render: o.Render, BackupURL: o.BackupURL, Runner: o.BackupRunner, MaxDrills: o.MaxDrills, Resync: o.Resync},
	})
	metrics.Queue("clusters", r.queue.Len)
	metrics.Queue("backups", r.Scheduler.Waiting)
	return r
}

func (r *Reconciler) now() time.Time { return r.Options.Now() }

// Ready reports whether the caches hold what the cluster has.
func (r *Reconciler) Ready() bool { return r.filled.Load() }

// Motionless returns for how long the passes under way, over clusters or over backups and
// schedules, have done nothing that can be seen; 0 while nothing is to be done. What takes
// longest is a member's defragmentation, for which it has half an hour.
func (r *Reconciler) Motionless(now time.Time) time.Duration {
	return max(r.queue.Motionless(now), r.Scheduler.Motionless(now))
}

// Start fills the caches. It returns when they hold everything.
func (r *Reconciler) Start(ctx context.Context) error {
	if err := r.cache.Start(ctx, r.enqueue); err != nil {
		return fmt.Errorf("fill the caches: %w", err)
	}
	if err := r.copies.Start(ctx, r.enqueue); err != nil {
		return fmt.Errorf("fill the cache of copies: %w", err)
	}
	r.filled.Store(true)
	return nil
}

// Run reconciles until ctx ends, and returns when the actions
// under way have ended, too.
func (r *Reconciler) Run(ctx context.Context) {
	var workers sync.WaitGroup
	workers.Go(func() { r.queue.Run(ctx, r.Options.Workers, handler{r}) })
	// Backups that run long leave workers for the others.
	workers.Go(func() { r.Scheduler.Run(ctx, r.Options.MaxBackups+r.Options.Workers) })
	workers.Go(func() { r.watchOrphans(ctx) })
	workers.Go(func() { r.newStatusWriter().Run(ctx, r.Own()) })
	<-ctx.Done()
	r.shutDown()
	workers.Wait()
}

// Close ends the queues and the watches of a Reconciler whose Run has ended, or never
// began.
func (r *Reconciler) Close() {
	r.shutDown()
	r.cache.Shutdown()
	r.copies.Shutdown()
}

// shutDown ends the queues.
func (r *Reconciler) shutDown() {
	r.queue.ShutDown()
	r.Scheduler.ShutDown()
}

// SetDesired replaces what Git says. A cluster that is no longer named is left
// running: it is only no longer reconciled. The list is the Reconciler's from then on.
func (r *Reconciler) SetDesired(clusters []desired.Cluster) {
	for _, key := range r.replaceDesired(clusters) {
		if r.Options.Shards.Mine(key) {
			r.reportOrphan(key)
		}
	}
	r.gitRead.Store(true)
	r.findOrphans()
}

// replaceDesired returns the keys of the clusters that are no longer named.
func (r *Reconciler) replaceDesired(clusters []desired.Cluster) (vanished []string) {
	next := make(map[string]*desired.Cluster, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		*c = c.Identified()
		next[c.Key()] = c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range clusters {
		c, key := &clusters[i], clusters[i].Key()
		if !r.Options.Shards.Mine(key) {
			continue
		}
		old, known := r.desired[key]
		if !known {
			r.Reporter.Adopted(*c)
		}
		if !known || !desired.Same(*old, *c) {
			r.queue.Add(key)
		}
	}
	for key, c := range r.desired {
		if _, named := next[key]; !named {
			r.forget(key, *c)
			vanished = append(vanished, key)
		}
	}
	r.desired = next
	slices.Sort(vanished)
	return vanished
}

// forget drops all cached state of a cluster.
func (r *Reconciler) forget(key string, c desired.Cluster) {
	r.Reporter.Forget(key, c)
	r.pace.forget(key)
	r.Observer.Forget(key)
	if r.checks != nil {
		r.checks.Forget(key)
	}
}

// Desired returns what Git declares of clusters, by key. It is shared, and never changed.
func (r *Reconciler) Desired() map[string]*desired.Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.desired
}

// Get returns what Git declares of one cluster, if it names it.
func (r *Reconciler) Get(key string) (c desired.Cluster, named bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.desired[key]; d != nil {
		return *d, true
	}
	return c, false
}

// enqueue asks for a pass over a cluster, if Git names it.
func (r *Reconciler) enqueue(key string) {
	r.seen.Add(1)
	if r.Desired()[key] != nil {
		r.queue.Wake(key)
	}
}

// handler makes the passes over the queue's keys.
type handler struct{ *Reconciler }

// Pass implements queue.Handler.
func (h handler) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	c, named := h.Get(key)
	if !named {
		return 0, false, nil
	}
	ctx, leave, mine := h.Options.Shards.Enter(ctx, key)
	if !mine {
		return 0, false, nil // Take adds it again
	}
	defer leave()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.desired[key] == nil { // a commit took it out meanwhile, and the pass has noted it again since
			h.forget(key, c)
		}
	}()
	wait, err := h.Reconciler.Pass(ctx, c)
	return wait, true, err
}

// Failed implements queue.Handler.
func (h handler) Failed(key string, err error) {
	if c, named := h.Get(key); named {
		h.Reporter.Failed(c, err)
	}
}

// Succeeded implements queue.Handler.
func (h handler) Succeeded(key string) {
	if c, named := h.Get(key); named {
		h.Reporter.Succeeded(c)
	}
}

// SetBackups replaces what Git declares of backups and schedules. For one that is no
// longer named no further backup is taken; those that were taken stay.
func (r *Reconciler) SetBackups(list []desired.Backup) { r.Scheduler.SetDesired(list) }

// SetNeeded replaces the backups that Git names, by URL, with what names them: no retention
// removes them. With a doubt, such as "the document at x.yaml:1 has errors", it removes
// none at all.
func (r *Reconciler) SetNeeded(needed map[string]string, doubt string) {
	r.Scheduler.SetNeeded(needed, doubt)
}

// Backups returns what Git declares of backups and schedules, by kind and name.
func (r *Reconciler) Backups() map[string]desired.Backup { return r.Scheduler.Backups() }
