package reconciler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// bandwidthBurst is how many bytes pass at once where the bandwidth is limited.
const bandwidthBurst = 64 << 10

// takeRequested takes a backup that is due. Where it goes is written down before
// its first byte, so that a quorate that is killed at any point finds it again.
func (r *Reconciler) takeRequested(ctx context.Context, q Request, k *keptRequest, due schedule.Due) (time.Duration, error) {
	release, ok := r.requests.tryPlace()
	if !ok {
		return r.waitsFor(q, fmt.Sprintf("%d other backups are being taken, and --max-backups allows no more", cap(r.requests.places)), placeWait)
	}
	defer release()
	if r.options.BackupRunner == RunnerJob {
		n, err := r.jobsRunning(ctx, labelTaking)
		if err != nil {
			return 0, err
		}
		// This one has a place, too, until its Job is there to be counted.
		if here := len(r.requests.places) - 1; n+here >= cap(r.requests.places) {
			return r.waitsFor(q, fmt.Sprintf("%d Jobs and %d backups of the daemon itself are under way, and --max-backups allows no more", n, here), placeWait)
		}
	}
	source, awaited, err := r.findSource(ctx, q)
	if err != nil {
		return 0, err
	}
	if awaited != "" {
		return r.waitsFor(q, awaited, r.options.Resync)
	}
	if source.stranger {
		defer r.etcd.Forget(source.cluster)
	}
	r.reportBegin(q, due, source)
	to := r.effective(q)
	place, err := r.objectURL(to.ObjectURLTemplate, schema.ObjectURLData{Namespace: q.Metadata.Namespace, Name: source.name, Version: source.version})
	if err != nil {
		return 0, r.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.clusterName(), err))
	}
	k.record.Begun = &begunBackup{URL: place, SpecHash: q.hash(), At: due.At.UTC(), Since: r.now().UTC()}
	if r.options.BackupRunner == RunnerJob {
		return takingLook, r.takeByJob(ctx, q, k, source, to)
	}
	if err := r.writeRequest(ctx, q, k); err != nil {
		return 0, err
	}
	m, err := r.saveSnapshot(ctx, source, to, q.Metadata.Namespace, place, q.manifest(source, k))
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err() // whoever comes next looks how far this got
	case err != nil:
		return 0, r.requestFailed(ctx, q, k, err)
	}
	return 0, r.requestDone(ctx, q, k, m, r.now())
}

// tryPlace takes a place for a backup, if one is free.
func (q *requests) tryPlace() (release func(), ok bool) {
	select {
	case q.places <- struct{}{}:
		return func() { <-q.places }, true
	default:
		return nil, false
	}
}

