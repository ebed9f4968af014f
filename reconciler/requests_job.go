package reconciler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
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
	// Where its pod finds the Secrets.
	takingTLS         = "/etc/quorate/tls"
	takingCredentials = "/etc/quorate/credentials" //nolint:gosec // a path
)

// takeByJob has a Job take a backup. It is named in the record before it exists.
// Whether the backup is good, its manifest alone says.
func (s *Scheduler) takeByJob(ctx context.Context, q desired.Backup, k *keptRequest, from backupSource, to schema.Destination) error {
	if to.Credentials.SecretName == "" {
		return s.requestFailed(ctx, q, k, fmt.Errorf("back up %s: with --backup-runner=job the destination needs credentials.secretName, for a Job has not the daemon's own identity: name the Secret", q.ClusterName()))
	}
	begun := *k.record.Begun
	name, err := jobName(q, "backup")
	if err != nil {
		return err
	}
	begun.Job = name
	k.record.Begun = &begun
	if err := s.writeRequest(ctx, q, k); err != nil {
		return err
	}
	job := renderTaking(Job{Name: name, For: q, Owner: ownerReference(k)}, Taking{
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
	said := restoreSaid(pods)
	switch {
	case job != nil && jobEnd(job) == nil:
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

// Taking is a backup that a Job takes.
type Taking struct {
	// From is the member, and TLSSecret the Secret with the certificates for it, if any.
	From      etcd.Target
	TLSSecret string
	// To has the credentials of the store, URL the object's place, and Manifest what is
	// known of it before.
	To       schema.Destination
	URL      string
	Manifest backup.Manifest
	// Image is quorate's own.
	Image string
	// Bandwidth in bytes a second; 0 is no limit.
	Bandwidth int64
}

// renderTaking is the Job that takes one backup. Secrets are mounted by the kubelet:
// nothing secret is in it.
func renderTaking(j Job, t Taking) *batchv1.Job {
	// A manifest of quorate's own making always encodes.
	manifest, _ := json.Marshal(t.Manifest)
	args := []string{
		"take-backup", "--address=" + t.From.Address, "--host=" + t.From.Host, "--member-id=" + t.From.ID, "--url=" + t.URL,
		"--manifest=" + string(manifest), "--credentials=" + takingCredentials,
	}
	if t.Bandwidth > 0 {
		args = append(args, "--bandwidth="+strconv.FormatInt(t.Bandwidth, 10))
	}
	for _, r := range t.To.Encryption.Recipients {
		args = append(args, "--recipient="+r)
	}
	pod := drillPod(nil)
	take := restoreContainerOf(t.Image, args, nil)
	take.Name, take.VolumeMounts = "backup", nil
	mount := func(name, secret, path string) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))}}})
		take.VolumeMounts = append(take.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true})
	}
	mount("credentials", t.To.Credentials.SecretName, takingCredentials)
	if t.From.TLS != nil {
		take.Args = append(take.Args, "--https")
	}
	if t.TLSSecret != "" {
		mount("tls", t.TLSSecret, takingTLS)
		take.Args = append(take.Args, "--tls="+takingTLS)
	}
	pod.Containers = []corev1.Container{take}
	return j.render("quorate-backup", naming.LabelBackupOf, backup.Timeout, time.Hour, pod)
}

// BackupTask is one backup that is taken outside of the daemon.
type BackupTask struct {
	// From is the member. HTTPS says that it speaks TLS; Secret has the data of the
	// Secret for it, and may be nil.
	From   etcd.Target
	HTTPS  bool
	Secret map[string][]byte
	// Store and URL say where the backup goes, Manifest what is known of it before.
	Store    backup.Store
	URL      string
	Manifest backup.Manifest
	// Bandwidth in bytes a second; 0 for no limit.
	Bandwidth int64
}

// TakeBackup is what the pod of such a Job does: it streams the member's database to
// its place, and returns when what the store holds has been read back.
func TakeBackup(ctx context.Context, task BackupTask) (backup.Manifest, error) {
	from, m := task.From, task.Manifest
	if task.HTTPS {
		config, problem := etcd.ExternalTLS(&corev1.Secret{Data: task.Secret}, from.Host)
		if problem != "" {
			return m, errors.New("the Secret with the certificates " + problem)
		}
		from.TLS = etcd.FixedTLS(config)
	}
	client, err := etcd.Dial(from.Endpoint)
	if err != nil {
		return m, err
	}
	defer client.Close()
	if err := client.Identify(ctx, from); err != nil {
		return m, fmt.Errorf("snapshot of %s: %w", m.Member, err)
	}
	snapshot, err := client.Snapshot(ctx)
	if err != nil {
		return m, fmt.Errorf("snapshot of %s: %w", m.Member, err)
	}
	defer func(c io.Closer) { _ = c.Close() }(snapshot)
	return task.Store.Save(ctx, task.URL, backup.Throttle(ctx, snapshot, task.Bandwidth), m)
}
