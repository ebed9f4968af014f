package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// reportDue tells once what a schedule has left out, and why.
func (s *Scheduler) reportDue(q desired.Backup, k *kept, due schedule.Due) {
	s.Reporter.Said.Clear(q.Key(), report.TopicState)
	if q.Schedule == nil || due.Why == "" || k.record.Failures > 0 || !s.Reporter.Said.Changed(q.Key(), report.TopicStep, due.Why) {
		return
	}
	s.Log.Info("backup left out", "request", q.Key(), "cluster", q.ClusterName(), "reason", due.Why, "next", report.TimeOrNever(due.Begins))
}

// reportBegin tells that a backup begins, and what it makes good.
func (s *Scheduler) reportBegin(q desired.Backup, due schedule.Due, from source) {
	s.Reporter.Said.Clear(q.Key(), report.TopicState)
	s.Log.Info("backup started", "request", q.Key(), "cluster", q.ClusterName(), "member", from.member.Name,
		"for", due.At.UTC().Format(time.RFC3339), "missed", due.Missed, "reason", due.Why)
}

// reportBackup tells of a good backup.
func (s *Scheduler) reportBackup(q desired.Backup, k *kept, m backup.Manifest, took time.Duration) {
	s.Reporter.Said.Clear(q.Key(), report.TopicState, report.TopicFailure, report.TopicStep)
	s.measure(q, k.record)
	s.Log.Info("backup taken", "request", q.Key(), "cluster", q.ClusterName(),
		"url", m.Object, "revision", m.Revision, "sha256", m.SHA256, "size", m.Size, "member", m.Member, "duration", took.Round(time.Millisecond).String(), "commit", m.Commit)
	s.Reporter.Events.Event(k.live, corev1.EventTypeNormal, "BackupTaken", report.Shorten(fmt.Sprintf("%s through %s, revision %d, %d bytes, sha256 %s", m.Object, m.Member, m.Revision, m.Size, m.SHA256)))
}

// reportUnreachable reports that backups are taken to where no restore can read them.
func (s *Scheduler) reportUnreachable(q desired.Backup, k *kept) {
	s.Log.Warn("backups cannot be restored from where they are put", "request", q.Key(), "cluster", q.ClusterName(), "reason", k.record.Unreachable)
	if k.live != nil {
		s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "BackupUnreachable", report.Shorten("no restore can read it: "+k.record.Unreachable))
	}
}

// reportBackupFailure tells of a backup that failed. Each has an object of its own,
// and they come later each time.
func (s *Scheduler) reportBackupFailure(q desired.Backup, k *kept, failure error) {
	s.Reporter.Metrics.Backups.Failed(q)
	s.Log.Error("backup failed", "request", q.Key(), "cluster", q.ClusterName(), "failures", k.record.Failures, "error", failure.Error())
	s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "BackupFailed", report.Shorten(failure.Error()))
}

// reportGivenUp tells of a backup of which it will never be known how it ended.
func (s *Scheduler) reportGivenUp(q desired.Backup, k *kept, why error) {
	url := desired.WithoutQuery(k.record.Begun.URL)
	s.Log.Warn("backup given up", "request", q.Key(), "cluster", q.ClusterName(), "url", url, "error", why.Error(),
		"remedy", "nothing waits for it; look there whether it left an object, and remove that by hand")
	s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "BackupGivenUp", report.Shorten(url+" was begun, and it cannot be found out how it ended: "+why.Error()))
}

// reportRequestError tells of a pass that failed before it came to a backup.
func (s *Scheduler) reportRequestError(q desired.Backup, err error) {
	s.Reporter.Board.Failed(q.Key(), err, report.UnseenBackup(q))
	s.Reporter.Metrics.Backups.Blocked(q)
	s.Reporter.Metrics.Panicked("backups", err)
	if s.Reporter.Said.Changed(q.Key(), report.TopicFailure, err.Error()) {
		s.Log.Error("pass failed", "request", q.Key(), "error", err.Error())
	}
}

// forgetRequest drops what is kept to save words about a request that no file
// names any more.
func (s *Scheduler) forgetRequest(q desired.Backup) {
	s.Reporter.Said.Forget(q.Key())
	s.Reporter.Board.Forget(q.Key())
	s.Reporter.Metrics.Backups.Forget(q)
}

// overdueEvery is the time between two looks at what is overdue.
const overdueEvery = 15 * time.Second

// watchOverdue tells which schedules are overdue until ctx ends. It asks no store, no
// member and no API server: what keeps a pass from getting through keeps it from nothing.
func (s *Scheduler) watchOverdue(ctx context.Context) {
	for tick := time.NewTicker(overdueEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			if err := contain.Run(func() error { s.tellOverdue(); return nil }); err != nil {
				s.Log.Error("search for overdue backups failed", "error", err.Error())
			}
		}
	}
}

// tellOverdue measures all schedules by the last that is known of their records.
func (s *Scheduler) tellOverdue() {
	s.telling.Lock()
	defer s.telling.Unlock()
	for key, rec := range s.told {
		q, named := s.get(key)
		if !named || q.Schedule == nil || !s.Mine(q.ClusterName()) {
			delete(s.told, key)
			continue
		}
		s.setGauges(q, rec)
		if late := rec.overdueAt(q, s.Now()); !late.IsZero() && !s.Now().Before(late) {
			due, _ := dueOf(q, rec, s.Now()) // a schedule that cannot be read is told of by the pass
			s.noteRequest(q, rec, due)
		}
	}
}

// measure sets the gauges that follow from the record of a backup or schedule.
func (s *Scheduler) measure(q desired.Backup, rec Record) {
	if q.Schedule == nil {
		s.Reporter.Metrics.Backups.Set(q, report.ScheduleFacts{Failures: rec.Failures})
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.told[q.Key()] = rec
	s.setGauges(q, rec)
}

func (s *Scheduler) setGauges(q desired.Backup, rec Record) {
	now, late, how := s.Now(), rec.overdueAt(q, s.Now()), q.Schedule.Verify.Restore
	facts := report.ScheduleFacts{
		Failures: rec.Failures, Suspended: q.Schedule.Suspend,
		Overdue:  !late.IsZero() && !now.Before(late),
		Drills:   how != schema.DrillNever && how != "",
		DrillBad: rec.DrillFailures > 0 || rec.Drilled != nil && rec.Drilled.Result != backup.DrillPassed,
	}
	// A time zone that cannot be read is told of by the pass.
	if due, err := drillAt(q, rec, now); err == nil {
		facts.DrillDue = due
	}
	if b := rec.Last; b != nil {
		facts.Taken = &report.BackupFacts{Begun: b.Time, Seconds: b.Seconds, Size: b.Size}
	}
	if d := rec.Proven; d != nil {
		facts.Proven = &report.BackupFacts{Begun: d.Time, Seconds: d.Seconds}
	}
	s.Reporter.Metrics.Backups.Set(q, facts)
}
