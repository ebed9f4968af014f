package reconciler

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// reportDue tells once what a schedule has left out, and why.
func (r *Reconciler) reportDue(q Request, k *keptRequest, due schedule.Due) {
	r.said.over(q.Key(), topicState)
	if q.Schedule == nil || due.Why == "" || k.record.Failures > 0 || !r.said.news(q.Key(), topicStep, due.Why) {
		return
	}
	r.log.Info("no backup", "request", q.Key(), "cluster", q.clusterName(), "message", due.Why, "next", timeOrNever(due.Begins))
}

// timeOrNever is a time for people.
func timeOrNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// reportBegin tells that a backup begins, and what it makes good.
func (r *Reconciler) reportBegin(q Request, due schedule.Due, s backupSource) {
	r.said.over(q.Key(), topicState)
	r.log.Info("backup begins", "request", q.Key(), "cluster", q.clusterName(), "member", s.member.Name,
		"for", due.At.UTC().Format(time.RFC3339), "missed", due.Missed, "message", due.Why)
}

// reportBackup tells of a good backup.
func (r *Reconciler) reportBackup(q Request, k *keptRequest, m backup.Manifest, took time.Duration) {
	r.said.over(q.Key(), topicState, topicFailure, topicStep)
	r.metrics.requested(q, k.record, r.now())
	r.log.Info("backup", "request", q.Key(), "cluster", q.clusterName(), "message", "a backup was taken, and what is stored was read back",
		"url", m.Object, "revision", m.Revision, "sha256", m.SHA256, "size", m.Size, "member", m.Member, "took", took.Round(time.Millisecond).String(), "commit", m.Commit)
	r.events.Event(k.live, corev1.EventTypeNormal, "BackupTaken", shorten(fmt.Sprintf("%s through %s, revision %d, %d bytes, sha256 %s", m.Object, m.Member, m.Revision, m.Size, m.SHA256)))
}

// reportBackupFailure tells of a backup that failed. Each has an object of its own,
// and they come later each time.
func (r *Reconciler) reportBackupFailure(q Request, k *keptRequest, failure error) {
	r.metrics.requestFailed(q)
	r.log.Error("backup failed", "request", q.Key(), "cluster", q.clusterName(), "failures", k.record.Failures, "error", failure.Error())
	r.events.Event(k.live, corev1.EventTypeWarning, "BackupFailed", shorten(failure.Error()))
}

// reportRequestError tells of a pass that failed before it came to a backup.
func (r *Reconciler) reportRequestError(q Request, err error) {
	r.statuses.failed(q.Key(), err, q.unseen())
	if r.said.news(q.Key(), topicFailure, err.Error()) {
		r.log.Error("failed", "request", q.Key(), "error", err.Error())
	}
}

// forgetRequest drops what is kept to save words about a request that no file
// names any more.
func (r *Reconciler) forgetRequest(q Request) {
	r.said.forget(q.Key())
	r.statuses.forget(q.Key())
	r.metrics.forgetRequest(q)
	r.log.Info("backup ends", "request", q.Key(), "cluster", q.clusterName(),
		"message", "no file names this any more: no further backup is taken, and those that were taken stay")
}

// requestMetrics are the metrics of backups that Git asks for.
type requestMetrics struct {
	backup, size, duration, overdue *prometheus.GaugeVec
	drill, drillDuration, drillBad  *prometheus.GaugeVec
	failures                        *prometheus.CounterVec
}

func newRequestMetrics(registry prometheus.Registerer) requestMetrics {
	labels := []string{"namespace", "cluster", "schedule"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quorate_backup_" + name, Help: help}, labels)
	}
	m := requestMetrics{
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

// labels of a request. A cluster that quorate does not run has no name.
func (q Request) labels() prometheus.Labels {
	l := prometheus.Labels{"namespace": q.Metadata.Namespace, "cluster": q.Spec.Source.ClusterName, "schedule": ""}
	if q.Schedule != nil {
		l["schedule"] = q.Metadata.Name
	}
	return l
}

// requested sets the gauges that follow from a schedule's record. A single backup
// has no series of its own: it is none that anybody waits for again.
func (m *Metrics) requested(q Request, record requestRecord, now time.Time) {
	if q.Schedule == nil {
		return
	}
	l := q.labels()
	m.requests.failures.With(l)
	overdue := 0.0
	if late := record.overdueAt(q, now); !late.IsZero() && !now.Before(late) {
		overdue = 1
	}
	m.requests.overdue.With(l).Set(overdue)
	if b := record.Last; b != nil {
		m.requests.backup.With(l).Set(float64(b.Time.Unix()))
		m.requests.size.With(l).Set(float64(b.Size))
		m.requests.duration.With(l).Set(b.Seconds)
	}
	m.drilled(l, q.Schedule.Verify.Restore, record.drillRecord)
}

// drilled sets the gauges of restore drills, where there are to be any.
func (m *Metrics) drilled(l prometheus.Labels, how schema.RestoreDrill, record drillRecord) {
	if how == schema.DrillNever || how == "" {
		m.requests.drillBad.Delete(l)
		return
	}
	bad := 0.0
	if record.DrillFailures > 0 || record.Drilled != nil && record.Drilled.Result != backup.DrillPassed {
		bad = 1
	}
	m.requests.drillBad.With(l).Set(bad)
	if d := record.Proven; d != nil {
		m.requests.drill.With(l).Set(float64(d.Time.Unix()))
		m.requests.drillDuration.With(l).Set(d.Seconds)
	}
}

func (m *Metrics) requestFailed(q Request) { m.requests.failures.With(q.labels()).Inc() }

// forgetRequest drops the series of a schedule that no file names any more.
func (m *Metrics) forgetRequest(q Request) {
	if q.Schedule == nil {
		return
	}
	for _, vec := range []interface{ Delete(prometheus.Labels) bool }{
		m.requests.backup, m.requests.size, m.requests.duration, m.requests.overdue, m.requests.failures,
		m.requests.drill, m.requests.drillDuration, m.requests.drillBad,
	} {
		vec.Delete(q.labels())
	}
}
