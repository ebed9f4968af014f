package clustertest

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// Claim is a bound claim of 8 GiB.
func Claim(name string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class, eight := "standard", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "db", UID: "u"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: eight}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: eight},
	}
	if change != nil {
		change(claim)
	}
	return claim
}

// Ended is a container that ended and waits for its next start.
func Ended(name string, code int32, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}},
	}
}

// InGit is a cluster as a commit has it: defaulted, 3.5.35, changed by edits.
func InGit(edits ...func(*schema.EtcdCluster)) *desired.Cluster {
	c := Orders(func(c *schema.EtcdCluster) { c.Spec.Version = "3.5.35" })
	schema.Default(&c)
	for _, edit := range edits {
		edit(&c)
	}
	return &desired.Cluster{EtcdCluster: c, Commit: "c0ffee"}
}

// SkipBackup lets an upgrade begin with the roll itself.
func SkipBackup(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupSkip }

// ToVersion sets the release of etcd, as a later commit does.
func ToVersion(v string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.Version = v }
}

// Nightly is the EtcdBackupSchedule shop/nightly of the cluster orders, at two.
func Nightly(edits ...func(*schema.BackupScheduleSpec)) desired.Backup {
	s := schema.EtcdBackupSchedule{}
	s.Metadata.Namespace, s.Metadata.Name = "shop", "nightly"
	s.Spec.Schedule = "0 2 * * *"
	s.Spec.BackupTemplate.Source.ClusterName = "orders"
	for _, edit := range edits {
		edit(&s.Spec)
	}
	return desired.ScheduleOf(s, "0a1b2c3")
}

// Once is the EtcdBackup shop/before-sale of the cluster orders.
func Once(edits ...func(*schema.BackupRequest)) desired.Backup {
	q := desired.Backup{Commit: "0a1b2c3"}
	q.Metadata.Namespace, q.Metadata.Name = "shop", "before-sale"
	q.Spec.Source.ClusterName = "orders"
	for _, edit := range edits {
		edit(&q.Spec)
	}
	return q
}

// ErrAway is what an API server answers that is away.
var ErrAway = errors.New("the API server is away")
