package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// snapshotter takes the backups that a cluster needs for itself.
type snapshotter struct{ *Executor }

// takeBackup streams a snapshot of the member into the store, and records it
// once what the store holds has been read back.
func (e snapshotter) takeBackup(ctx context.Context, v *observe.View, a action.TakeBackup) error {
	url, err := e.backupURL(v)
	if err != nil {
		return err
	}
	store, err := e.Stores.OfCluster(ctx, v.Cluster, url)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	member, err := target(v, a.Member, a.MemberID, "back up")
	if err != nil {
		return err
	}
	place, err := e.placeFor(ctx, a.For, store, url)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer place.Release()
	to := v.Cluster.Spec.Backup.Destination
	unreachable, err := e.Stores.Unreachable(ctx, store, stores.OfferedBy(to, url))
	if err != nil {
		return err
	}
	if err := e.noteAttempt(ctx, v, url); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	m, err := e.saveSnapshot(ctx, v, member, store, place, url, e.manifestOf(v, a))
	if err != nil {
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) {
		rec.BackupBegun = ""
		rec.NoteBackup(record.Backup{
			ClusterID: m.ClusterID, For: string(a.For), URL: url,
			SHA256: m.SHA256, Revision: m.Revision, Size: m.Size, TakenAt: e.Now().UTC(), Unreachable: unreachable,
		})
	})
}

// placeWait is how long a backup waits for a place in one pass. What else its cluster
// needs is looked at in between.
const placeWait = time.Minute

// placeFor takes a place among the backups when the store answers: one that says
// nothing takes none.
func (e snapshotter) placeFor(ctx context.Context, purpose state.Purpose, store backup.Store, url string) (*slots.Place, error) {
	if !e.Stores.Calls.Known(url).Answers {
		if err := store.Reach(ctx, url); err != nil {
			return nil, err
		}
	}
	defer e.Stores.Calls.Wait(ctx)()
	waiting, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	known := e.Stores.Calls.Known(url)
	f := slots.For{Kind: slots.Step, Store: known.Store, Stuck: known.Stalls}
	if purpose.IsRepair() {
		f.Kind = slots.Repair
	}
	place, err := e.Slots.Acquire(waiting, f)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%d other backups are being taken, and --max-backups allows no more; it is tried again", e.Slots.Places())
	}
	return place, err
}

// saveSnapshot streams the member's database to its place, for as long as it moves.
func (e snapshotter) saveSnapshot(ctx context.Context, v *observe.View, member etcd.Target, store backup.Store, place *slots.Place, url string, m backup.Manifest) (backup.Manifest, error) {
	ctx, end := e.Stores.Calls.Watch(ctx, place.Release)
	defer end()
	snapshot, err := e.Members.Snapshot(ctx, v.Cluster.Key(), member)
	if err != nil {
		return m, fmt.Errorf("back up: %w", backup.Explain(ctx, err))
	}
	defer func() { _ = snapshot.Close() }()
	return store.Save(ctx, url, e.Slots.Throttle(ctx, snapshot), m)
}

// noteAttempt removes what the backup before has left, if that did not come to its end,
// and records where this one goes before its first byte. A place that cannot be reached
// any more keeps no backup back.
func (e snapshotter) noteAttempt(ctx context.Context, v *observe.View, url string) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if err := e.Lease(v.Cluster.Key()); err != nil {
		return err
	}
	if rec.BackupBegun != "" {
		c := v.Cluster
		place, err := stores.NewPlace(c.BackupURL(e.Options.BackupURL), urlData(v))
		if err != nil {
			return err
		}
		e.Stores.Discard(ctx, place, c.Spec.Backup.Destination.Credentials.SecretName, c.Key(), rec.BackupBegun)
	}
	if err := e.Lease(v.Cluster.Key()); err != nil { // that may have taken long
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) { rec.BackupBegun = url })
}

// backupURL is the place of one more backup of the cluster.
func (e snapshotter) backupURL(v *observe.View) (string, error) {
	url, err := stores.NewURL(v.Cluster.BackupURL(e.Options.BackupURL), urlData(v), e.Now())
	if err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	return url, nil
}

// urlData are the names in the URL of a cluster's own backups.
func urlData(v *observe.View) schema.ObjectURLData {
	c := v.Cluster
	return schema.ObjectURLData{Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Version: c.Spec.Version}
}

// manifestOf describes the backup that is about to be taken.
func (e snapshotter) manifestOf(v *observe.View, a action.TakeBackup) backup.Manifest {
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
