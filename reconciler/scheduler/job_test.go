package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/schema"
)

// byJobs is a world whose backups are taken by Jobs.
func byJobs(t *testing.T, test func(w *reconcilertest.World)) {
	t.Helper()
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		secret := clustertest.StoreSecret("s3", map[string][]byte{})
		if _, err := w.API.CoreV1().Secrets("shop").Create(w.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Wish.Spec.Backup.Destination.Credentials.SecretName = "s3"
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.Reconfigure(func(o *reconciler.Options) { o.BackupRunner = scheduler.InJob })
		test(w)
	})
}

// 478: what somebody else has given the label of a backup's Job takes no place from the backups that
// Git names.
func TestAForeignJobTakesNoPlace(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.BackupRunner, o.MaxBackups = scheduler.InJob, 1 })
		putJob(w, "alone", naming.LabelBackupOf)
		putJob(w, "greedy", naming.LabelBackupOf, "mine")
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if all := reconcilertest.JobsOf(w); len(all) != 3 {
			t.Fatalf("%d Jobs\n%s", len(all), w.Log)
		}
		// One of the backup itself does, until it has ended.
		w.R.SetBackups([]desired.Backup{clustertest.Once()})
		other := clustertest.Once()
		other.Metadata.Name = "after-sale"
		w.MustPassRequests(other, time.Second)
		if all := reconcilertest.JobsOf(w); len(all) != 3 || !strings.Contains(w.Log.String(), "--max-backups allows no more") {
			t.Errorf("%d Jobs\n%s", len(all), w.Log)
		}
	})
}

// 95, 98: a Job takes the backup, once, while daemons come and go; the manifest says
// that it is good, and is what the daemon's own would be.
func TestAJobTakesTheBackup(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Once(), time.Minute)
		all := reconcilertest.JobsOf(w)
		if len(all) != 1 || len(w.Manifests()) != 0 {
			t.Fatalf("%d Jobs, %d backups\n%s", len(all), len(w.Manifests()), w.Log)
		}
		pod := all[0].Spec.Template.Spec
		if args := strings.Join(pod.Containers[0].Args, " "); !strings.Contains(args, "--host=orders-1.orders-peers.shop.svc") || !strings.Contains(args, "--https --tls=/etc/quorate/tls") {
			t.Errorf("it runs %s", args)
		}
		if v := pod.Volumes; len(v) != 2 || v[0].Secret.SecretName != "s3" || v[1].Secret.SecretName != "orders-client" {
			t.Errorf("it mounts %+v", v)
		}
		w.Restart()
		w.Reconfigure(func(o *reconciler.Options) { o.BackupRunner = scheduler.InJob })
		w.MustPassRequests(clustertest.Once(), time.Minute)
		w.JobTakes(reconcilertest.JobsOf(w)[0])
		w.MustPassRequests(clustertest.Once(), time.Minute)
		k, m := w.RequestRecord(clustertest.Once()), w.Manifests()[0]
		if k.Begun != nil || k.Last == nil || k.Last.SHA256 != m.SHA256 || m.Request != "before-sale" || m.Hash != 99 || m.ClusterID != "c1" || len(reconcilertest.JobsOf(w)) > 0 {
			t.Errorf("%+v, %+v, %d Jobs", k, m, len(reconcilertest.JobsOf(w)))
		}
		w.MustPassRequests(clustertest.Once(), time.Hour)
		if len(reconcilertest.JobsOf(w)) > 0 || len(w.Manifests()) != 1 {
			t.Errorf("%d Jobs, %d backups", len(reconcilertest.JobsOf(w)), len(w.Manifests()))
		}
	})
}

// 192, 193: the Job of a backup writes to a volume, or as a ServiceAccount, where its
// destination says so.
func TestAJobWritesToAVolume(t *testing.T) {
	for name, access := range map[string]schema.PodAccess{"volume": {ClaimName: "backups"}, "identity": {ServiceAccountName: "writer"}} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
				w.Wish.Spec.Backup.Destination.PodAccess = access
				w.R.SetDesired([]desired.Cluster{w.Wish})
				w.Reconfigure(func(o *reconciler.Options) { o.BackupRunner = scheduler.InJob })
				w.MustPassRequests(clustertest.Once(), time.Minute)
				pod := reconcilertest.JobsOf(w)[0].Spec.Template.Spec
				if strings.Contains(strings.Join(pod.Containers[0].Args, " "), "--credentials") || pod.ServiceAccountName != access.ServiceAccountName {
					t.Errorf("it runs %+v", pod)
				}
				if v, m := pod.Volumes[0], pod.Containers[0].VolumeMounts[0]; access.ClaimName != "" && (v.PersistentVolumeClaim.ClaimName != "backups" || m.MountPath != w.Backups || m.ReadOnly) {
					t.Errorf("it mounts %+v as %+v", v, m)
				}
			})
		})
	}
}

