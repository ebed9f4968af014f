package execute

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// takeBackup streams a snapshot of the member into the store, and records it
// once what the store holds has been read back.
func (e *Executor) takeBackup(ctx context.Context, v *observe.View, a action.TakeBackup) error {
	ctx, cancel := context.WithTimeout(ctx, backup.Timeout)
	defer cancel()
	url, err := e.backupURL(v)
	if err != nil {
		return err
	}
	store, err := e.Stores.OfCluster(ctx, v.Cluster)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	member, err := target(v, a.Member, a.MemberID, "back up")
	if err != nil {
		return err
	}
	release, err := e.Slots.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("back up: wait for a place among the backups: %w", err)
	}
	defer release()
	if err := e.noteAttempt(ctx, v, store, url); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	snapshot, err := e.Members.Snapshot(ctx, v.Cluster.Key(), member)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = snapshot.Close() }()
	m, err := store.Save(ctx, url, e.Slots.Throttle(ctx, snapshot), e.manifestOf(v, a))
	if err != nil {
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) {
		rec.BackupBegun = ""
		rec.Backup = &record.Backup{
			ClusterID: m.ClusterID, For: string(a.For), URL: url,
			SHA256: m.SHA256, Revision: m.Revision, Size: m.Size, TakenAt: e.Now().UTC(),
		}
	})
}

// noteAttempt records where the backup goes before its first byte, and removes
// what the one before has left there, if that did not come to its end.
func (e *Executor) noteAttempt(ctx context.Context, v *observe.View, store backup.Store, url string) error {
	if err := e.Lease(); err != nil {
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) {
		if rec.BackupBegun != "" {
			e.Stores.Discard(ctx, store, v.Cluster.Key(), rec.BackupBegun)
		}
		rec.BackupBegun = url
	})
}

// backupURL is the place of one more backup of the cluster.
func (e *Executor) backupURL(v *observe.View) (string, error) {
	c := v.Cluster
	url, err := stores.NewURL(c.BackupURL(e.Options.BackupURL), schema.ObjectURLData{Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Version: c.Spec.Version}, e.Now())
	if err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	return url, nil
}

// manifestOf describes the backup that is about to be taken.
func (e *Executor) manifestOf(v *observe.View, a action.TakeBackup) backup.Manifest {
	m := backup.Manifest{
		Namespace: v.Cluster.Metadata.Namespace, Name: v.Cluster.Metadata.Name,
		ClusterID: a.ClusterID, Member: a.Member, Commit: v.Cluster.Commit,
		Reason: a.Why, Time: e.Now(),
	}
	if to := a.For.Target(); isRelease(to) {
		m.TargetVersion = to
	}
	for _, round := range v.Observed.Rounds {
		for _, member := range round.Members {
			if member.ID == a.MemberID {
				stores.DescribeSource(&m, member)
			}
		}
	}
	return m
}

// isRelease reports whether a text is a version of etcd.
func isRelease(text string) bool {
	_, err := release.Parse(text)
	return err == nil
}
