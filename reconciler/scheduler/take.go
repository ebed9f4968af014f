package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// take takes a backup that is due. Where it goes is recorded before
// its first byte, so that a quorate that is killed at any point finds it again.
func (s *Scheduler) take(ctx context.Context, q desired.Backup, k *kept, due schedule.Due) (time.Duration, error) {
	release, ok := s.Slots.TryAcquire()
	if !ok {
		return s.waitsFor(q, fmt.Sprintf("%d other backups are being taken, and --max-backups allows no more", s.Slots.Places()), placeWait)
	}
	defer release()
	if s.Options.Runner == InJob {
		n, err := s.Jobs.Running(ctx, naming.LabelBackupOf)
		if err != nil {
			return 0, err
		}
		// This one has a place, too, until its Job is there to be counted.
		if here := s.Slots.Taken() - 1; n+here >= s.Slots.Places() {
			return s.waitsFor(q, fmt.Sprintf("%d Jobs and %d backups of the daemon itself are under way, and --max-backups allows no more", n, here), placeWait)
		}
	}
	source, awaited, err := s.findSource(ctx, q)
	if err != nil {
		return 0, err
	}
	if awaited != "" {
		return s.waitsFor(q, awaited, s.Options.Resync)
	}
	if source.stranger {
		defer s.Members.Forget(source.cluster)
	}
	s.reportBegin(q, due, source)
	to := s.effective(q)
	place, err := stores.NewURL(to.ObjectURLTemplate, schema.ObjectURLData{Namespace: q.Metadata.Namespace, Name: source.name, Version: source.version}, s.Now())
	if err != nil {
		return 0, s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.ClusterName(), err))
	}
	k.record.Begun = &begunBackup{URL: place, SpecHash: q.Hash(), At: due.At.UTC(), Since: s.Now().UTC()}
	if s.Options.Runner == InJob {
		return pollJobEvery, s.startJob(ctx, q, k, source, to)
	}
	if err := s.writeRequest(ctx, q, k); err != nil {
		return 0, err
	}
	m, err := s.saveSnapshot(ctx, source, to, q.Metadata.Namespace, place, manifestFor(q, source, k))
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err() // the next process finds how far this got
	case err != nil:
		return 0, s.requestFailed(ctx, q, k, err)
	}
	return 0, s.requestDone(ctx, q, k, m, s.Now())
}

// saveSnapshot streams the member's database to its place, and returns when what
// the store holds has been read back.
func (s *Scheduler) saveSnapshot(ctx context.Context, from source, to schema.Destination, namespace, place string, m backup.Manifest) (backup.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, backup.Timeout)
	defer cancel()
	store, err := s.Stores.Open(ctx, namespace, to)
	if err != nil {
		return backup.Manifest{}, err
	}
	if err := s.Lease(); err != nil {
		return backup.Manifest{}, err
	}
	snapshot, err := s.Members.Snapshot(ctx, from.cluster, from.target)
	if err != nil {
		return backup.Manifest{}, fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = snapshot.Close() }()
	return store.Save(ctx, place, s.Slots.Throttle(ctx, snapshot), m)
}

// manifestFor describes the backup that is about to be taken.
func manifestFor(q desired.Backup, from source, k *kept) backup.Manifest {
	m := backup.Manifest{
		Namespace: q.Metadata.Namespace, Name: from.name, ClusterID: from.target.ClusterID, Member: from.member.Name,
		Commit: q.Commit, Time: k.record.Begun.Since,
	}
	if q.Schedule != nil {
		m.Schedule, m.ScheduleUID, m.Reason = q.Name(), string(k.live.UID), "schedule "+q.Metadata.Name
	} else {
		m.Request, m.Reason = q.Metadata.Name, "backup "+q.Metadata.Name
	}
	stores.DescribeSource(&m, from.member)
	return m
}

// settle finds out how a backup ended that was begun and never noted. The manifest
// is written last, so that it is there exactly when the backup is good.
func (s *Scheduler) settle(ctx context.Context, q desired.Backup, k *kept) error {
	return s.settleWith(ctx, q, k, "quorate ended while it took this backup")
}

// settleWith is settle with what is known of why there may be no manifest.
func (s *Scheduler) settleWith(ctx context.Context, q desired.Backup, k *kept, why string) error {
	begun := *k.record.Begun
	store, err := s.Stores.Open(ctx, q.Metadata.Namespace, s.effective(q))
	var m backup.Manifest
	if err == nil {
		m, err = store.ReadManifest(ctx, begun.URL)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return s.requestDone(ctx, q, k, m, m.Time)
	case errors.Is(err, backup.ErrNotFound) || begun.SpecHash != q.Hash():
		// Where another spec is wanted, a store that is gone must not be in its way.
		if errors.Is(err, backup.ErrNotFound) {
			s.Stores.Discard(ctx, store, q.Key(), begun.URL)
		}
		k.record.Begun = nil
		if begun.Failed || begun.SpecHash != q.Hash() {
			return s.writeRequest(ctx, q, k)
		}
		err = errors.New(why)
	}
	return s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.ClusterName(), err))
}

// requestDone notes a good backup.
func (s *Scheduler) requestDone(ctx context.Context, q desired.Backup, k *kept, m backup.Manifest, ended time.Time) error {
	took := max(0, ended.Sub(m.Time))
	k.record.succeeded(q, m, ended, took)
	if err := s.writeRequest(ctx, q, k); err != nil {
		return err
	}
	s.reportBackup(q, k, m, took)
	return nil
}

// requestFailed notes a failure. It is tried again, later each time.
func (s *Scheduler) requestFailed(ctx context.Context, q desired.Backup, k *kept, failure error) error {
	k.record.failed(failure, s.Now())
	if err := s.writeRequest(ctx, q, k); err != nil {
		return err
	}
	s.reportBackupFailure(q, k, failure)
	return nil
}