// awaitPlace takes a place for a backup that something else waits for.
func (q *requests) awaitPlace(ctx context.Context) (release func(), err error) {
	select {
	case q.places <- struct{}{}:
		return func() { <-q.places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// saveSnapshot streams the member's database to its place, and returns when what
// the store holds has been read back.
func (r *Reconciler) saveSnapshot(ctx context.Context, s backupSource, to schema.Destination, namespace, place string, m backup.Manifest) (backup.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	store, err := r.storeOf(ctx, namespace, to)
	if err != nil {
		return backup.Manifest{}, err
	}
	if err := r.options.Lease(); err != nil {
		return backup.Manifest{}, err
	}
	snapshot, err := r.etcd.Snapshot(ctx, s.cluster, s.target)
	if err != nil {
		return backup.Manifest{}, fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = snapshot.Close() }()
	return store.Save(ctx, place, slowed(ctx, snapshot, r.requests.bandwidth), m)
}

// manifest describes the backup that is about to be taken.
func (q Request) manifest(s backupSource, k *keptRequest) backup.Manifest {
	m := backup.Manifest{
		Namespace: q.Metadata.Namespace, Name: s.name, ClusterID: s.target.ClusterID, Member: s.member.Name,
		Commit: q.Commit, Time: k.record.Begun.Since,
	}
	if q.Schedule != nil {
		m.Schedule, m.ScheduleUID, m.Reason = q.Name(), string(k.live.UID), "schedule "+q.Metadata.Name
	} else {
		m.Request, m.Reason = q.Metadata.Name, "backup "+q.Metadata.Name
	}
	describeSource(&m, s.member)
	return m
}

// settle finds out how a backup ended that was begun and never noted. The manifest
// is written last, so that it is there exactly when the backup is good.
func (r *Reconciler) settle(ctx context.Context, q Request, k *keptRequest) error {
	return r.settleWith(ctx, q, k, "quorate ended while it took this backup")
}

// settleWith is settle with what is known of why there may be no manifest.
func (r *Reconciler) settleWith(ctx context.Context, q Request, k *keptRequest, why string) error {
	begun := *k.record.Begun
	store, err := r.storeOf(ctx, q.Metadata.Namespace, r.effective(q))
	var m backup.Manifest
	if err == nil {
		m, err = store.ReadManifest(ctx, begun.URL)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return r.requestDone(ctx, q, k, m, m.Time)
	case errors.Is(err, backup.ErrNotFound) || begun.SpecHash != q.hash():
		// Where another spec is wanted, a store that is gone must not be in its way.
		if errors.Is(err, backup.ErrNotFound) {
			r.discard(ctx, store, q.Key(), begun.URL)
		}
		k.record.Begun = nil
		if begun.Failed || begun.SpecHash != q.hash() {
			return r.writeRequest(ctx, q, k)
		}
		err = errors.New(why)
	}
	return r.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.clusterName(), err))
}

// discard removes what a backup left that never became one. A store that does not
// let it does not keep the next backup back: what is left costs room, and a person
// is told where it is.
func (r *Reconciler) discard(ctx context.Context, store backup.Store, key, objectURL string) {
	if err := store.Discard(ctx, objectURL); err != nil && ctx.Err() == nil {
		r.log.Warn("left behind", "request", key, "url", withoutQuery(objectURL), "error", err.Error(),
			"message", "a backup that did not come to its end may have left an object or parts of an upload there")
	}
}

// requestDone notes a good backup.
func (r *Reconciler) requestDone(ctx context.Context, q Request, k *keptRequest, m backup.Manifest, ended time.Time) error {
	took := max(0, ended.Sub(m.Time))
	k.record.succeeded(q, m, ended, took)
	if err := r.writeRequest(ctx, q, k); err != nil {
		return err
	}
	r.reportBackup(q, k, m, took)
	return nil
}

// requestFailed notes a failure. It is tried again, later each time.
func (r *Reconciler) requestFailed(ctx context.Context, q Request, k *keptRequest, failure error) error {
	k.record.failed(failure, r.now())
	if err := r.writeRequest(ctx, q, k); err != nil {
		return err
	}
	r.reportBackupFailure(q, k, failure)
	return nil
}

// objectURL is the place of one more backup. The name is new every time: nothing
// is ever overwritten, not even a failed try.
func (r *Reconciler) objectURL(template string, d schema.ObjectURLData) (string, error) {
	if template == "" {
		return "", errors.New("nothing says where to put it: set destination.objectURLTemplate, spec.backup.destination of the cluster, or the daemon's --backup-url")
	}
	unique, err := randomHex(3)
	if err != nil {
		return "", err
	}
	d.UID = r.now().UTC().Format("20060102T150405Z") + "-" + unique
	return schema.ExpandObjectURL(template, d)
}

// backupLimit is a limit in bytes a second, nil for none.
func backupLimit(bandwidth int64) *rate.Limiter {
	if bandwidth <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(bandwidth), bandwidthBurst)
}

// slowed is a snapshot that keeps to a limit, if there is one.
func slowed(ctx context.Context, snapshot io.Reader, limit *rate.Limiter) io.Reader {
	if limit == nil {
		return snapshot
	}
	return &slowReader{ctx, snapshot, limit}
}

// slowReader reads no faster than all readers of its limit together may.
type slowReader struct {
	ctx   context.Context
	from  io.Reader
	limit *rate.Limiter
}

func (s *slowReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p[:min(len(p), bandwidthBurst)])
	if n > 0 {
		if werr := s.limit.WaitN(s.ctx, n); werr != nil {
			return n, werr
		}
	}
	return n, err
}

// withoutQuery is a URL as people may see it.
func withoutQuery(objectURL string) string {
	plain, _, _ := strings.Cut(objectURL, "?")
	return plain
}
