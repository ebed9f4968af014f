package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/desired"
)

// BackupMetrics are the metrics of backups that Git asks for.
type BackupMetrics struct {
	backup, size, duration, overdue *prometheus.GaugeVec
	drill, drillDuration, drillBad  *prometheus.GaugeVec
	failures                        *prometheus.CounterVec
}

// ScheduleFacts are what the metrics tell of a schedule.
type ScheduleFacts struct {
	Overdue bool
	// Taken is the newest good backup, nil for none.
	Taken *BackupFacts
	// Drills reports whether there should be restore drills, and DrillBad whether the
	// last one found its backup bad or came to no judgement.
	Drills, DrillBad bool
	// Proven is the last drill that passed, nil for none.
	Proven *BackupFacts
}

// BackupFacts are when something was begun, how long it took, and the size in bytes
// of what it left.
type BackupFacts struct {
	Begun   time.Time
	Seconds float64
	Size    int64
}

func newBackupMetrics(registry prometheus.Registerer) BackupMetrics {
	labels := []string{"namespace", "cluster", "schedule"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quorate_backup_" + name, Help: help}, labels)
	}
	m := BackupMetrics{
		backup:        gauge("last_success_timestamp_seconds", "When the last verified backup was begun, as Unix time; schedule is empty for one that no schedule took."),
		size:          gauge("last_success_size_bytes", "Size of the last verified backup."),
		duration:      gauge("last_success_duration_seconds", "How long the last verified backup took, reading back included."),
		overdue:       gauge("overdue", "1 when a time of the schedule, its jitter and its starting deadline have passed without a backup."),
		drill:         gauge("drill_last_success_timestamp_seconds", "When the last restore drill that passed was begun, as Unix time."),
		drillDuration: gauge("drill_duration_seconds", "How long that drill took until the restored etcd had answered: what a recovery would take."),
		drillBad:      gauge("drill_failed", "1 when the last restore drill found its backup bad, or came to no judgement."),
		failures:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quorate_backup_failures_total", Help: "Backups that failed."}, labels),
	}
	registry.MustRegister(m.backup, m.size, m.duration, m.overdue, m.drill, m.drillDuration, m.drillBad, m.failures)
	return m
}

// backupLabels are the labels of a request. A cluster that quorate does not run has no
// name.
func backupLabels(q desired.Backup) prometheus.Labels {
	l := prometheus.Labels{"namespace": q.Metadata.Namespace, "cluster": q.Spec.Source.ClusterName, "schedule": ""}
	if q.Schedule != nil {
		l["schedule"] = q.Metadata.Name
	}
	return l
}

// Set sets the gauges of a schedule. A single backup has no series: it is
// not awaited again.
func (m *BackupMetrics) Set(q desired.Backup, f ScheduleFacts) {
	if q.Schedule == nil {
		return
	}
	l := backupLabels(q)
	m.failures.With(l)
	m.overdue.With(l).Set(gaugeOf(f.Overdue))
	if b := f.Taken; b != nil {
		m.backup.With(l).Set(float64(b.Begun.Unix()))
		m.size.With(l).Set(float64(b.Size))
		m.duration.With(l).Set(b.Seconds)
	}
	if !f.Drills {
		m.drillBad.Delete(l)
		return
	}
	m.drillBad.With(l).Set(gaugeOf(f.DrillBad))
	if d := f.Proven; d != nil {
		m.drill.With(l).Set(float64(d.Begun.Unix()))
		m.drillDuration.With(l).Set(d.Seconds)
	}
}

// gaugeOf is 1 for true.
func gaugeOf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Failed counts a backup that failed.
func (m *BackupMetrics) Failed(q desired.Backup) { m.failures.With(backupLabels(q)).Inc() }

// Forget drops the series of a schedule that no file names any more.
func (m *BackupMetrics) Forget(q desired.Backup) {
	if q.Schedule == nil {
		return
	}
	for _, vec := range []interface{ Delete(prometheus.Labels) bool }{
		m.backup, m.size, m.duration, m.overdue, m.failures, m.drill, m.drillDuration, m.drillBad,
	} {
		vec.Delete(backupLabels(q))
	}
}
