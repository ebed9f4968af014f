package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// take takes a backup that is due. Where it goes is recorded before
// its first byte, so that a quorate that is killed at any point finds it again.
func (s *Scheduler) take(ctx context.Context, q desired.Backup, k *kept, due schedule.Due) (time.Duration, error) {
	to := s.effective(q)
	room, err := s.reach(ctx, q, to)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.ClusterName(), err))
	}
	among, full, err := s.placeInTurn(ctx, q.Metadata.Namespace, room)
	if err != nil {
		return 0, err
	}
	if full != "" {
		return s.waitsFor(q, full, placeWait)
	}
	defer among.Release()
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
	place, err := stores.NewURL(to.ObjectURLTemplate, schema.ObjectURLData{Namespace: q.Metadata.Namespace, Name: source.name, Version: source.version}, s.Now())
	if err != nil {
		return 0, s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.ClusterName(), err))
	}
	if err := s.reportWhetherItRestores(ctx, q, k, to, place); err != nil {
		return 0, err
	}
	k.record.Begun = &begunBackup{URL: place, To: placeOf(to), SpecHash: q.Hash(), At: due.At.UTC(), Since: s.Now().UTC()}
	if s.Options.Runner == InJob {
		return pollJobEvery, s.startJob(ctx, q, k, source, to)
	}
	if err := s.writeRequest(ctx, q, k); err != nil {
		return 0, err
	}
	m, err := s.saveSnapshot(ctx, q, source, to, among, place, manifestFor(q, source, k))
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err() // the next process finds how far this got
	case err != nil:
		return 0, s.requestFailed(ctx, q, k, err)
	}
	return 0, s.requestDone(ctx, q, k, m, s.Now())
}

// reach asks the store whether it answers before a backup takes a place that others wait
// for. room is the place that it wants.
func (s *Scheduler) reach(ctx context.Context, q desired.Backup, to schema.Destination) (room slots.For, err error) {
	probe, err := stores.NewURL(to.ObjectURLTemplate, s.urlData(q), s.Now())
	if err != nil {
		return room, err
	}
	known := s.Stores.Calls.Known(probe)
	room = slots.For{Kind: slots.Asked, Store: known.Store, Stuck: known.Stalls}
	if known.Answers || s.Slots.Full(room) {
		return room, nil
	}
	store, err := s.Stores.Open(ctx, q.Metadata.Namespace, to, probe)
	if err != nil {
		return room, err
	}
	return room, store.Reach(ctx, probe)
}

// placeInTurn takes such a place when it is the turn of the namespace. Those at a store where
// the last backup got stuck are nobody else's, and have no turns. full says why it has none.
func (s *Scheduler) placeInTurn(ctx context.Context, namespace string, room slots.For) (place *slots.Place, full string, err error) {
	if room.Stuck {
		return s.placeAmong(ctx, room)
	}
	mine := s.turns.Mine(namespace, s.Now())
	place, full, err = s.placeAmong(ctx, room)
	if place == nil || err != nil {
		return nil, full, err
	}
	if !mine {
		place.Release()
		return nil, "other namespaces wait for a place among --max-backups as well, and it is the turn of one of them", nil
	}
	s.turns.Served(namespace, s.Now())
	return place, "", nil
}

// placeAmong takes a place among the backups that Git asks for. full says why there is none.
func (s *Scheduler) placeAmong(ctx context.Context, room slots.For) (place *slots.Place, full string, err error) {
	place, ok := s.Slots.TryAcquire(room)
	if !ok {
		return nil, fmt.Sprintf("%d other backups are being taken, and --max-backups allows no more", s.Slots.Places()), nil
	}
	if s.Options.Runner != InJob {
		return place, "", nil
	}
	// Who has a place has it until its Job is there to be counted, so that those here are
	// counted first.
	here := s.Slots.Taken(slots.Asked)
	if !room.Stuck {
		here--
	}
	n, err := s.running(ctx, naming.LabelBackupOf)
	if err == nil && n+here < s.Slots.Places() {
		return place, "", nil
	}
	place.Release()
	return nil, fmt.Sprintf("%d Jobs and %d backups of the daemon itself are under way, and --max-backups allows no more", n, here), err
}

// running counts the backups and schedules that Git names and a Job runs for, by its label. A Job
// that somebody else has given the label takes no place.
func (s *Scheduler) running(ctx context.Context, label string) (n int, err error) {
	owners, err := s.Jobs.Running(ctx, label)
	for _, q := range s.Backups() {
		if owners[types.NamespacedName{Namespace: q.Metadata.Namespace, Name: RecordName(q)}] {
			n++
		}
	}
	return n, err
}

