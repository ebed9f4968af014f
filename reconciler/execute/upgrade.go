package execute

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// nudge adds entries to the members' log, after it has recorded how often each
// of them has saved its state. More entries a second time do no harm.
func (e *Executor) nudge(ctx context.Context, v *observe.View, a action.ForceSnapshot) error {
	member, err := target(v, a.Member, a.MemberID, "add to the log")
	if err != nil {
		return err
	}
	saved := etcd.SnapshotCounts(ctx, e.Members, v.Cluster.Key(), v.Endpoints)
	for name := range v.Record.Members {
		if _, known := saved[name]; !known {
			return fmt.Errorf("add to the log: %s does not report how often it has saved its state", name)
		}
	}
	now := e.Now().UTC()
	err = e.note(ctx, v, func(rec *record.Record) {
		nudged := &record.Nudged{Template: a.Template, Since: now, At: now, Before: saved}
		if before := rec.Nudged; before != nil && before.Template == a.Template {
			nudged.Since = before.Since
		}
		rec.Nudged = nudged
	})
	if err != nil {
		return err
	}
	return e.Members.AppendNoops(ctx, v.Cluster.Key(), member)
}

// enableDowngrade tells etcd of a downgrade, after it has written that down, and
// what the older minor will make of the members' logs. The store is asked once
// more whether the backup is still there.
func (e *Executor) enableDowngrade(ctx context.Context, v *observe.View, a action.EnableDowngrade) error {
	member, err := target(v, a.Member, a.MemberID, "enable the downgrade")
	if err != nil {
		return err
	}
	if err := e.backupIsThere(ctx, v, a.Backup); err != nil {
		return fmt.Errorf("enable the downgrade: %w", err)
	}
	now := e.Now().UTC()
	err = e.note(ctx, v, func(rec *record.Record) {
		if rec.Downgrade == nil || rec.Downgrade.Line != a.To {
			rec.Downgrade = &record.Downgrade{Line: a.To, Since: now}
		}
		rec.BornOn, rec.Flushed = action.LogsAfter(rec.BornOn, rec.Members, a.From, a.To)
	})
	if err != nil {
		return err
	}
	return e.Members.EnableDowngrade(ctx, v.Cluster.Key(), member, a.To)
}

// cancelDowngrade tells etcd that there is no downgrade any more. The record
// forgets it last: until then it says that the downgrade is quorate's.
func (e *Executor) cancelDowngrade(ctx context.Context, v *observe.View, a action.CancelDowngrade) error {
	member, err := target(v, a.Member, a.MemberID, "cancel the downgrade")
	if err != nil {
		return err
	}
	if err := e.Members.CancelDowngrade(ctx, v.Cluster.Key(), member); err != nil {
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) { rec.Downgrade = nil })
}

// backupIsThere is stillThere for a backup that was taken for that purpose.
func (e *Executor) backupIsThere(ctx context.Context, v *observe.View, purpose state.Purpose) error {
	if v.Record.BackupFor(purpose) == nil {
		return nil
	}
	return e.stillThere(ctx, v, purpose)
}
