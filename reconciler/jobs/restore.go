package jobs

import (
	"fmt"
	"slices"
	"strings"

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
	// BackupURLEnv holds a URL by which the backup can be read for some hours. It is
	// no flag, because it gives access to the data: it comes from a Secret.
	BackupURLEnv = "QUORATE_BACKUP_URL"
	// BackupCAEnv holds the certificate of the store's CA, where it has one of its own.
	BackupCAEnv = "QUORATE_BACKUP_CA"
	// BackupIdentityEnv holds the private key that decrypts the backup. It comes from
	// the user's Secret straight into this one step.
	BackupIdentityEnv = "QUORATE_BACKUP_IDENTITY"
	keyIdentity       = "identity"
	// ExitHashMismatch is the exit status of the step of a restore that is no drill when
	// the backup's keys have another hash than etcd said.
	ExitHashMismatch = 4
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
	return slices.ContainsFunc(newestPod(list).Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		ended := pods.LastEnd(s)
		return s.Name == RestoreContainer && ended != nil && ended.ExitCode == ExitHashMismatch
	})
}

// RenderRestore is the Job that makes the volume of a recovered, or restored,
// cluster's first member. It runs where, and as whom, the member would: on the same nodes, with
// the same user, so that the member can read what it wrote.
func RenderRestore(c desired.Cluster, set *appsv1.StatefulSet, image, claim string, g record.Recovering) *batchv1.Job {
	name := RestoreName(c.Metadata.Name, g)
	labels := map[string]string{
		"app.kubernetes.io/name": "quorate-restore", "app.kubernetes.io/instance": c.Metadata.Name,
		"app.kubernetes.io/managed-by": "quorate", naming.LabelRestoreOf: c.Metadata.Name,
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Metadata.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			// What is refused once is refused again; the retries are for a node that
			// goes away.
			BackoffLimit: new(int32(2)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: restorePod(set, corev1.PodSpec{
					Containers: []corev1.Container{restoreStep(c, image, name, g)},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
					}}},
				}),
			},
		},
	}
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

func restoreStep(c desired.Cluster, image, name string, g record.Recovering) corev1.Container {
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
		args, env = append(args, backupArgs(g.Verified)...), backupEnv(g.Verified, name)
	}
	if g.AcceptHashMismatch != "" {
		args = append(args, "--accept-hash-mismatch="+g.AcceptHashMismatch)
	}
	return restoreContainerOf(image, args, env)
}

// backupArgs tell the step that restores which backup it is.
func backupArgs(b backup.Verified) []string {
	return append([]string{"--sha256=" + b.SHA256, fmt.Sprintf("--size=%d", b.Size)}, keysArgs(b)...)
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

// backupEnv lets it read the backup, by the Secret that offers it.
func backupEnv(b backup.Verified, offer string) []corev1.EnvVar {
	from := func(name, secret, key string, optional bool) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key, Optional: &optional,
		}}}
	}
	env := []corev1.EnvVar{from(BackupURLEnv, offer, stores.KeyURL, false), from(BackupCAEnv, offer, stores.KeyCA, true)}
	if b.Decryption != "" {
		env = append(env, from(BackupIdentityEnv, b.Decryption, keyIdentity, false))
	}
	return env
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
