package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// BackupRunner says who takes the backups that Git asks for.
type BackupRunner string

const (
	// RunnerDaemon is the daemon itself: the default.
	RunnerDaemon BackupRunner = "daemon"
	// RunnerJob is a Kubernetes Job for each backup, so that the bytes do not pass
	// through the daemon, and a restart of it costs no backup.
	RunnerJob BackupRunner = "job"
)

const (
	// takingLook is the time between two looks at such a Job.
	takingLook = 2 * time.Second
)

// takeByJob has a Job take a backup. It is named in the record before it exists.
// Whether the backup is good, its manifest alone says.
func (s *Scheduler) takeByJob(ctx context.Context, q desired.Backup, k *keptRequest, from backupSource, to schema.Destination) error {
	if to.Credentials.SecretName == "" {
		return s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: with --backup-runner=job the destination needs credentials.secretName, for a Job has not the daemon's own identity: name the Secret", q.ClusterName()))
	}
	begun := *k.record.Begun
	name, err := jobs.NewName(q, "backup")
	if err != nil {
		return err
	}
	begun.Job = name
	k.record.Begun = &begun
	if err := s.writeRequest(ctx, q, k); err != nil {
		return err
	}
	job := jobs.RenderBackup(jobs.Job{Name: name, For: q, Owner: ownerReference(k)}, jobs.Backup{
		From: from.target, TLSSecret: from.tlsSecret, To: to, URL: begun.URL, Manifest: manifestFor(q, from, k),
		Image: s.options.Render.GuardImage, Bandwidth: s.slots.Share(),
	})
	if _, err := s.kube.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: naming.FieldManager}); err != nil {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// followTaking looks how far the Job of a backup is. When it has ended, or is gone,
// the manifest says how; before, nothing of what it does is touched.
func (s *Scheduler) followTaking(ctx context.Context, q desired.Backup, k *keptRequest) (time.Duration, error) {
	name, ns := k.record.Begun.Job, q.Metadata.Namespace
	job, err := s.jobs.Read(ctx, ns, name)
	if err != nil {
		return 0, err
	}
	pods, err := s.jobs.Pods(ctx, ns, name)
	if err != nil {
		return 0, err
	}
	said := jobs.Said(pods)
	switch {
	case job != nil && jobs.Finished(job) == nil:
		if said != "" {
			return s.waitsFor(q, "Job "+name+": "+said, takingLook)
		}
		return takingLook, nil
	case job == nil && len(pods) > 0:
		return takingLook, nil // it was deleted, and may still write
	}
	if err := s.settleWith(ctx, q, k, cmp.Or(said, "its Job "+name+" ended without a word, or is gone")); err != nil {
		return 0, err
	}
	return 0, s.jobs.Remove(ctx, ns, name)
}
