package reconciler

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// byJobs is a world whose backups are taken by Jobs.
func byJobs(t *testing.T, test func(w *world)) {
	t.Helper()
	backedUp(t, func(w *world) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s3", Namespace: "shop"}, Data: map[string][]byte{}}
		if _, err := w.api.CoreV1().Secrets("shop").Create(w.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wish.Spec.Backup.Destination.Credentials.SecretName = "s3"
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.reconfigure(func(o *Options) { o.BackupRunner = RunnerJob })
		test(w)
	})
}

// jobTakes does what the pod of the Job would, and ends it.
func (w *world) jobTakes(job batchv1.Job) {
	w.Helper()
	var url string
	var m backup.Manifest
	for _, arg := range job.Spec.Template.Spec.Containers[0].Args {
		if text, ok := strings.CutPrefix(arg, "--url="); ok {
			url = text
		}
		if text, ok := strings.CutPrefix(arg, "--manifest="); ok {
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				w.Fatal(err)
			}
		}
	}
	if _, err := (backup.Store{}).Save(w.Context(), url, bytes.NewReader(w.etcd.snapshot), m); err != nil {
		w.Fatal(err)
	}
	w.jobEndsWith(job, batchv1.JobComplete)
}

func (w *world) jobEndsWith(job batchv1.Job, how batchv1.JobConditionType) {
	w.Helper()
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
	if _, err := w.api.BatchV1().Jobs("shop").UpdateStatus(w.Context(), &job, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// 95, 98: a Job takes the backup, once, while daemons come and go; the manifest says
// that it is good, and is what the daemon's own would be.
func TestAJobTakesTheBackup(t *testing.T) {
	byJobs(t, func(w *world) {
		w.mustPassRequests(once(), time.Minute)
		all := jobsOf(w)
		if len(all) != 1 || len(w.manifests()) != 0 {
			t.Fatalf("%d Jobs, %d backups\n%s", len(all), len(w.manifests()), w.log)
		}
		pod := all[0].Spec.Template.Spec
		if args := strings.Join(pod.Containers[0].Args, " "); !strings.Contains(args, "--host=orders-1.orders-peers.shop.svc") || !strings.Contains(args, "--https --tls=/etc/quorate/tls") {
			t.Errorf("it runs %s", args)
		}
		if v := pod.Volumes; len(v) != 2 || v[0].Secret.SecretName != "s3" || v[1].Secret.SecretName != "orders-client" {
			t.Errorf("it mounts %+v", v)
		}
		w.restart()
		w.reconfigure(func(o *Options) { o.BackupRunner = RunnerJob })
		w.mustPassRequests(once(), time.Minute)
		w.jobTakes(jobsOf(w)[0])
		w.mustPassRequests(once(), time.Minute)
		k, m := w.requestRecord(once()), w.manifests()[0]
		if k.Begun != nil || k.Last == nil || k.Last.SHA256 != m.SHA256 || m.Request != "before-sale" || m.Hash != 99 || m.ClusterID != "c1" || len(jobsOf(w)) > 0 {
			t.Errorf("%+v, %+v, %d Jobs", k, m, len(jobsOf(w)))
		}
		w.mustPassRequests(once(), time.Hour)
		if len(jobsOf(w)) > 0 || len(w.manifests()) != 1 {
			t.Errorf("%d Jobs, %d backups", len(jobsOf(w)), len(w.manifests()))
		}
	})
}

// A Job that fails, or that somebody deletes, is a failure that is told with its last
// words and tried again; what it left is removed once it has ended.
func TestAJobThatFailsIsTriedAgain(t *testing.T) {
	byJobs(t, func(w *world) {
		w.mustPassRequests(once(), time.Minute)
		job := jobsOf(w)[0]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{jobstest.Ended("backup", 1, "quorate: save backup: permission denied")}
		if _, err := w.api.CoreV1().Pods("shop").Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.jobEndsWith(job, batchv1.JobFailed)
		w.mustPassRequests(once(), 10*time.Second)
		if k := w.requestRecord(once()); k.Failures != 1 || !strings.Contains(k.Problem, "permission denied") || len(jobsOf(w)) > 0 {
			t.Errorf("%+v, %d Jobs", k, len(jobsOf(w)))
		}
		w.mustPassRequests(once(), 2*time.Minute)
		if err := w.api.BatchV1().Jobs("shop").Delete(w.Context(), jobsOf(w)[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.mustPassRequests(once(), 10*time.Second)
		if k := w.requestRecord(once()); k.Failures != 2 || !strings.Contains(k.Problem, "or is gone") {
			t.Errorf("%+v", k)
		}
		w.mustPassRequests(once(), 5*time.Minute)
		w.jobTakes(jobsOf(w)[0])
		w.mustPassRequests(once(), time.Minute)
		if k := w.requestRecord(once()); k.Failures != 0 || len(w.manifests()) != 1 {
			t.Errorf("%+v", k)
		}
	})
}

// The pod of a Job that somebody has deleted may still write: until it is gone, what
// it does is not judged, and no second one takes the backup beside it.
func TestADeletedJobIsWaitedForWhileItsPodIsThere(t *testing.T) {
	byJobs(t, func(w *world) {
		w.mustPassRequests(once(), time.Minute)
		name := jobsOf(w)[0].Name
		w.put(podsResource(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-x", Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: name}}})
		if err := w.api.BatchV1().Jobs("shop").Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.mustPassRequests(once(), time.Minute)
		if k := w.requestRecord(once()); k.Begun == nil || k.Failures != 0 || len(jobsOf(w)) != 0 {
			t.Errorf("%+v, %d Jobs", k, len(jobsOf(w)))
		}
		if err := w.api.Tracker().Delete(podsResource(), "shop", name+"-x"); err != nil {
			t.Fatal(err)
		}
		w.mustPassRequests(once(), 5*time.Minute)
		if k := w.requestRecord(once()); k.Failures != 1 || len(jobsOf(w)) != 1 {
			t.Errorf("%+v, %d Jobs", k, len(jobsOf(w)))
		}
	})
}

// A Job has not the daemon's identity, and takes a place among the backups.
func TestAJobNeedsCredentialsAndAPlace(t *testing.T) {
	byJobs(t, func(w *world) {
		w.wish.Spec.Backup.Destination = schema.Destination{}
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPassRequests(once(), time.Minute)
		if k := w.requestRecord(once()); !strings.Contains(k.Problem, "needs credentials.secretName") || len(jobsOf(w)) > 0 {
			t.Errorf("%+v", k)
		}
	})
	byJobs(t, func(w *world) {
		for _, name := range []string{"a", "b"} {
			other := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{naming.LabelBackupOf: name}}}
			if _, err := w.api.BatchV1().Jobs("shop").Create(w.Context(), other, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w.mustPassRequests(once(), time.Minute)
		if said := w.lines("backup waits", "message"); len(said) != 1 || !strings.Contains(said[0], "--max-backups") || len(jobsOf(w)) != 2 {
			t.Errorf("%q, %d Jobs", said, len(jobsOf(w)))
		}
		// One has ended, but the daemon takes a backup before an upgrade.
		w.jobEndsWith(jobsOf(w)[0], batchv1.JobComplete)
		release, _ := w.r.executor.slots.TryAcquire()
		w.mustPassRequests(once(), time.Minute)
		if len(jobsOf(w)) != 2 {
			t.Errorf("%d Jobs beside the daemon's backup", len(jobsOf(w)))
		}
		release()
		w.mustPassRequests(once(), time.Minute)
		if len(jobsOf(w)) != 3 {
			t.Errorf("%d Jobs where there is a place", len(jobsOf(w)))
		}
	})
}

// Each Job has its part of the bandwidth, so that all that may run keep to it together.
func TestAJobHasItsShareOfTheBandwidth(t *testing.T) {
	byJobs(t, func(w *world) {
		w.reconfigure(func(o *Options) { o.MaxBackups, o.BackupBandwidth = 4, 20<<20 })
		w.mustPassRequests(once(), time.Minute)
		if args := jobsOf(w)[0].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--bandwidth=5242880") {
			t.Errorf("it runs %q", args)
		}
	})
}

// A cluster without TLS is asked in clear text, whatever Secret there is.
func TestTakeBackupInClearText(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, false)
	s.MustPut("colour", "green")
	dir := t.TempDir()
	m, err := jobs.Take(t.Context(), jobs.Task{
		From: reconcilertest.TargetOf(t, s, s.Members[0]), URL: "file://" + dir + "/1.db?root=" + dir, Manifest: backup.Manifest{Member: "orders-0", Revision: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := (backup.Store{}).Verify(t.Context(), m.Object+"?root="+dir); err != nil || again.SHA256 != m.SHA256 {
		t.Errorf("%+v, %v", again, err)
	}
}

// 116: what the Job's pod does, with a real cluster that speaks TLS.
func TestTakeBackup(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, true)
	s.MustPut("colour", "green")
	dir := t.TempDir()
	from := reconcilertest.TargetOf(t, s, s.Members[0])
	from.TLS = nil // the pod has it from a Secret
	take := func(secret map[string][]byte, name string) (backup.Manifest, error) {
		return jobs.Take(t.Context(), jobs.Task{
			From: from, HTTPS: true, Secret: secret, URL: "file://" + dir + "/" + name + "?root=" + dir, Manifest: backup.Manifest{Member: "orders-0", Revision: 2},
			Bandwidth: 1 << 20, // more than there is to send: only its way is tried
		})
	}
	m, err := take(s.Secret.Data, "1.db")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := (backup.Store{}).Verify(t.Context(), m.Object+"?root="+dir); err != nil || again.SHA256 != m.SHA256 {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := take(map[string][]byte{"ca.crt": []byte("x")}, "2.db"); err == nil || !strings.Contains(err.Error(), "has no usable ca.crt") {
		t.Error(err)
	}
	from.ID = "1"
	if _, err := take(s.Secret.Data, "3.db"); err == nil || !strings.Contains(err.Error(), "it answers as member") {
		t.Errorf("somebody else was asked: %v", err)
	}
	if list, err := (backup.Store{}).List(t.Context(), "file://"+dir+"/?root="+dir); err != nil || len(list) != 1 || list[0].Member != "orders-0" {
		t.Errorf("%+v, %v", list, err)
	}
}
