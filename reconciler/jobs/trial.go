package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
)

const (
	// TrialTimeout is how long a volume, and the pod that mounts it, may take.
	TrialTimeout = 15 * time.Minute
	// trialKept is how long a trial counts after its end.
	trialKept = 6 * time.Hour
)

// OfTrial are the Jobs that try a storage class for a cluster.
func OfTrial(c desired.Cluster) Of {
	return Of{Namespace: c.Metadata.Namespace, Label: naming.LabelTrialOf, Name: c.Metadata.Name}
}

// TrialName is the name of the Job that tries a class: another one for each class and size.
func TrialName(cluster, class string, size int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", class, size))
	return cluster[:min(50, len(cluster))] + "-trial-" + hex.EncodeToString(sum[:4])
}

// RenderTrial is the Job that mounts a volume of a class where members may run, and ends. The volume goes with its pod.
func RenderTrial(c desired.Cluster, set *appsv1.StatefulSet, image, class string, size int64) *batchv1.Job {
	labels := map[string]string{
		"app.kubernetes.io/name": "quorate-trial", "app.kubernetes.io/instance": c.Metadata.Name,
		"app.kubernetes.io/managed-by": "quorate", naming.LabelTrialOf: c.Metadata.Name,
	}
	asks := corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}
	claim := &corev1.PersistentVolumeClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: asks},
		},
	}
	pod := drillPod(set)
	pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: claim},
	}}}
	mounts := restoreContainerOf(image, []string{"version"}, nil)
	mounts.Name = "trial"
	pod.Containers = []corev1.Container{mounts}
	name := TrialName(c.Metadata.Name, class, size)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Metadata.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit:            new(int32(2)),
			ActiveDeadlineSeconds:   new(int64(TrialTimeout.Seconds())),
			TTLSecondsAfterFinished: new(int32(trialKept.Seconds())),
			Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}
