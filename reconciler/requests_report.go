package reconciler

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// reportDue tells once what a schedule has left out, and why.
func (s *Scheduler) reportDue(q desired.Backup, k *keptRequest, due schedule.Due) {
	s.reporter.said.over(q.Key(), topicState)
	if q.Schedule == nil || due.Why == "" || k.record.Failures > 0 || !s.reporter.said.news(q.Key(), topicStep, due.Why) {
		return
	}
	s.log.Info("no backup", "request", q.Key(), "cluster", q.ClusterName(), "message", due.Why, "next", timeOrNever(due.Begins))
}

// timeOrNever is a time for people.
func timeOrNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// reportBegin tells that a backup begins, and what it makes good.
func (s *Scheduler) reportBegin(q desired.Backup, due schedule.Due, from backupSource) {
	s.reporter.said.over(q.Key(), topicState)
	s.log.Info("backup begins", "request", q.Key(), "cluster", q.ClusterName(), "member", from.member.Name,
		"for", due.At.UTC().Format(time.RFC3339), "missed", due.Missed, "message", due.Why)
}

// reportBackup tells of a good backup.
func (s *Scheduler) reportBackup(q desired.Backup, k *keptRequest, m backup.Manifest, took time.Duration) {
	s.reporter.said.over(q.Key(), topicState, topicFailure, topicStep)
	s.reporter.metrics.requested(q, k.record, s.now())
	s.log.Info("backup", "request", q.Key(), "cluster", q.ClusterName(), "message", "a backup was taken, and what is stored was read back",
		"url", m.Object, "revision", m.Revision, "sha256", m.SHA256, "size", m.Size, "member", m.Member, "took", took.Round(time.Millisecond).String(), "commit", m.Commit)
	s.reporter.events.Event(k.live, corev1.EventTypeNormal, "BackupTaken", shorten(fmt.Sprintf("%s through %s, revision %d, %d bytes, sha256 %s", m.Object, m.Member, m.Revision, m.Size, m.SHA256)))
}

// reportBackupFailure tells of a backup that failed. Each has an object of its own,
// and they come later each time.
func (s *Scheduler) reportBackupFailure(q desired.Backup, k *keptRequest, failure error) {
	s.reporter.metrics.requestFailed(q)
	s.log.Error("backup failed", "request", q.Key(), "cluster", q.ClusterName(), "failures", k.record.Failures, "error", failure.Error())
	s.reporter.events.Event(k.live, corev1.EventTypeWarning, "BackupFailed", shorten(failure.Error()))
}

// reportRequestError tells of a pass that failed before it came to a backup.
func (s *Scheduler) reportRequestError(q desired.Backup, err error) {
	s.reporter.statuses.failed(q.Key(), err, unseenBackup(q))
	if s.reporter.said.news(q.Key(), topicFailure, err.Error()) {
		s.log.Error("failed", "request", q.Key(), "error", err.Error())
	}
}

// forgetRequest drops what is kept to save words about a request that no file
// names any more.
func (s *Scheduler) forgetRequest(q desired.Backup) {
	s.reporter.said.forget(q.Key())
	s.reporter.statuses.forget(q.Key())
	s.reporter.metrics.forgetRequest(q)
	s.log.Info("backup ends", "request", q.Key(), "cluster", q.ClusterName(),
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
func requestLabels(q desired.Backup) prometheus.Labels {
	l := prometheus.Labels{"namespace": q.Metadata.Namespace, "cluster": q.Spec.Source.ClusterName, "schedule": ""}
	if q.Schedule != nil {
		l["schedule"] = q.Metadata.Name
	}
	return l
}

// requested sets the gauges that follow from a schedule's record. A single backup
// has no series of its own: it is none that anybody waits for again.
func (m *Metrics) requested(q desired.Backup, rec requestRecord, now time.Time) {
	if q.Schedule == nil {
		return
	}
	l := requestLabels(q)
	m.requests.failures.With(l)
	overdue := 0.0
	if late := rec.overdueAt(q, now); !late.IsZero() && !now.Before(late) {
		overdue = 1
	}
	m.requests.overdue.With(l).Set(overdue)
	if b := rec.Last; b != nil {
		m.requests.backup.With(l).Set(float64(b.Time.Unix()))
		m.requests.size.With(l).Set(float64(b.Size))
		m.requests.duration.With(l).Set(b.Seconds)
	}
	m.drilled(l, q.Schedule.Verify.Restore, rec.drillRecord)
}

// drilled sets the gauges of restore drills, where there are to be any.
func (m *Metrics) drilled(l prometheus.Labels, how schema.RestoreDrill, rec drillRecord) {
	if how == schema.DrillNever || how == "" {
		m.requests.drillBad.Delete(l)
		return
	}
	bad := 0.0
	if rec.DrillFailures > 0 || rec.Drilled != nil && rec.Drilled.Result != backup.DrillPassed {
		bad = 1
	}
	m.requests.drillBad.With(l).Set(bad)
	if d := rec.Proven; d != nil {
		m.requests.drill.With(l).Set(float64(d.Time.Unix()))
		m.requests.drillDuration.With(l).Set(d.Seconds)
	}
}

func (m *Metrics) requestFailed(q desired.Backup) { m.requests.failures.With(requestLabels(q)).Inc() }

// forgetRequest drops the series of a schedule that no file names any more.
func (m *Metrics) forgetRequest(q desired.Backup) {
	if q.Schedule == nil {
		return
	}
	for _, vec := range []interface{ Delete(prometheus.Labels) bool }{
		m.requests.backup, m.requests.size, m.requests.duration, m.requests.overdue, m.requests.failures,
		m.requests.drill, m.requests.drillDuration, m.requests.drillBad,
	} {
		vec.Delete(requestLabels(q))
	}
}
