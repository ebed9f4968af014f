package reconciler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	eventrecord "k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

// Observer looks at clusters.
type Observer struct {
	kube    kubernetes.Interface
	cache   *cache
	jobs    jobs.Client
	etcd    etcd.Members
	fights  *drift.Fights
	options ObserverOptions
	now     func() time.Time

	drifts drift.Cache
	// rendered holds the last rendering by cluster.
	rendered sync.Map
	// checked holds the last finding about certificates by cluster.
	checked sync.Map
}

// ObserverOptions are what the daemon adds to each cluster's file.
type ObserverOptions struct {
	Render    manifests.Options
	BackupURL string
	Owner     state.Owner
}

// Forget drops what is kept to save work.
func (o *Observer) Forget(key string) {
	o.etcd.Forget(key)
	o.drifts.Forget(key)
	o.fights.Forget(key)
	o.rendered.Delete(key)
	o.checked.Delete(key)
}

// Executor carries out actions.
type Executor struct {
	kube    kubernetes.Interface
	records record.Store
	stores  stores.Stores
	slots   *backup.Slots
	jobs    jobs.Client
	etcd    etcd.Members
	lease   func() error
	now     func() time.Time
	options ExecutorOptions
}

// ExecutorOptions are the daemon's settings.
type ExecutorOptions struct {
	GuardImage, ClusterDomain, BackupURL string
}

// Reporter tells what happens.
type Reporter struct {
	metrics *Metrics
	log     *slog.Logger
	events  eventrecord.EventRecorder
	// subject is what an Event about a cluster without a StatefulSet is about; nil for
	// nothing.
	subject func(key string) runtime.Object
	fights  *drift.Fights
	now     func() time.Time

	said said
	// revived are the clusters that Git brings back, until they are what it says:
	// what is missing there, nobody has deleted beside it.
	revived  sync.Map
	statuses statuses
}

// Forget drops what is kept to save words about a cluster.
func (r *Reporter) Forget(key string, c desired.Cluster) {
	r.metrics.forget(c)
	r.said.forget(key)
	r.statuses.forget(key)
	r.revived.Delete(key)
}

// Clusters is what Git says of clusters.
type Clusters interface {
	Get(key string) (c desired.Cluster, named bool)
	Desired() map[string]desired.Cluster
}

// Scheduler takes the backups that Git asks for.
type Scheduler struct {
	kube     kubernetes.Interface
	cache    *cache
	observer *Observer
	clusters Clusters
	reporter *Reporter
	stores   stores.Stores
	slots    *backup.Slots
	jobs     jobs.Client
	etcd     etcd.Members
	lease    func() error
	now      func() time.Time
	log      *slog.Logger
	options  SchedulerOptions

	queue workqueue.TypedRateLimitingInterface[string]
	// drilling is held by who begins a restore drill, so that they are counted.
	drilling sync.Mutex

	mu     sync.Mutex
	wished map[string]desired.Backup
	// needed are the backups that Git names, by URL, with who does.
	needed map[string]string
	// doubt is why Git may name more of them, or "".
	doubt string
}

// SchedulerOptions are the daemon's settings.
type SchedulerOptions struct {
	Owner     state.Owner
	Render    manifests.Options
	BackupURL string
	Runner    BackupRunner
	MaxDrills int
	Resync    time.Duration
}

var _ = context.Background
