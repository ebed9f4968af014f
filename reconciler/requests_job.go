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
	// labelTaking marks the Job of a backup, and its pod, with the request's name.
	labelTaking = "quorate.dev/backup-of"
	// takingLook is the time between two looks at such a Job.
	takingLook = 2 * time.Second
	// Where its pod finds the Secrets.
	takingTLS         = "/etc/quorate/tls"
	takingCredentials = "/etc/quorate/credentials" //nolint:gosec // a path
)

// takeByJob has a Job take a backup. It is named in the record before it exists.
// Whether the backup is good, its manifest alone says.
func (r *Reconciler) takeByJob(ctx context.Context, q Request, k *keptRequest, s backupSource, to schema.Destination) error {
	if to.Credentials.SecretName == "" {
		return r.requestFailed(ctx, q, k, fmt.Errorf("back up %s: with --backup-runner=job the destination needs credentials.secretName, for a Job has not the daemon's own identity: name the Secret", q.clusterName()))
	}
	begun := *k.record.Begun
	name, err := q.newJob("backup")
	if err != nil {
		return err
	}
	begun.Job = name
	k.record.Begun = &begun
	if err := r.writeRequest(ctx, q, k); err != nil {
		return err
	}
	job := renderTaking(q, k, s, to, r.options.Render.GuardImage, r.requests.share)
	if _, err := r.kube.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// followTaking looks how far the Job of a backup is. When it has ended, or is gone,
// the manifest says how; before, nothing of what it does is touched.
func (r *Reconciler) followTaking(ctx context.Context, q Request, k *keptRequest) (time.Duration, error) {
	name, ns := k.record.Begun.Job, q.Metadata.Namespace
	job, err := r.readJob(ctx, ns, name)
	if err != nil {
		return 0, err
	}
	pods, err := r.podsOfJob(ctx, ns, name)
	if err != nil {
		return 0, err
	}
	said := restoreSaid(pods)
	switch {
	case job != nil && jobEnd(job) == nil:
		if said != "" {
			return r.waitsFor(q, "Job "+name+": "+said, takingLook)
		}
		return takingLook, nil
	case job == nil && len(pods) > 0:
		return takingLook, nil // it was deleted, and may still write
	}
	if err := r.settleWith(ctx, q, k, cmp.Or(said, "its Job "+name+" ended without a word, or is gone")); err != nil {
		return 0, err
	}
	return 0, r.removeRestore(ctx, ns, name)
}

// renderTaking is the Job that takes one backup, with a share of the bandwidth in
// bytes a second, or 0. Secrets are mounted by the kubelet: nothing secret is in it.
func renderTaking(q Request, k *keptRequest, s backupSource, to schema.Destination, image string, share int64) *batchv1.Job {
	begun := k.record.Begun
	// A manifest of this package's making always encodes.
	manifest, _ := json.Marshal(q.manifest(s, k))
	args := []string{"take-backup", "--address=" + s.target.Address, "--host=" + s.target.Host, "--member-id=" + s.target.ID, "--url=" + begun.URL, "--manifest=" + string(manifest), "--credentials=" + takingCredentials}
	if share > 0 {
		args = append(args, "--bandwidth="+strconv.FormatInt(share, 10))
	}
	for _, r := range to.Encryption.Recipients {
		args = append(args, "--recipient="+r)
	}
	pod := drillPod(nil)
	take := restoreContainerOf(image, args, nil)
	take.Name, take.VolumeMounts = "backup", nil
	mount := func(name, secret, path string) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))}}})
		take.VolumeMounts = append(take.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true})
	}
	mount("credentials", to.Credentials.SecretName, takingCredentials)
	if s.target.TLS != nil {
		take.Args = append(take.Args, "--https")
	}
	if s.tlsSecret != "" {
		mount("tls", s.tlsSecret, takingTLS)
		take.Args = append(take.Args, "--tls="+takingTLS)
	}
	pod.Containers = []corev1.Container{take}
	return requestJob(begun.Job, "quorate-backup", labelTaking, q, k, backupTimeout, time.Hour, pod)
}

// BackupTask is one backup that is taken outside of the daemon.
type BackupTask struct {
	// From is the member. HTTPS says that it speaks TLS; Secret has the data of the
	// Secret for it, and may be nil.
	From   Target
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
		config, problem := strangerTLS(&corev1.Secret{Data: task.Secret}, from.Host)
		if problem != "" {
			return m, errors.New("the Secret with the certificates " + problem)
		}
		from.TLS = sameTLS(config)
	}
	client, err := dialMember(from.Endpoint)
	if err != nil {
		return m, err
	}
	defer client.close()
	if _, err := client.identify(ctx, from); err != nil {
		return m, fmt.Errorf("snapshot of %s: %w", m.Member, err)
	}
	snapshot, err := client.etcd.Snapshot(ctx)
	if err != nil {
		return m, fmt.Errorf("snapshot of %s: %w", m.Member, plainError(err))
	}
	defer func(c io.Closer) { _ = c.Close() }(snapshot)
	return task.Store.Save(ctx, task.URL, slowed(ctx, snapshot, backupLimit(task.Bandwidth)), m)
}
