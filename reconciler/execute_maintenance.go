package reconciler

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// compact drops the history before a revision. The backup that it rests on must
// still be in the store.
func (r *Reconciler) compact(ctx context.Context, v *view, a plan.Compact) error {
	if v.cluster.Spec.Upgrade.Backup != schema.BackupSkip {
		if err := r.stillThere(ctx, v); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	member, err := v.target(a.Member, a.ID)
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if err := r.etcd.Compact(ctx, v.cluster.Key(), member, a.Revision); err != nil {
		return err
	}
	return r.updateRecord(ctx, v, func(record *Record) {
		record.Compacted = &CompactedRecord{Revision: a.Revision, At: r.now().UTC()}
	})
}

// stillThere asks the store for the backup that was verified.
func (r *Reconciler) stillThere(ctx context.Context, v *view) error {
	b := v.record.Backup
	if b == nil {
		return fmt.Errorf("no backup was taken")
	}
	store, err := r.clusterStore(ctx, v.cluster)
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

func (r *Reconciler) defragment(ctx context.Context, v *view, a plan.Defragment) error {
	member, err := v.target(a.Member, a.ID)
	if err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	if err := r.etcd.Defragment(ctx, v.cluster.Key(), member); err != nil {
		return err
	}
	return r.updateRecord(ctx, v, func(record *Record) {
		kept := map[string]time.Time{a.Member: r.now().UTC()}
		for member, at := range record.Defragmented {
			if _, known := record.Members[member]; known && member != a.Member {
				kept[member] = at
			}
		}
		record.Defragmented = kept
	})
}

func (r *Reconciler) disarm(ctx context.Context, v *view, a plan.Disarm) error {
	return r.etcd.Disarm(ctx, v.cluster.Key(), v.endpoints, plan.Alarm{Kind: a.Alarm, MemberID: a.MemberID})
}
