package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/stores"
)

const (
	// RestoreContainer is the name of the container that restores.
	RestoreContainer = "restore"
	// BackupURLEnv holds, where no Secret is mounted, a URL by which the backup can be
	// read. It is no flag, because it gives access to the data.
	BackupURLEnv = "QUORATE_BACKUP_URL"
	// BackupCAEnv holds the certificate of the store's CA, where it has one of its own.
	BackupCAEnv = "QUORATE_BACKUP_CA"
	// restoreOffer is where the step finds the Secret that offers the backup. It is
	// mounted, and no environment, because it is renewed while the step runs.
	restoreOffer = "/etc/quorate/offer"
	// BackupIdentityEnv holds the private key that decrypts the backup. It comes from
	// the user's Secret straight into this one step.
	BackupIdentityEnv = "QUORATE_BACKUP_IDENTITY"
	keyIdentity       = "identity"
	// ExitHashMismatch is the exit status of the step of a restore that is no drill when
	// the backup's keys have another hash than etcd said.
	ExitHashMismatch = 4
	// ExitNoRoom is its exit status when the volume has had no room for a while. Another
	// pod tries again, for which the volume is mounted anew: some grow by that alone.
	ExitNoRoom = 5
)

// RestoreName is the name of the Job, and of its Secret: another one for every
// recovery and restore, so that no old Job is ever taken for this one's.
func RestoreName(cluster string, g record.Recovering) string {
	suffix := g.Token[strings.LastIndex(g.Token, "-")+1:]
	noun := "-recovery-"
	if g.ClusterID == "" {
		noun = "-restore-"
	}
	name := cluster + noun + suffix[:min(8, len(suffix))]
	if g.AcceptHashMismatch != "" {
		name += acceptedSuffix
	}
	return name
}

// acceptedSuffix ends the name of a Job that restores what the one before refused.
const acceptedSuffix = "-2"

// RestoreNames are those of all Jobs of a recovery or restore.
func RestoreNames(cluster string, g record.Recovering) []string {
	names := []string{RestoreName(cluster, g)}
	if g.AcceptHashMismatch != "" {
		names = append(names, strings.TrimSuffix(names[0], acceptedSuffix))
	}
	return names
}

// RefusedForItsHash reports whether the last try of a restore found that the backup's
// keys have another hash than etcd said.
func RefusedForItsHash(list []corev1.Pod) bool {
	return restoreEnded(newestPod(list)) == ExitHashMismatch
}

// LacksRoom is what the last try of a restore said that has ended for want of room on the
// volume, or "". The next one may be looking again.
func LacksRoom(list []corev1.Pod) string {
	ended := newestPod(slices.DeleteFunc(slices.Clone(list), func(p corev1.Pod) bool { return restoreEnded(p) == 0 }))
	if restoreEnded(ended) != ExitNoRoom {
		return ""
	}
	return pods.Trouble(&ended)
}

// restoreEnded is the exit status of the step of a restore, 0 while it runs or where it
// has succeeded.
func restoreEnded(pod corev1.Pod) int32 {
	for _, s := range pod.Status.ContainerStatuses {
		if ended := pods.LastEnd(s); ended != nil && s.Name == RestoreContainer {
			return ended.ExitCode
		}
	}
	return 0
}

// RenderRestore is the Job that makes the volume of a recovered, or restored,
// cluster's first member. It runs where, and as whom, the member would: on the same nodes, with
// the same user, so that the member can read what it wrote.
func RenderRestore(c desired.Cluster, set *appsv1.StatefulSet, image, claim string, g record.Recovering, way stores.Way) *batchv1.Job {
	name := RestoreName(c.Metadata.Name, g)
	labels := map[string]string{
		"app.kubernetes.io/name": "quorate-restore", "app.kubernetes.io/instance": c.Metadata.Name,
		"app.kubernetes.io/managed-by": "quorate", naming.LabelRestoreOf: c.Metadata.Name,
	}
	spec := corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}}
	step := restoreStep(c, image, g)
	if g.ObjectURL != "" {
		mountOffer(&spec, &step, name, way)
		labelWorkload(labels, way)
	}
	spec.Containers = []corev1.Container{step}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Metadata.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			// What is refused once is refused again; the retries are for a node that
			// goes away.
			BackoffLimit: new(int32(2)), ActiveDeadlineSeconds: new(int64(restoreTimeout(g.Size).Seconds())),
			// One that waits for room has not failed: Git may enlarge the volume.
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: batchv1.PodFailurePolicyActionIgnore,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					ContainerName: new(RestoreContainer), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{ExitNoRoom},
				},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       restorePod(set, spec),
			},
		},
	}
}

// restoreTimeout bounds a restore, whose pod may have to wait for its node. It is
// generous: the download is bounded by its own progress.
func restoreTimeout(size int64) time.Duration {
	const slow = 1 << 20 // bytes a second
	return 24*time.Hour + time.Duration(size/slow)*time.Second
}

