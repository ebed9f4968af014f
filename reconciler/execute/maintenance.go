package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// compact drops the history before a revision. The backup that it rests on must
// still be in the store.
func (e *Executor) compact(ctx context.Context, v *observe.View, a action.Compact) error {
	if v.Cluster.Spec.Upgrade.Backup != schema.BackupSkip {
		if err := e.stillThere(ctx, v, state.ForCompaction); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	member, err := target(v, a.Member, a.ID, "compact")
	if err != nil {
		return err
	}
	if err := e.Members.Compact(ctx, v.Cluster.Key(), member, a.Revision); err != nil {
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) {
		rec.Compacted = &record.Compacted{Revision: a.Revision, At: e.Now().UTC()}
	})
}

// stillThere asks the store whether the backup that was recorded for a purpose is the one
// that was verified.
func (e *Executor) stillThere(ctx context.Context, v *observe.View, purpose state.Purpose) error {
	b := v.Record.BackupFor(purpose)
	if b == nil {
		return fmt.Errorf("no backup was taken for it")
	}
	store, err := e.Stores.OfCluster(ctx, v.Cluster, b.URL)
	if err != nil {
		return err
	}
	m, err := store.ReadManifest(ctx, b.URL)
	if err != nil {
		return err
	}
	if m.ClusterID != b.ClusterID || m.SHA256 != b.SHA256 {
		return fmt.Errorf("the backup at %s is not the one that was verified; another is taken when that one is 15 minutes old", m.Object)
	}
	return nil
}

func (e *Executor) defragment(ctx context.Context, v *observe.View, a action.Defragment) error {
	member, err := target(v, a.Member, a.ID, "defragment")
	if err != nil {
		return err
	}
	if err := e.Members.Defragment(ctx, v.Cluster.Key(), member); err != nil {
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) {
		kept := map[string]time.Time{a.Member: e.Now().UTC()}
		for member, at := range rec.Defragmented {
			if _, known := rec.Members[member]; known && member != a.Member {
				kept[member] = at
			}
		}
		rec.Defragmented = kept
	})
}

func (e *Executor) disarm(ctx context.Context, v *observe.View, a action.Disarm) error {
	return e.Members.Disarm(ctx, v.Cluster.Key(), v.Endpoints, state.Alarm{Kind: a.Alarm, MemberID: a.MemberID})
}
