package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

const (
	backupContainer = "backup"
	// Where its pod finds the Secrets.
	backupTLS         = "/etc/quorate/tls"
	backupRoot        = "/etc/quorate/root"
	backupCredentials = "/etc/quorate/credentials" //nolint:gosec // a path
)

// Backup is a backup that a Job takes.
type Backup struct {
	// From is the member, and TLSSecret the Secret with the certificates for it, if any.
	From      etcd.Target
	TLSSecret string
	// RootSecret is the Secret with the passwords that user root may have, where quorate comes in
	// by one; "" where it does not. There may be none of that name while authentication is off.
	RootSecret string
	// To has the credentials of the store, URL the object's place, and Manifest what is
	// known of it before.
	To       schema.Destination
	URL      string
	Manifest backup.Manifest
	// Image is quorate's own.
	Image string
	// Bandwidth in bytes a second; 0 is no limit.
	Bandwidth int64
	// Stall is how long nothing of it may move; 0 for the default.
	Stall time.Duration
	// Tells has it say which manifest it has written, so that the daemon can sign that: no
	// pod has the key.
	Tells bool
}

// RenderBackup is the Job that takes one backup. Secrets are mounted by the kubelet:
// nothing secret is in it.
func RenderBackup(j Job, t Backup) *batchv1.Job {
	// A manifest of quorate's own making always encodes.
	manifest, _ := json.Marshal(t.Manifest)
	args := []string{
		"take-backup", "--address=" + t.From.Address, "--host=" + t.From.Host, "--member-id=" + t.From.ID, "--url=" + t.URL,
		"--manifest=" + string(manifest),
	}
	if t.Bandwidth > 0 {
		args = append(args, "--bandwidth="+strconv.FormatInt(t.Bandwidth, 10))
	}
	if t.Stall > 0 && t.Stall != backup.DefaultStall {
		args = append(args, "--stall-timeout="+t.Stall.String())
	}
	if t.Tells {
		args = append(args, "--result="+TerminationLog)
	}
	for _, r := range t.To.Encryption.Recipients {
		args = append(args, "--recipient="+r)
	}
	if t.To.Compression == schema.CompressionNone {
		args = append(args, "--compress=false")
	}
	pod := drillPod(nil)
	take := restoreContainerOf(t.Image, args, nil)
	take.Name, take.VolumeMounts = backupContainer, nil
	mount := func(name, secret, path string) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))}}})
		take.VolumeMounts = append(take.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true})
	}
	switch access := t.To.PodAccess; {
	case t.To.Credentials.SecretName != "":
		mount("credentials", t.To.Credentials.SecretName, backupCredentials)
		take.Args = append(take.Args, "--credentials="+backupCredentials)
	case access.ClaimName != "":
		mountClaim(&pod, &take, access.ClaimName, backup.FileRoot(t.URL), false)
	default:
		pod.ServiceAccountName = access.ServiceAccountName
	}
	if t.From.TLS != nil {
		take.Args = append(take.Args, "--https")
	}
	if t.TLSSecret != "" {
		mount("tls", t.TLSSecret, backupTLS)
		take.Args = append(take.Args, "--tls="+backupTLS)
	}
	if t.RootSecret != "" {
		mount("root", t.RootSecret, backupRoot)
		pod.Volumes[len(pod.Volumes)-1].Secret.Optional = new(true)
		take.Args = append(take.Args, "--root="+backupRoot)
	}
	pod.Containers = []corev1.Container{take}
	job := j.render("quorate-backup", naming.LabelBackupOf, backup.Timeout, time.Hour, pod)
	labelWorkload(job.Spec.Template.Labels, stores.Way{ServiceAccount: pod.ServiceAccountName})
	return job
}

// Task is one backup that is taken outside of the daemon.
type Task struct {
	// From is the member. HTTPS says that it speaks TLS; Secret has the data of the
	// Secret for it, and may be nil.
	From   etcd.Target
	HTTPS  bool
	Secret map[string][]byte
	// Root are the passwords that user root may have, where the member asks for one.
	Root []etcd.Password
	// Store and URL say where the backup goes, Manifest what is known of it before.
	Store    backup.Store
	URL      string
	Manifest backup.Manifest
	// Bandwidth in bytes a second; 0 for no limit.
	Bandwidth int64
	// Stall is how long nothing of it may move; 0 for the default.
	Stall time.Duration
}

// Written is the digest of the manifest that the pod of such a Job says it has written, ""
// where none says so: what the daemon may sign comes by the kubelet, and not from the store.
func Written(list []corev1.Pod) string {
	pod := newestPod(list)
	for _, s := range pod.Status.ContainerStatuses {
		if end := pods.LastEnd(s); s.Name == backupContainer && end != nil && end.ExitCode == 0 {
			return strings.TrimSpace(end.Message)
		}
	}
	return ""
}

// Started reports whether a container of a Job's pods has run.
func Started(pods []corev1.Pod) bool {
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil || c.State.Terminated != nil {
				return true
			}
		}
	}
	return false
}

// Take is what the pod of such a Job does: it streams the member's database to
// its place, and returns when what the store holds has been read back.
func Take(ctx context.Context, task Task) (backup.Manifest, error) {
	from, m := task.From, task.Manifest
	if task.HTTPS {
		config, problem := etcd.ExternalTLS(&corev1.Secret{Data: task.Secret}, from.Host)
		if problem != "" {
			return m, errors.New("the Secret with the certificates " + problem)
		}
		from.TLS = etcd.FixedTLS(config)
	}
	if len(task.Root) > 0 {
		from.Login = func(context.Context) ([]etcd.Password, error) { return task.Root, nil }
	}
	calls := &backup.Calls{Stall: task.Stall}
	task.Store.Calls = calls
	ctx, end := calls.Watch(ctx, nil)
	defer end()
	client, err := etcd.Dial(from.Endpoint)
	if err != nil {
		return m, err
	}
	defer client.Close()
	if err := client.Identify(ctx, from); err != nil {
		return m, fmt.Errorf("snapshot of %s: %w", m.Member, backup.Explain(ctx, err))
	}
	snapshot, err := client.Snapshot(ctx)
	if err != nil {
		return m, fmt.Errorf("snapshot of %s: %w", m.Member, backup.Explain(ctx, err))
	}
	defer func(c io.Closer) { _ = c.Close() }(snapshot)
	return task.Store.Save(ctx, task.URL, slots.Throttle(ctx, snapshot, task.Bandwidth), m)
}