// restorePod gives the pod of a Job what decides where it runs and as whom, and
// nothing of Kubernetes' own.
func restorePod(set *appsv1.StatefulSet, pod corev1.PodSpec) corev1.PodSpec {
	pod.RestartPolicy, pod.AutomountServiceAccountToken, pod.EnableServiceLinks = corev1.RestartPolicyNever, new(false), new(false)
	if set == nil {
		return pod
	}
	member := set.Spec.Template.Spec
	pod.SecurityContext, pod.NodeSelector, pod.Tolerations = member.SecurityContext, member.NodeSelector, member.Tolerations
	if a := member.Affinity; a != nil && a.NodeAffinity != nil {
		pod.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity} // a new volume goes where the pod does
	}
	pod.ImagePullSecrets, pod.PriorityClassName = member.ImagePullSecrets, member.PriorityClassName
	return pod
}

func restoreStep(c desired.Cluster, image string, g record.Recovering) corev1.Container {
	args := []string{
		"restore-volume", "--volume=" + naming.VolumePath, "--member=" + g.Member, "--peer-url=" + naming.PeerURL(c.EtcdCluster, g.Member),
	}
	if g.FormerToken != "" {
		args = append(args, "--former-token="+g.FormerToken)
	}
	args = append(args, "--token="+g.Token, atLeast(g.Verified))
	if g.Above > 0 {
		args = append(args, fmt.Sprintf("--above=%d", g.Above))
	}
	var env []corev1.EnvVar
	if g.ObjectURL != "" {
		args, env = append(args, backupArgs(g.Verified)...), backupEnv(g.Verified)
	}
	if g.AcceptHashMismatch != "" {
		args = append(args, "--accept-hash-mismatch="+g.AcceptHashMismatch)
	}
	return restoreContainerOf(image, args, env)
}

// backupArgs tell the step that restores which backup it is.
func backupArgs(b backup.Verified) []string {
	args := []string{"--sha256=" + b.SHA256, fmt.Sprintf("--size=%d", b.Size), fmt.Sprintf("--snapshot-size=%d", b.DatabaseSize())}
	if b.Compression != "" {
		args = append(args, "--compression="+b.Compression)
	}
	return append(args, keysArgs(b)...)
}

// keysArgs tell what etcd said of its keys, if anything.
func keysArgs(b backup.Verified) []string {
	if b.HashRevision == 0 {
		return nil
	}
	return []string{fmt.Sprintf("--hash=%d", b.Hash), fmt.Sprintf("--hash-revision=%d", b.HashRevision), fmt.Sprintf("--compact-revision=%d", b.CompactRevision)}
}

// atLeast tells the revision that must have been reached.
func atLeast(b backup.Verified) string { return fmt.Sprintf("--at-least=%d", b.Revision) }

// mountOffer lets a step read the backup, by the Secret that offers it, and by what it
// needs for that besides.
func mountOffer(pod *corev1.PodSpec, step *corev1.Container, offer string, way stores.Way) {
	mountSecret(pod, step, "offer", offer, restoreOffer)
	step.Args = append(step.Args, "--offer="+restoreOffer)
	pod.ServiceAccountName = way.ServiceAccount
	if way.Credentials != "" {
		mountSecret(pod, step, "credentials", way.Credentials, backupCredentials)
		step.Args = append(step.Args, "--credentials="+backupCredentials)
	}
	if way.Claim != "" {
		mountClaim(pod, step, way.Claim, way.Root, true)
	}
}

// mountClaim mounts the claim with the files of a file store where its URLs say.
func mountClaim(pod *corev1.PodSpec, step *corev1.Container, claim, root string, readOnly bool) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "backups", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
	step.VolumeMounts = append(step.VolumeMounts, corev1.VolumeMount{Name: "backups", MountPath: root, ReadOnly: readOnly})
}

// labelWorkload asks Azure's webhook for the identity of a ServiceAccount. The other
// clouds go by the ServiceAccount alone.
func labelWorkload(labels map[string]string, way stores.Way) {
	if way.ServiceAccount != "" {
		labels["azure.workload.identity/use"] = "true"
	}
}

// mountSecret mounts a Secret, which the user of any pod may read: it has no other user.
func mountSecret(pod *corev1.PodSpec, step *corev1.Container, name, secret, path string) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o444))}}})
	step.VolumeMounts = append(step.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true})
}

// backupEnv gives it the private key of an encrypted backup.
func backupEnv(b backup.Verified) []corev1.EnvVar {
	if b.Decryption == "" {
		return nil
	}
	return []corev1.EnvVar{{Name: BackupIdentityEnv, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: b.Decryption}, Key: keyIdentity, Optional: new(false),
	}}}}
}

// restoreContainerOf is the container of a step that restores.
func restoreContainerOf(image string, args []string, env []corev1.EnvVar) corev1.Container {
	return corev1.Container{
		Name: RestoreContainer, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/usr/local/bin/quorate"}, Args: args, Env: env,
		// The whole database passes through the page cache, which is not counted as
		// needed; the process itself is small.
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}},
		VolumeMounts:             []corev1.VolumeMount{{Name: "data", MountPath: naming.VolumePath}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
