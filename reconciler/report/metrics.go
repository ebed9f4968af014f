package report

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/report/series"
)

// The labels that name a cluster. They are not called namespace and cluster: the first
// is the scrape target's own, the second that of the Kubernetes cluster in Thanos and Mimir.
const (
	labelNamespace = "etcd_namespace"
	labelCluster   = "etcd_cluster"
)

// Metrics are what quorate tells Prometheus. Labels are names of clusters and members
// and words from fixed lists, never text of an error. What can be counted of a cluster
// is there from its first pass on, as 0: a counter that is born at 1 shows no increase.
type Metrics struct {
	clusters clusterMetrics
	members  memberMetrics
	actions  actionMetrics
	drift    driftMetrics
	orphans  prometheus.Gauge
	passes   prometheus.Histogram
	stores   *prometheus.HistogramVec
	queues   *queueDepths
	looks    *looks
	panics   *prometheus.CounterVec
	// Backups are those of the backups that Git asks for.
	Backups BackupMetrics

	// series are those of clusters.
	series *series.Store
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		orphans: prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_orphans", Help: "Clusters of this quorate that run and that no file names any more."}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quorate_pass_duration_seconds", Help: "How long one pass over one cluster took until it was decided what to do: reading the caches, asking the members, planning.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 30},
		}),
		stores: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quorate_store_call_duration_seconds", Help: "How long one call to a store of backups took, by operation; one that moves a backup takes as long as the backup.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 30, 60, 300, 1800},
		}, []string{"operation"}),
		queues: &queueDepths{desc: prometheus.NewDesc("quorate_queue_depth", "Clusters, or backups and schedules, that wait for a worker.", []string{"queue"}, nil)},
		looks:  newLooks(),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorate_panics_total", Help: "Passes over clusters, or over backups and schedules, that a bug of quorate ended: they hold what they are about, as log and status say.",
		}, []string{"queue"}),
	}
	for _, queue := range queueNames() {
		m.panics.WithLabelValues(queue)
	}
	registry.MustRegister(m.orphans, m.passes, m.stores, m.queues, m.looks, m.panics)
	m.series = series.NewStore(labelNamespace, labelCluster)
	to := registrar{registry, m.series}
	m.clusters, m.members, m.actions, m.drift = newClusterMetrics(to), newMemberMetrics(to), newActionMetrics(to), newDriftMetrics(to)
	m.Backups = newBackupMetrics(registry)
	registry.MustRegister(m.series)
	return m
}

// registrar makes metrics, of which those with a series for each cluster are in series.
type registrar struct {
	registry prometheus.Registerer
	series   *series.Store
}

// gauge makes a gauge that has the labels of a cluster, and more.
func (r registrar) gauge(name, help string, more ...string) *series.Family {
	return r.series.Gauge("quorate_"+name, help, more...)
}

// counter is the same as gauge for a counter.
func (r registrar) counter(name, help string, more ...string) *series.Family {
	return r.series.Counter("quorate_"+name, help, more...)
}

func clusterLabels(more []string) []string {
	return append([]string{labelNamespace, labelCluster}, more...)
}

// of are the values of the labels of a cluster, and more.
func of(c desired.Cluster, more ...string) []string {
	return append([]string{c.Metadata.Namespace, c.Metadata.Name}, more...)
}

// Passing measures a pass over one cluster until decided is called. Calling it again does
// nothing.
func (m *Metrics) Passing() (decided func()) {
	started := time.Now()
	return sync.OnceFunc(func() { m.passes.Observe(time.Since(started).Seconds()) })
}

// Store records how long a call to a store of backups took.
func (m *Metrics) Store(operation string, took time.Duration) {
	m.stores.WithLabelValues(operation).Observe(took.Seconds())
}

// Panicked counts a failed pass over a key of a queue, if it panicked.
func (m *Metrics) Panicked(queue string, err error) {
	if contain.Panicked(err) {
		m.panics.WithLabelValues(queue).Inc()
	}
}

// Queue has the depth of a queue asked for when it is scraped. Another one of the same
// name takes its place.
func (m *Metrics) Queue(name string, depth func() int) { m.queues.depths.Put(name, depth) }

// queueDepths collects how many keys wait in each queue.
type queueDepths struct {
	desc   *prometheus.Desc
	depths memo.Map[func() int]
}

// queueNames are the queues that there are.
func queueNames() []string { return []string{"clusters", "backups"} }

// Describe implements prometheus.Collector.
func (q *queueDepths) Describe(to chan<- *prometheus.Desc) { to <- q.desc }

// Collect implements prometheus.Collector.
func (q *queueDepths) Collect(to chan<- prometheus.Metric) {
	for _, name := range queueNames() {
		if depth := q.depths.Get(name); depth != nil {
			to <- prometheus.MustNewConstMetric(q.desc, prometheus.GaugeValue, float64(depth()), name)
		}
	}
}

// forget drops the series of a cluster that is no longer reconciled.
func (m *Metrics) forget(c desired.Cluster) {
	m.looks.forget(c.Key())
	m.clusters.forget(c)
	m.members.forget(c)
	m.series.Forget(c.Metadata.Namespace, c.Metadata.Name)
	// Those of its schedules live as long as these.
	labels := prometheus.Labels{labelNamespace: c.Metadata.Namespace, labelCluster: c.Metadata.Name, "schedule": ""}
	m.Backups.backup.Delete(labels)
	m.Backups.size.Delete(labels)
}

// gaugeOf is 1 for true.
func gaugeOf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// holdKinds are the values of the label kind.
func holdKinds() []decision.HoldKind {
	return []decision.HoldKind{
		decision.Waiting, decision.Confirm, decision.Unhealthy, decision.Unreachable, decision.Stopped, decision.Refused, decision.ObserveOnly,
	}
}
