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
	drillDue, suspended             *prometheus.GaugeVec
	// Those of single backups, too.
	failures         *prometheus.CounterVec
	failing, blocked *prometheus.GaugeVec
}

// ScheduleFacts are what the metrics tell of a schedule; of a single backup, Failures.
type ScheduleFacts struct {
	// Failures in a row.
	Failures int
	// Overdue also where there was never a backup.
	Overdue bool
	// Suspended reports whether Git lets the schedule take none.
	Suspended bool
	// Taken is the newest good backup, nil for none.
	Taken *BackupFacts
	// Drills reports whether there should be restore drills, and DrillBad whether the
	// last one found its backup bad or came to no judgement.
	Drills, DrillBad bool
	// DrillDue is from when on one should be under way; zero for none.
	DrillDue time.Time
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
	schedule := clusterLabels([]string{"schedule"})
	request := clusterLabels([]string{"schedule", "backup"})
	gauge := func(name, help string, labels []string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quorate_backup_" + name, Help: help}, labels)
	}
	m := BackupMetrics{
		backup:        gauge("last_success_timestamp_seconds", "When the last verified backup was begun, as Unix time, 0 for never; schedule is empty for one that no schedule took.", schedule),
		size:          gauge("last_success_size_bytes", "Size of the last verified backup.", schedule),
		duration:      gauge("last_success_duration_seconds", "How long the last verified backup took, reading back included.", schedule),
		overdue:       gauge("overdue", "1 when a time of the schedule, its jitter and its starting deadline have passed without a backup, be it the first.", schedule),
		suspended:     gauge("suspended", "1 while Git lets the schedule take no backups.", schedule),
		drill:         gauge("drill_last_success_timestamp_seconds", "When the last restore drill that passed was begun, as Unix time, 0 for never; only where Git asks for drills.", schedule),
		drillDuration: gauge("drill_duration_seconds", "How long that drill took until the restored etcd had answered: what a recovery would take.", schedule),
		drillBad:      gauge("drill_failed", "1 when the last restore drill found its backup bad, or came to no judgement.", schedule),
		drillDue:      gauge("drill_due_timestamp_seconds", "From when on the newest backup is to be restored on trial, as Unix time; there only while one is to be.", schedule),
		failing:       gauge("consecutive_failures", "Backups that have failed since the last good one; backup is the name of an EtcdBackup, empty for a schedule.", request),
		blocked:       gauge("pass_consecutive_failures", "Passes over a backup or schedule that have ended with an error before they came to a backup, since the last good one.", request),
		failures:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quorate_backup_failures_total", Help: "Backups that failed; backup is the name of an EtcdBackup, empty for a schedule."}, request),
	}
	registry.MustRegister(m.backup, m.size, m.duration, m.overdue, m.suspended, m.drill, m.drillDuration, m.drillBad, m.drillDue, m.failing, m.blocked, m.failures)
	return m
}

// scheduleLabels are the labels of a schedule, requestLabels those of any request. A
// cluster that quorate does not run has no name.
func scheduleLabels(q desired.Backup) prometheus.Labels {
	return prometheus.Labels{labelNamespace: q.Metadata.Namespace, labelCluster: q.Spec.Source.ClusterName, "schedule": q.Metadata.Name}
}

func requestLabels(q desired.Backup) prometheus.Labels {
	l := scheduleLabels(q)
	l["backup"] = ""
	if q.Schedule == nil {
		l["schedule"], l["backup"] = "", q.Metadata.Name
	}
	return l
}

// Begin gives a backup or schedule that Git names its series, before anything is known
// of it: one that was never taken must be able to alert.
func (m *BackupMetrics) Begin(q desired.Backup) {
	m.failures.With(requestLabels(q))
	m.failing.With(requestLabels(q))
	m.blocked.With(requestLabels(q))
	if q.Schedule != nil {
		m.backup.With(scheduleLabels(q))
		m.overdue.With(scheduleLabels(q))
		m.suspended.With(scheduleLabels(q)).Set(gaugeOf(q.Schedule.Suspend))
	}
}

// Set sets the gauges of a schedule, and of a single backup how often it failed: it is
// not awaited again.
func (m *BackupMetrics) Set(q desired.Backup, f ScheduleFacts) {
	m.failures.With(requestLabels(q))
	m.failing.With(requestLabels(q)).Set(float64(f.Failures))
	if q.Schedule == nil {
		return
	}
	l := scheduleLabels(q)
	m.overdue.With(l).Set(gaugeOf(f.Overdue))
	m.suspended.With(l).Set(gaugeOf(f.Suspended))
	m.backup.With(l)
	if b := f.Taken; b != nil {
		m.backup.With(l).Set(float64(b.Begun.Unix()))
		m.size.With(l).Set(float64(b.Size))
		m.duration.With(l).Set(b.Seconds)
	}
	m.setDrills(l, f)
}

func (m *BackupMetrics) setDrills(l prometheus.Labels, f ScheduleFacts) {
	if !f.Drills || f.DrillDue.IsZero() {
		m.drillDue.Delete(l)
	} else {
		m.drillDue.With(l).Set(float64(f.DrillDue.Unix()))
	}
	if !f.Drills {
		m.drillBad.Delete(l)
		m.drill.Delete(l)
		m.drillDuration.Delete(l)
		return
	}
	m.drillBad.With(l).Set(gaugeOf(f.DrillBad))
	m.drill.With(l)
	if d := f.Proven; d != nil {
		m.drill.With(l).Set(float64(d.Begun.Unix()))
		m.drillDuration.With(l).Set(d.Seconds)
	}
}

// Failed counts a backup that failed.
func (m *BackupMetrics) Failed(q desired.Backup) { m.failures.With(requestLabels(q)).Inc() }

// Blocked counts a pass that failed before it came to a backup.
func (m *BackupMetrics) Blocked(q desired.Backup) { m.blocked.With(requestLabels(q)).Inc() }

// Passed ends a row of such passes.
func (m *BackupMetrics) Passed(q desired.Backup) { m.blocked.With(requestLabels(q)).Set(0) }

// Forget drops the series of a backup or schedule that no file names any more.
func (m *BackupMetrics) Forget(q desired.Backup) {
	m.failures.Delete(requestLabels(q))
	m.failing.Delete(requestLabels(q))
	m.blocked.Delete(requestLabels(q))
	if q.Schedule == nil {
		return
	}
	for _, vec := range []*prometheus.GaugeVec{m.backup, m.size, m.duration, m.overdue, m.suspended, m.drill, m.drillDuration, m.drillBad, m.drillDue} {
		vec.Delete(scheduleLabels(q))
	}
}
