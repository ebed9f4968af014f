package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Runner is what takes the backups that Git asks for.
type Runner string

const (
	// InDaemon is the daemon itself: the default.
	InDaemon Runner = "daemon"
	// InJob is a Kubernetes Job for each backup, so that the bytes do not pass
	// through the daemon, and a restart of it costs no backup.
	InJob Runner = "job"
)

const (
	// pollJobEvery is the time between two looks at such a Job.
	pollJobEvery = 2 * time.Second
	// jobStarts is how long such a Job may wait for its node, its image and its Secrets.
	jobStarts = 30 * time.Minute
)

// startJob has a Job take a backup. It is named in the record before it exists.
// Whether the backup is good, its manifest alone says.
func (s *Scheduler) startJob(ctx context.Context, q desired.Backup, k *kept, from source, to schema.Destination) error {
	if to.Credentials.SecretName == "" && to.PodAccess == (schema.PodAccess{}) {
		return s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: with --backup-runner=job the destination needs credentials.secretName, for a Job has not the daemon's own identity: name the Secret, or give podAccess", q.ClusterName()))
	}
	begun := *k.record.Begun
	// The pod asks nobody whether it may go there.
	if _, err := s.Stores.Open(ctx, q.Metadata.Namespace, to, begun.URL); err != nil {
		return s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: %w", q.ClusterName(), err))
	}
	name, err := jobs.NewName(q, nounBackup)
	if err != nil {
		return err
	}
	begun.Job = name
	k.record.Begun = &begun
	if err := s.writeRequest(ctx, q, k); err != nil {
		return err
	}
	job := jobs.RenderBackup(jobs.Job{Name: name, For: q, Owner: ownerReference(k)}, jobs.Backup{
		From: from.target, TLSSecret: from.tlsSecret, RootSecret: from.rootSecret, To: to, URL: begun.URL, Manifest: manifestFor(q, from, k),
		Image: s.Options.Render.GuardImage, Bandwidth: s.Slots.Share(), Stall: s.Stores.Calls.StallTime(),
		Tells: s.Stores.Keys.Own() != nil,
	})
	if _, err := s.Kube.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: naming.FieldManager}); err != nil {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// pollJob looks how far the Job of a backup is. When it has ended, or is gone,
// the manifest says how; before, nothing of what it does is touched.
func (s *Scheduler) pollJob(ctx context.Context, q desired.Backup, k *kept) (time.Duration, error) {
	name, ns, of := k.record.Begun.Job, q.Metadata.Namespace, jobs.OfRequest(q, naming.LabelBackupOf, k.live.UID)
	job, err := s.Jobs.Read(ctx, of, name)
	switch {
	case errors.Is(err, jobs.ErrForeign):
		return s.settleWith(ctx, q, k, err.Error())
	case err != nil:
		return 0, err
	}
	pods, err := s.Jobs.Pods(ctx, ns, name)
	if err != nil {
		return 0, err
	}
	said, since := jobs.Said(pods), s.Now().Sub(k.record.Begun.Since)
	under := job != nil && jobs.Finished(job) == nil
	switch {
	case under && since > jobStarts && !jobs.Started(pods):
		said = fmt.Sprintf("its Job did not start within %s: %s", jobStarts, cmp.Or(said, "its pod waits for a node"))
		if err := s.removeJob(ctx, q, of, name); err != nil {
			return 0, err
		}
	case under && !s.namesPlace(q, *k.record.Begun): // what it has stored is settled when its pod is gone
		return pollJobEvery, s.removeJob(ctx, q, of, name)
	case under:
		if said != "" {
			return s.waitsFor(q, "Job "+name+": "+said, pollJobEvery)
		}
		return pollJobEvery, nil
	case job == nil && len(pods) > 0 && since < backup.Timeout:
		return pollJobEvery, nil // it was deleted, and may still write
	}
	s.signWritten(ctx, q, k, jobs.Written(pods))
	if wait, err := s.settleWith(ctx, q, k, cmp.Or(said, "its Job "+name+" ended without a word, or is gone")); err != nil || wait > 0 {
		return wait, err
	}
	return 0, s.Jobs.Remove(ctx, of, name)
}

// signWritten signs the manifest that a Job has written: the one of which its pod has said
// so, whatever the store holds by now. One that cannot be signed is a backup all the same.
func (s *Scheduler) signWritten(ctx context.Context, q desired.Backup, k *kept, digest string) {
	if s.Stores.Keys.Own() == nil {
		return
	}
	m, err := s.endOf(ctx, q, *k.record.Begun)
	if err != nil || m.Signature != nil {
		return // there is none, which settling it says
	}
	if digest == "" {
		err = errors.New("its Job did not say which manifest it has written")
	} else if err = s.Lease(q.ClusterName()); err == nil {
		err = s.Stores.SignWritten(ctx, q.Metadata.Namespace, s.effective(q).Credentials.SecretName, k.record.Begun.URL, digest)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("backup of a Job not signed", "request", q.Key(), "url", m.Object, "error", err.Error(),
			"remedy", "it is kept, and restored only where Git accepts it by its sha256; look at the Job and the store before the next backup")
	}
}

// removeJob removes a Job that has not ended.
func (s *Scheduler) removeJob(ctx context.Context, q desired.Backup, of jobs.Of, name string) error {
	if err := s.Lease(q.ClusterName()); err != nil {
		return err
	}
	return s.Jobs.Remove(ctx, of, name)
}
