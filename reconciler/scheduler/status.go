package scheduler

import (
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// noteRequest keeps what a pass knows of a backup or schedule.
func (s *Scheduler) noteRequest(q desired.Backup, k Record, due schedule.Due) {
	phase, reason, message := requestPhase(q, k, s.Now())
	status := schema.NewStatus(q.Kind(), q.Metadata.Namespace, q.Metadata.Name, phase, reason, s.Reporter.Board.Wording(q.Key(), report.Shorten(message)))
	status.Observed = q.Commit
	if q.Schedule != nil {
		status.Status.Schedule = scheduleStatus(q, k, due)
	} else {
		status.Status.Backup = &schema.BackupRunStatus{Cluster: q.ClusterName()}
		if taken, done := k.Done[q.Hash()]; done {
			status.Status.Backup.Taken = taken.status()
			status.Status.Commit, status.Status.Accepted = taken.Commit, taken.Accepted
		}
	}
	s.Reporter.Board.Note(q.Key(), []schema.Status{status})
}

// phase says how far a request is. What is awaited for one backup of a schedule is no
// news, until it is overdue.
func requestPhase(q desired.Backup, k Record, now time.Time) (phase schema.Phase, reason, message string) {
	_, done := k.Done[q.Hash()]
	late := k.overdueAt(q, now)
	switch {
	case q.Held:
		return schema.PhaseStalled, "Held", "the newest commit has errors about it; what was last said well goes on"
	case done && k.Unreachable != "":
		return schema.PhaseReady, "BackupUnreachable", "the backup was taken, and no restore can read it: " + k.Unreachable
	case done:
		return schema.PhaseReady, "BackupTaken", "the backup was taken, and what is stored was read back"
	case k.Failures > 0:
		return schema.PhaseStalled, "BackupFailed", k.Problem
	case q.Schedule == nil:
		return schema.PhaseReconciling, "Backup", "the backup is being taken, or awaited"
	case !late.IsZero() && !now.Before(late):
		return schema.PhaseStalled, "Overdue", "a time of the schedule, its jitter and its deadline have passed without a backup"
	case k.DrillFailures > 0:
		return schema.PhaseStalled, "DrillFailed", k.DrillProblem
	case k.Drilled != nil && k.Drilled.Result != backup.DrillPassed:
		return schema.PhaseStalled, "DrillFailed", k.Drilled.Result + drillAgain
	case k.RetentionHold != nil && q.Schedule.Retention != (schema.RetentionSpec{}):
		return schema.PhaseStalled, "RetentionHeld", k.RetentionHold.text()
	case q.Schedule.Suspend:
		return schema.PhaseReady, "Suspended", "suspended: no backups are taken"
	case k.Last == nil:
		return schema.PhaseReady, "NotDueYet", "no backup was due yet"
	}
	if k.Unreachable != "" {
		return schema.PhaseReady, "BackupUnreachable", "the last backup is good, and no restore can read it: " + k.Unreachable
	}
	return schema.PhaseReady, "BackupTaken", "the last backup is good"
}

func scheduleStatus(q desired.Backup, k Record, due schedule.Due) *schema.ScheduleStatus {
	s := &schema.ScheduleStatus{Cluster: q.ClusterName()}
	if k.Last != nil {
		s.Last = k.Last.status()
	}
	if !due.At.IsZero() {
		s.Next = report.TimeOrNever(due.At)
	}
	if d := k.Drilled; d != nil && q.Schedule.Verify.Restore != schema.DrillNever && q.Schedule.Verify.Restore != "" {
		s.Drill = &schema.DrillStatus{URL: desired.WithoutQuery(d.Object), Time: report.TimeOrNever(d.Time), Result: d.Result}
	}
	return s
}

func (b doneBackup) status() *schema.BackupStatus {
	return &schema.BackupStatus{
		URL: desired.WithoutQuery(b.Object), Time: report.TimeOrNever(b.Time), ClusterID: b.ClusterID, Member: b.Member,
		Revision: b.Revision, Size: b.Size, SHA256: b.SHA256, Commit: b.Commit,
	}
}
