package reconciler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// backupTimeout bounds one backup, however large the database.
const backupTimeout = time.Hour

// takeBackup streams a snapshot of the member into the store, and records it
// once what the store holds has been read back.
func (r *Reconciler) takeBackup(ctx context.Context, v *view, a plan.TakeBackup) error {
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	url, err := r.backupURL(v)
	if err != nil {
		return err
	}
	store, err := r.clusterStore(ctx, v.cluster)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	member, err := v.target(a.Member, a.MemberID)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	release, err := r.requests.awaitPlace(ctx)
	if err != nil {
		return fmt.Errorf("back up: wait for a place among the backups: %w", err)
	}
	defer release()
	if err := r.noteAttempt(ctx, v, store, url); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	snapshot, err := r.etcd.Snapshot(ctx, v.cluster.Key(), member)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = snapshot.Close() }()
	m, err := store.Save(ctx, url, slowed(ctx, snapshot, r.requests.bandwidth), r.manifestOf(v, a))
	if err != nil {
		return err
	}
	return r.updateRecord(ctx, v, func(record *Record) {
		record.BackupBegun = ""
		record.Backup = &BackupRecord{
			ClusterID: m.ClusterID, For: a.For, URL: url,
			SHA256: m.SHA256, Revision: m.Revision, Size: m.Size, TakenAt: r.now().UTC(),
		}
	})
}

// noteAttempt writes down where the backup goes before its first byte, and removes
// what the one before has left there, if that did not come to its end.
func (r *Reconciler) noteAttempt(ctx context.Context, v *view, store backup.Store, url string) error {
	if err := r.options.Lease(); err != nil {
		return err
	}
	return r.updateRecord(ctx, v, func(record *Record) {
		if record.BackupBegun != "" {
			r.discard(ctx, store, v.cluster.Key(), record.BackupBegun)
		}
		record.BackupBegun = url
	})
}

// backupURL is the place of one more backup of the cluster.
func (r *Reconciler) backupURL(v *view) (string, error) {
	c := v.cluster
	url, err := r.objectURL(r.backupTemplate(c), schema.ObjectURLData{Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Version: c.Spec.Version})
	if err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	return url, nil
}

// manifestOf describes the backup that is about to be taken.
func (r *Reconciler) manifestOf(v *view, a plan.TakeBackup) backup.Manifest {
	m := backup.Manifest{
		Namespace: v.cluster.Metadata.Namespace, Name: v.cluster.Metadata.Name,
		ClusterID: a.ClusterID, Member: a.Member, Commit: v.cluster.Commit,
		Reason: a.Why, Time: r.now(),
	}
	if to := strings.TrimPrefix(a.For, plan.DowngradeTo("")); isRelease(to) {
		m.TargetVersion = to
	}
	for _, round := range v.observed.Rounds {
		for _, member := range round.Members {
			if member.ID == a.MemberID {
				describeSource(&m, member)
			}
		}
	}
	return m
}

// isRelease says whether a text is a version of etcd.
func isRelease(text string) bool {
	_, err := release.Parse(text)
	return err == nil
}

// describeSource adds what the member said of itself.
func describeSource(m *backup.Manifest, member plan.Member) {
	m.EtcdVersion, m.StorageVersion = member.Version, member.StorageVersion
	m.Revision = max(m.Revision, member.Revision)
	if member.HashRevision > 0 {
		m.Hash, m.HashRevision, m.CompactRevision, m.Keys = member.Hash, member.HashRevision, member.CompactRevision, member.Keys
	}
}