// reportWhetherItRestores asks, before a backup is taken, whether a restore could read it.
func (s *Scheduler) reportWhetherItRestores(ctx context.Context, q desired.Backup, k *kept, to schema.Destination, place string) error {
	store, err := s.Stores.Open(ctx, q.Metadata.Namespace, to, place)
	if err != nil {
		return nil //nolint:nilerr // the backup itself says so
	}
	why, err := s.Stores.Unreachable(ctx, store, stores.OfferedBy(to, place))
	if err != nil {
		return err
	}
	was := k.record.Unreachable
	k.record.Unreachable = why
	if k.record.Unreachable != "" && k.record.Unreachable != was {
		s.reportUnreachable(q, k)
	}
	return nil
}

// saveSnapshot streams the member's database to its place, for as long as it moves, and
// returns when what the store holds has been read back.
func (s *Scheduler) saveSnapshot(ctx context.Context, q desired.Backup, from source, to schema.Destination, among *slots.Place, place string, m backup.Manifest) (backup.Manifest, error) {
	ctx, end := s.Stores.Calls.Watch(ctx, among.Release)
	defer end()
	store, err := s.Stores.Open(ctx, m.Namespace, to, place)
	if err != nil {
		return backup.Manifest{}, err
	}
	if err := s.Lease(q.ClusterName()); err != nil {
		return backup.Manifest{}, err
	}
	snapshot, err := s.Members.Snapshot(ctx, from.cluster, from.target)
	if err != nil {
		return backup.Manifest{}, fmt.Errorf("back up: %w", backup.Explain(ctx, err))
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
func (s *Scheduler) settle(ctx context.Context, q desired.Backup, k *kept) (time.Duration, error) {
	return s.settleWith(ctx, q, k, "quorate ended while it took this backup")
}

// settleWith is settle with what is known of why there may be no manifest. Where the store
// that Git names cannot tell, it is asked again with the next try, which needs it, too.
// What is not where Git puts the backups of this object is given up, and nothing of it
// read or removed; so is a manifest that makes no sense. Neither keeps a backup back.
func (s *Scheduler) settleWith(ctx context.Context, q desired.Backup, k *kept, why string) (time.Duration, error) {
	begun, named := *k.record.Begun, s.namesPlace(q, *k.record.Begun)
	m, err := s.endOf(ctx, q, begun)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err == nil:
		return 0, s.requestDone(ctx, q, k, m, m.Time)
	case errors.Is(err, errUnclear):
		return s.waitsFor(q, "how the backup ended that was begun is not known yet: "+err.Error(), s.Options.Resync)
	case errors.Is(err, backup.ErrNotFound):
		err = errors.New(why)
	case named && !backup.Unreadable(err) && !errors.Is(err, stores.ErrForeign):
		return 0, s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.ClusterName(), err))
	default:
		named = named && !errors.Is(err, stores.ErrForeign)
		s.reportGivenUp(q, k, err)
	}
	k.record.Begun = nil
	if begun.Failed || !named || begun.SpecHash != q.Hash() {
		return 0, s.writeRequest(ctx, q, k)
	}
	return 0, s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.ClusterName(), err))
}

// endOf is the manifest of a backup that was begun, read as Git says that its place is
// reached. Where there is none, what it left is removed.
func (s *Scheduler) endOf(ctx context.Context, q desired.Backup, begun begunBackup) (m backup.Manifest, err error) {
	place, err := s.place(q)
	if err == nil {
		m, err = s.Stores.Ended(ctx, place, s.effective(q).Credentials.SecretName, q.Key(), begun.URL)
	}
	if err == nil {
		err = place.Owns(m)
	}
	return m, err
}

// namesPlace reports whether Git still says of the place of a backup that was begun what it
// said then, as far as the record tells. While the file of its cluster cannot be read,
// nobody knows better.
func (s *Scheduler) namesPlace(q desired.Backup, begun begunBackup) bool {
	if begun.To == nil { // it was begun by an earlier version
		return begun.SpecHash == q.Hash()
	}
	if name := q.Spec.Source.ClusterName; name != "" {
		if c, named := s.Clusters.Get(q.Metadata.Namespace + "/" + name); !named || len(c.Problems) > 0 {
			return true
		}
	}
	return *begun.To == *placeOf(s.effective(q))
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
