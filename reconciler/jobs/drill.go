package jobs

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

const (
	// DrillContainer is the container that looks at the restored etcd.
	DrillContainer = "compare"
	// drillMember is the name of the etcd of a drill, and drillHost where it
	// listens: nothing outside its pod can reach it.
	drillMember = "trial"
	drillHost   = "127.0.0.1"
	// DrillTimeout bounds one drill, however large the backup.
	DrillTimeout = time.Hour
	// DrillKept is for how long a drill's pod stays that was not removed.
	DrillKept = 15 * time.Minute
	// TerminationLog is where the container writes what it has found.
	TerminationLog = "/dev/termination-log"
)

// RenderDrill is the Job that restores a backup into an etcd of its own, looks at it
// and ends. The first step is that of a real restore; etcd then runs beside the
// container that compares, and ends with it:
//
//	restore   init     the backup → an emptyDir
//	etcd      sidecar  on loopback only
//	compare   main     waits for etcd, and writes what it finds as its last words
func RenderDrill(j Job, b backup.Verified, images DrillImages, set *appsv1.StatefulSet, way stores.Way) *batchv1.Job {
	peer := drillURL(naming.PeerPort)
	args := append([]string{
		"restore-volume", "--trial", "--volume=" + naming.VolumePath, "--member=" + drillMember, "--peer-url=" + peer,
		"--token=" + j.Name, atLeast(b),
	}, backupArgs(b)...)
	room := resource.NewQuantity(drillRoom(b.DatabaseSize()), resource.BinarySI)
	pod := drillPod(set)
	pod.TerminationGracePeriodSeconds = new(int64(5)) // nothing of it is wanted afterwards
	pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: room}}}}
	step := restoreContainerOf(images.Quorate, args, backupEnv(b))
	mountOffer(&pod, &step, j.Name, way)
	pod.InitContainers = []corev1.Container{step, drillEtcd(images.Etcd, j.Name, peer, *room)}
	pod.Containers = []corev1.Container{drillCompare(images.Quorate, b)}
	job := j.render("quorate-drill", naming.LabelDrillOf, DrillTimeout, DrillKept, pod)
	labelWorkload(job.Spec.Template.Labels, way)
	return job
}

// DrillImages are those of a drill's pod.
type DrillImages struct{ Quorate, Etcd string }

// drillRoom is how many bytes a drill may take of its node: what a restore needs, and what
// etcd may write in the time of a drill.
func drillRoom(size int64) int64 { return state.RestoreRoom(size) + 512<<20 }

// drillURL is where the etcd of a drill listens.
func drillURL(port int) string { return fmt.Sprintf("http://%s:%d", drillHost, port) }

// drillPod runs where members may, and pulls images as they do, but without their
// priority.
func drillPod(set *appsv1.StatefulSet) corev1.PodSpec {
	pod := restorePod(set, corev1.PodSpec{})
	pod.PriorityClassName = ""
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(naming.NonRootID)), RunAsGroup: new(int64(naming.NonRootID)), FSGroup: new(int64(naming.NonRootID)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	return pod
}

// drillEtcd is the throw-away etcd. The initial cluster is what the volume says; etcd
// reads it only to compare.
func drillEtcd(image, token, peer string, room resource.Quantity) corev1.Container {
	client := drillURL(naming.ClientPort)
	etcd := restoreContainerOf(image, []string{
		"--name=" + drillMember, "--data-dir=" + naming.VolumePath + "/" + guard.DataDir, "--logger=zap",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + drillMember + "=" + peer, "--initial-cluster-token=" + token,
	}, nil)
	etcd.Name, etcd.Command = naming.ContainerEtcd, []string{"/usr/local/bin/etcd"}
	etcd.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	etcd.Resources.Requests[corev1.ResourceEphemeralStorage] = room
	return etcd
}

// drillCompare is what looks at it.
func drillCompare(image string, b backup.Verified) corev1.Container {
	args := append([]string{"compare-trial", atLeast(b)}, keysArgs(b)...)
	if b.Keys > 0 {
		args = append(args, fmt.Sprintf("--keys=%d", b.Keys))
	}
	compare := restoreContainerOf(image, args, nil)
	compare.Name, compare.VolumeMounts = DrillContainer, nil
	return compare
}
