package report

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
)

// Metrics are what quorate tells Prometheus. Labels are names of clusters and
// words from fixed lists, never text of an error.
type Metrics struct {
	info        *prometheus.GaugeVec
	holding     *prometheus.GaugeVec
	steps       *prometheus.GaugeVec
	actions     *prometheus.CounterVec
	failures    *prometheus.CounterVec
	drifted     *prometheus.GaugeVec
	corrections *prometheus.CounterVec
	orphans     prometheus.Gauge
	healthy     *prometheus.GaugeVec
	certificate *prometheus.GaugeVec
	passes      prometheus.Histogram
	// versions are the values of cluster_info's label, by cluster.
	versions memo.Map[*string]
	managers managers
	// Backups are those of the backups that Git asks for.
	Backups BackupMetrics
}

// holdKinds are the values of the label kind.
func holdKinds() []decision.HoldKind {
	return []decision.HoldKind{
		decision.Waiting, decision.Confirm, decision.Unhealthy, decision.Stopped, decision.Refused, decision.ObserveOnly,
	}
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	cluster := []string{"namespace", "cluster"}
	with := func(more ...string) []string { return append([]string{"namespace", "cluster"}, more...) }
	gauge := func(name, help string, labels []string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quorate_" + name, Help: help}, labels)
	}
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quorate_" + name, Help: help}, labels)
	}
	m := &Metrics{
		info:        gauge("cluster_info", "1 for each cluster that Git names, with the version that it should have.", with("version")),
		holding:     gauge("cluster_hold", "1 while quorate does nothing about the cluster, by kind of hold.", with("kind")),
		steps:       gauge("cluster_planned_steps", "Steps between the cluster and what Git says; 0 at rest.", cluster),
		actions:     counter("actions_total", "Actions that were executed.", with("action")),
		failures:    counter("pass_failures_total", "Passes that ended with an error.", cluster),
		drifted:     gauge("cluster_drifted_objects", "Objects changed outside of Git.", cluster),
		corrections: counter("drift_corrections_total", "Objects reverted after a change outside of Git, by kind and by the writer that had changed them.", with("kind", "manager")),
		orphans:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_orphans", Help: "Clusters of this quorate that run and that no file names any more."}),
		healthy:     gauge("cluster_healthy_members", "Members healthy at the last check.", cluster),
		certificate: gauge("certificate_expiry_timestamp_seconds", "When the first certificate of the cluster expires, as Unix time.", cluster),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quorate_pass_duration_seconds", Help: "How long one pass over one cluster took, its action included.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 30, 300},
		}),
	}
	registry.MustRegister(m.info, m.holding, m.steps, m.actions, m.failures, m.drifted, m.corrections, m.orphans, m.healthy, m.certificate, m.passes)
	m.Backups = newBackupMetrics(registry)
	return m
}

// observed sets the gauges that follow from one pass.
func (m *Metrics) observed(v *observe.View, p decision.Plan) {
	ns, name := v.Cluster.Metadata.Namespace, v.Cluster.Metadata.Name
	m.wants(v.Cluster)
	for _, kind := range holdKinds() {
		value := 0.0
		if p.Hold != nil && p.Hold.Kind == kind {
			value = 1
		}
		m.holding.WithLabelValues(ns, name, string(kind)).Set(value)
	}
	m.steps.WithLabelValues(ns, name).Set(float64(len(p.Steps)))
	m.drifted.WithLabelValues(ns, name).Set(float64(countDrifted(v.Observed.Objects)))
	m.healthy.WithLabelValues(ns, name).Set(float64(countAnswering(v.Observed.Rounds)))
	if !v.Expiry.IsZero() {
		m.certificate.WithLabelValues(ns, name).Set(float64(v.Expiry.Unix()))
	}
	if v.Record != nil && v.Record.Backup != nil {
		m.Backups.backup.WithLabelValues(ns, name, "").Set(float64(v.Record.Backup.TakenAt.Unix()))
		m.Backups.size.WithLabelValues(ns, name, "").Set(float64(v.Record.Backup.Size))
	}
}

// wants keeps one series of cluster_info for each cluster. The last version is
// kept, so that no pass has to search for it.
func (m *Metrics) wants(c desired.Cluster) {
	ns, name, version := c.Metadata.Namespace, c.Metadata.Name, c.Spec.Version
	last := m.versions.Get(c.Key())
	if last != nil && *last == version {
		return
	}
	last = m.versions.Put(c.Key(), &version)
	m.info.WithLabelValues(ns, name, version).Set(1)
	if last != nil {
		m.info.DeleteLabelValues(ns, name, *last)
	}
}

func countDrifted(objects []state.Object) int {
	n := 0
	for _, o := range objects {
		if o.State == state.ObjectDrifted {
			n++
		}
	}
	return n
}

func countAnswering(rounds []state.Round) int {
	if len(rounds) == 0 {
		return 0
	}
	n := 0
	for _, m := range rounds[len(rounds)-1].Members {
		if m.Problem == "" {
			n++
		}
	}
	return n
}

// acted counts an action.
func (m *Metrics) acted(c desired.Cluster, action string) {
	m.actions.WithLabelValues(c.Metadata.Namespace, c.Metadata.Name, action).Inc()
}

// maxManagers is how many field managers are distinguished by name.
const maxManagers = 20

// The managers that are no names.
const (
	managerUnknown = "unknown"
	managerOther   = "other"
)

// managers are the field managers that have their own label: the first that
// were met. Any client may invent one.
type managers struct {
	mu    sync.Mutex
	names map[string]bool
}

func (m *managers) label(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = map[string]bool{}
	}
	if !m.names[name] && len(m.names) >= maxManagers && name != managerUnknown {
		return managerOther
	}
	m.names[name] = true
	return name
}

// corrected counts an object that was put back.
func (m *Metrics) corrected(c desired.Cluster, kind, manager string) {
	m.corrections.WithLabelValues(c.Metadata.Namespace, c.Metadata.Name, kind, m.managers.label(manager)).Inc()
}

// failed counts a pass that ended with an error.
func (m *Metrics) failed(c desired.Cluster) {
	m.failures.WithLabelValues(c.Metadata.Namespace, c.Metadata.Name).Inc()
}

// Passed records how long a pass took.
func (m *Metrics) Passed(took time.Duration) { m.passes.Observe(took.Seconds()) }

// forget drops the series of a cluster that is no longer reconciled.
func (m *Metrics) forget(c desired.Cluster) {
	m.versions.Forget(c.Key())
	labels := prometheus.Labels{"namespace": c.Metadata.Namespace, "cluster": c.Metadata.Name}
	for _, vec := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{m.info, m.holding, m.steps, m.actions, m.failures, m.drifted, m.corrections, m.healthy, m.certificate} {
		vec.DeletePartialMatch(labels)
	}
	// Those of its schedules live as long as these.
	labels["schedule"] = ""
	m.Backups.backup.Delete(labels)
	m.Backups.size.Delete(labels)
}
