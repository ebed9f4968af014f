package scheduler_test

import (
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/manifest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

func drillPasses() corev1.ContainerStatus {
	return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7,"hash":99}`)
}

// What a schedule takes is signed, also after a drill has noted its verdict. What was taken
// before there was a key is kept and counted like the rest, its drill is held with a sentence,
// and the next backup is drilled.
func TestSchedulesSignWhatTheyTake(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	drilled(t, drillPasses, func(w *reconcilertest.World) {
		nightly := clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(2)) })
		w.MustPassRequests(nightly, 3*time.Hour)
		old := w.Manifests()[0]
		if old.Signature != nil || old.Drill.Result != backup.DrillPassed {
			t.Fatalf("%+v", old)
		}
		w.Reconfigure(func(o *reconciler.Options) { o.BackupKeys = keys })
		again := clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) {
			s.Retention.KeepLast, s.Verify.Again = new(int32(2)), old.Object
		})
		w.MustPassRequests(again, time.Minute)
		if k := w.RequestRecord(again); k.DrillFailures == 0 || !strings.Contains(k.DrillProblem, old.Object+" is not signed, and only what is signed by "+own.Fingerprint()+" is restored; the next backup") {
			t.Errorf("%+v", k)
		}
		w.MustPassRequests(nightly, 24*time.Hour)
		m := w.Manifests()[1]
		if m.Forged || m.Signature == nil || m.Signature.Key != own.Fingerprint() || m.Drill.Result != backup.DrillPassed {
			t.Errorf("%+v", m)
		}
		w.MustPassRequests(nightly, 24*time.Hour)
		w.WantTimes("01-02 02:00", "01-03 02:00")
	})
}

// Somebody replaces the newest backup and its manifest before its drill: nothing is started
// on it, and its verdict stands nowhere.
func TestADrillOfAReplacedBackupIsHeld(t *testing.T) {
	keys, _ := backuptest.NewKeys(t)
	drilled(t, drillPasses, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.BackupKeys = keys })
		w.MustPassRequests(clustertest.Nightly(), 3*time.Hour)
		rewrite(t, w.Manifests()[0], `"revision": 7`, `"revision": 6`)
		again := clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Verify.Again = w.Manifests()[0].Object })
		w.MustPassRequests(again, time.Minute)
		if k := w.RequestRecord(again); k.DrillFailures == 0 || !strings.Contains(k.DrillProblem, "does not match its signature: it was changed after it was signed; look at who else writes to the store") {
			t.Errorf("%+v", k)
		}
		if m := w.Manifests()[0]; m.Drill != (backup.Drill{}) {
			t.Errorf("%+v", m.Drill)
		}
		w.WantNoDrill()
	})
}

// 494: the Job that takes a backup has no key: the daemon signs the manifest that the Job's pod
// says it has written. What the store holds by then is not signed for its own words.
func TestTheDaemonSignsWhatAJobHasWritten(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	for name, c := range map[string]struct {
		says   func(digest string) string
		change bool
		signed bool
		want   string
	}{
		"as it was written":              {says: func(digest string) string { return digest + "\n" }, signed: true},
		"replaced meanwhile":             {says: func(digest string) string { return digest }, change: true, want: "not the one that was written"},
		"of another":                     {says: func(string) string { return strings.Repeat("0a", 32) }, want: "not the one that was written"},
		"by a pod that says nothing":     {says: func(string) string { return "" }, want: "did not say which manifest it has written"},
		"by a pod that nobody finds now": {want: "did not say which manifest it has written"},
	} {
		t.Run(name, func(t *testing.T) {
			byJobs(t, func(w *reconcilertest.World) {
				w.Reconfigure(func(o *reconciler.Options) { o.BackupRunner, o.BackupKeys = scheduler.InJob, keys })
				w.MustPassRequests(clustertest.Once(), time.Minute)
				job := reconcilertest.JobsOf(w)[0]
				spec := job.Spec.Template.Spec
				if args := strings.Join(spec.Containers[0].Args, " "); !strings.Contains(args, "--result=/dev/termination-log") || strings.Contains(args, "key") || len(spec.Volumes) != 2 {
					t.Errorf("it runs %s with %+v", args, spec.Volumes)
				}
				w.JobTakes(job)
				m := w.Manifests()[0]
				if c.says != nil {
					jobSays(w, job, c.says(digestOf(t, m)))
				}
				if c.change {
					rewrite(t, m, `"hash": 99`, `"hash": 98`)
				}
				w.MustPassRequests(clustertest.Once(), time.Minute)
				k, m := w.RequestRecord(clustertest.Once()), w.Manifests()[0]
				if k.Begun != nil || k.Last == nil || m.Forged || (m.Signature != nil) != c.signed || c.signed && m.Signature.Key != own.Fingerprint() {
					t.Errorf("%+v, %+v\n%s", k, m, w.Log)
				}
				if told := strings.Contains(w.Log.String(), "backup of a Job not signed"); told == c.signed || !strings.Contains(w.Log.String(), c.want) {
					t.Errorf("told %s", w.Log)
				}
			})
		})
	}
}

// Without a key a Job is what it was.
func TestAJobIsAskedForNoDigestWithoutAKey(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if args := strings.Join(reconcilertest.JobsOf(w)[0].Spec.Template.Spec.Containers[0].Args, " "); strings.Contains(args, "--result") {
			t.Errorf("it runs %s", args)
		}
	})
}

// digestOf is what a Job's pod says of the manifest that it has written.
func digestOf(t *testing.T, m backup.Manifest) string {
	t.Helper()
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := manifest.Digest(text)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// jobSays gives the Job a pod that has ended well with some last words.
func jobSays(w *reconcilertest.World, job batchv1.Job, words string) {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{jobstest.Ended("backup", 0, words)}
	if _, err := w.API.CoreV1().Pods("shop").Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// rewrite changes a word of a stored manifest.
func rewrite(t *testing.T, m backup.Manifest, old, another string) {
	t.Helper()
	path := strings.TrimPrefix(m.Object, "file://") + backup.ManifestSuffix
	text, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(text), old) {
		t.Fatalf("%s lacks %s", text, old)
	}
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), old, another, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