// A Job that fails, or that somebody deletes, is a failure that is told with its last
// words and tried again; what it left is removed once it has ended.
func TestAJobThatFailsIsTriedAgain(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Once(), time.Minute)
		job := reconcilertest.JobsOf(w)[0]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{jobstest.Ended("backup", 1, "quorate: save backup: permission denied")}
		if _, err := w.API.CoreV1().Pods("shop").Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.JobEndsWith(job, batchv1.JobFailed)
		w.MustPassRequests(clustertest.Once(), 10*time.Second)
		if k := w.RequestRecord(clustertest.Once()); k.Failures != 1 || !strings.Contains(k.Problem, "permission denied") || len(reconcilertest.JobsOf(w)) > 0 {
			t.Errorf("%+v, %d Jobs", k, len(reconcilertest.JobsOf(w)))
		}
		w.MustPassRequests(clustertest.Once(), 2*time.Minute)
		if err := w.API.BatchV1().Jobs("shop").Delete(w.Context(), reconcilertest.JobsOf(w)[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(clustertest.Once(), 10*time.Second)
		if k := w.RequestRecord(clustertest.Once()); k.Failures != 2 || !strings.Contains(k.Problem, "or is gone") {
			t.Errorf("%+v", k)
		}
		w.MustPassRequests(clustertest.Once(), 5*time.Minute)
		w.JobTakes(reconcilertest.JobsOf(w)[0])
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if k := w.RequestRecord(clustertest.Once()); k.Failures != 0 || len(w.Manifests()) != 1 {
			t.Errorf("%+v", k)
		}
	})
}

// The pod of a Job that somebody has deleted may still write: until it is gone, what
// it does is not judged, and no second one takes the backup beside it.
func TestADeletedJobIsWaitedForWhileItsPodIsThere(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Once(), time.Minute)
		name := reconcilertest.JobsOf(w)[0].Name
		w.Put(reconcilertest.PodsResource(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-x", Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: name}}})
		if err := w.API.BatchV1().Jobs("shop").Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if k := w.RequestRecord(clustertest.Once()); k.Begun == nil || k.Failures != 0 || len(reconcilertest.JobsOf(w)) != 0 {
			t.Errorf("%+v, %d Jobs", k, len(reconcilertest.JobsOf(w)))
		}
		if err := w.API.Tracker().Delete(reconcilertest.PodsResource(), "shop", name+"-x"); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(clustertest.Once(), 5*time.Minute)
		if k := w.RequestRecord(clustertest.Once()); k.Failures != 1 || len(reconcilertest.JobsOf(w)) != 1 {
			t.Errorf("%+v, %d Jobs", k, len(reconcilertest.JobsOf(w)))
		}
	})
}

// putJob has a Job run with a label, which goes with these ConfigMaps.
func putJob(w *reconcilertest.World, name, label string, owners ...string) {
	w.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{label: name}}}
	for _, owner := range owners {
		job.OwnerReferences = append(job.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: "1"})
	}
	if _, err := w.API.BatchV1().Jobs("shop").Create(w.Context(), job, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// A Job has not the daemon's identity, and takes a place among the backups.
func TestAJobNeedsCredentialsAndAPlace(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.Wish.Spec.Backup.Destination = schema.Destination{}
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if k := w.RequestRecord(clustertest.Once()); !strings.Contains(k.Problem, "needs credentials.secretName") || len(reconcilertest.JobsOf(w)) > 0 {
			t.Errorf("%+v", k)
		}
	})
	byJobs(t, func(w *reconcilertest.World) {
		named := []desired.Backup{clustertest.Once()}
		for _, name := range []string{"a", "b"} {
			other := clustertest.Once()
			other.Metadata.Name = name
			named = append(named, other)
			putJob(w, name, naming.LabelBackupOf, scheduler.RecordName(other))
		}
		w.R.SetBackups(named)
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if said := w.Lines("backup waits", "reason"); len(said) != 1 || !strings.Contains(said[0], "--max-backups") || len(reconcilertest.JobsOf(w)) != 2 {
			t.Errorf("%q, %d Jobs", said, len(reconcilertest.JobsOf(w)))
		}
		// One has ended, but the daemon begins another backup itself.
		w.JobEndsWith(reconcilertest.JobsOf(w)[0], batchv1.JobComplete)
		place, _ := w.R.Executor.Slots.TryAcquire(slots.For{Kind: slots.Asked})
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if len(reconcilertest.JobsOf(w)) != 2 {
			t.Errorf("%d Jobs beside the daemon's backup", len(reconcilertest.JobsOf(w)))
		}
		place.Release()
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if len(reconcilertest.JobsOf(w)) != 3 {
			t.Errorf("%d Jobs where there is a place", len(reconcilertest.JobsOf(w)))
		}
	})
}

// Each Job has its part of the bandwidth, so that all that may run keep to it together.
func TestAJobHasItsShareOfTheBandwidth(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.MaxBackups, o.BackupBandwidth = 4, 20<<20 })
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if args := reconcilertest.JobsOf(w)[0].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--bandwidth=5242880") {
			t.Errorf("it runs %q", args)
		}
	})
}

// 175: a Job ends when its backup does not move for as long as the daemon's would, and
// otherwise in a day.
func TestAJobHasTheStallTimeout(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.BackupStallTimeout = 20 * time.Minute })
		w.MustPassRequests(clustertest.Once(), time.Minute)
		job := reconcilertest.JobsOf(w)[0]
		if args := job.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--stall-timeout=20m0s") || *job.Spec.ActiveDeadlineSeconds != 24*60*60 {
			t.Errorf("it runs %q for %d seconds", args, *job.Spec.ActiveDeadlineSeconds)
		}
	})
}
