package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// drilled is a world whose backups are restored on trial. What every drill's pod says
// is up to the test.
func drilled(t *testing.T, says func() corev1.ContainerStatus, test func(w *world)) {
	t.Helper()
	backedUp(t, func(w *world) {
		w.signs()
		w.drills = says
		test(w)
	})
}

// signs lets the store, a directory, give out URLs.
func (w *world) signs() {
	w.sign(func(_ context.Context, _ backup.Store, objectURL string, _ time.Duration) (string, error) {
		return "https://store/" + objectURL + "&signature=x", nil
	})
}

// runDrills is the controller of the drills' Jobs, and their pods.
func (w *world) runDrills() {
	w.Helper()
	if w.drills == nil {
		return
	}
	for _, job := range jobsOf(w) {
		s := w.drills()
		if s.Name == "" || job.Labels[naming.LabelDrillOf] == "" {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{s}
		if s.State.Terminated.ExitCode != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		if _, err := w.api.CoreV1().Pods("shop").Create(w.Context(), pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatal(err)
		}
	}
}

// everyDrill is the schedule nightly with a drill of each backup.
func everyDrill(s *schema.BackupScheduleSpec) { s.Verify.Restore = schema.DrillAlways }

const drillLabels = `{cluster="orders",namespace="shop",schedule="nightly"} `

// 107: a backup is restored on trial, and what was found stands in its manifest, in
// the record, in the metrics and in an Event. Nothing of the drill is left.
func TestABackupIsRestoredOnTrial(t *testing.T) {
	found := func() corev1.ContainerStatus {
		s := jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7,"hash":99}`)
		s.State.Terminated.FinishedAt = metav1.NewTime(time.Now().Add(40 * time.Second))
		return s
	}
	drilled(t, found, func(w *world) {
		w.drainEvents()
		w.mustPassRequests(nightly(everyDrill), 3*time.Hour)
		m := w.manifests()[0]
		if m.Drill.Result != backup.DrillPassed || m.Drill.Keys != 3 || m.Drill.Hash != 99 || m.Drill.Duration < 40*time.Second || m.Drill.Duration > 50*time.Second {
			t.Errorf("%+v", m.Drill)
		}
		if k := w.requestRecord(nightly()); k.Drill != nil || k.Proven == nil || k.Proven.Object != m.Object || k.DrillFailures != 0 {
			t.Errorf("%+v", k)
		}
		w.wantMetric("quorate_backup_drill_failed" + drillLabels + "0")
		w.wantMetric("quorate_backup_drill_duration_seconds" + drillLabels + fmt.Sprint(m.Drill.Duration.Seconds()))
		w.wantMetric("quorate_backup_drill_last_success_timestamp_seconds" + drillLabels + fmt.Sprint(float64(m.Drill.Time.Unix())))
		if events := w.drainEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "RestoreDrillPassed") }) {
			t.Errorf("%q", events)
		}
		w.wantNoDrill()
		w.mustPassRequests(nightly(everyDrill), 20*time.Hour)
		if n := len(w.lines("restore drill begins", "job")); n != 1 {
			t.Errorf("%d drills", n)
		}
	})
}

// wantNoDrill wants nothing to be left of a drill.
func (w *world) wantNoDrill() {
	w.Helper()
	if all := jobsOf(w); len(all) > 0 {
		w.Errorf("there is Job %s", all[0].Name)
	}
	secrets, err := w.api.CoreV1().Secrets("shop").List(w.Context(), metav1.ListOptions{LabelSelector: naming.LabelDrillOf})
	if err != nil || len(secrets.Items) > 0 {
		w.Errorf("there are Secrets %v, %v", secrets.Items, err)
	}
}

// 107, I10: a backup that is found bad is kept and told of, and takes no good one's
// place; the next one is looked at, too.
func TestABackupThatIsFoundBadRemovesNoGoodOne(t *testing.T) {
	bad := false
	says := func() corev1.ContainerStatus {
		if bad {
			return jobstest.Ended(jobs.DrillContainer, 0, `{"problem":"the hash differs","revision":7}`)
		}
		return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7}`)
	}
	drilled(t, says, func(w *world) {
		weekly := nightly(func(s *schema.BackupScheduleSpec) {
			s.Verify.Restore, s.Retention.KeepLast = schema.DrillWeekly, new(int32(1))
		})
		bad = true
		w.mustPassRequests(weekly, 3*time.Hour)
		bad = false
		w.mustPassRequests(weekly, 24*time.Hour)
		bad = true
		w.mustPassRequests(nightly(func(s *schema.BackupScheduleSpec) {
			s.Verify.Restore, s.Retention.KeepLast = schema.DrillAlways, new(int32(1))
		}), 24*time.Hour)
		w.wantTimes("01-02 02:00", "01-03 02:00")
		list := w.manifests()
		if list[0].Drill.Result != backup.DrillPassed || list[1].Drill.Result != "the hash differs" {
			t.Errorf("%+v, %+v", list[0].Drill, list[1].Drill)
		}
		if newest := stores.Newest(list, "shop", desired.RestoreFrom{Cluster: "orders"}, time.Time{}); newest == nil || newest.Object != list[0].Object {
			t.Errorf("%+v would be restored", newest)
		}
		w.wantMetric("quorate_backup_drill_failed" + drillLabels + "1")
		if events := w.drainEvents(); !slices.ContainsFunc(events, func(e string) bool {
			return strings.Contains(e, "Warning RestoreDrillFailed") && strings.Contains(e, "the hash differs")
		}) {
			t.Errorf("%q", events)
		}
	})
}

// What is in a drill's own way condemns no backup: it is told of and tried again,
// later each time, and backups and retention go on.
func TestADrillWithoutAJudgementIsTriedAgain(t *testing.T) {
	away := true
	says := func() corev1.ContainerStatus {
		if away {
			return jobstest.Ended(jobs.RestoreContainer, 1, "quorate: fetch the backup: the store answers 503")
		}
		return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7}`)
	}
	drilled(t, says, func(w *world) {
		q := nightly(everyDrill, func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
		w.mustPassRequests(q, 27*time.Hour)
		w.wantTimes("01-02 02:00")
		k := w.requestRecord(q)
		if m := w.manifests()[0]; m.Drill.Result != "" || k.DrillFailures < 5 || k.Drilled != nil || !strings.Contains(k.DrillProblem, "503") {
			t.Errorf("%+v, %+v", m.Drill, k)
		}
		w.wantMetric("quorate_backup_drill_failed" + drillLabels + "1")
		away = false
		w.mustPassRequests(q, 2*time.Hour)
		w.wantMetric("quorate_backup_drill_failed" + drillLabels + "0")
		w.wantNoDrill()
	})
}

// 112: an encrypted backup is restored on trial with the private key of a Secret,
// which the daemon does not read; without one the drill says so.
func TestAnEncryptedBackupIsRestoredOnTrial(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	drilled(t, func() corev1.ContainerStatus { return corev1.ContainerStatus{} }, func(w *world) {
		w.wish.Spec.Backup.Destination.Encryption.Recipients = []string{identity.Recipient().String()}
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPassRequests(nightly(everyDrill), 2*time.Hour+30*time.Second)
		if k := w.requestRecord(nightly()); !strings.Contains(k.DrillProblem, "spec.verify.decryption.secretName") || len(jobsOf(w)) > 0 {
			t.Fatalf("%+v", k)
		}
		w.mustPassRequests(nightly(everyDrill, func(s *schema.BackupScheduleSpec) { s.Verify.Decryption.SecretName = "age" }), 2*time.Minute)
		all := jobsOf(w)
		if len(all) != 1 {
			t.Fatalf("%d Jobs", len(all))
		}
		pod := all[0].Spec.Template.Spec
		step := pod.InitContainers[0]
		if e := step.Env[len(step.Env)-1]; e.Name != jobs.BackupIdentityEnv || e.ValueFrom.SecretKeyRef.Name != "age" || len(pod.InitContainers[1].Env)+len(pod.Containers[0].Env) > 0 {
			t.Errorf("the steps are given %+v", pod)
		}
	})
}

// What a drill's pod is: the release that gave the backup, on loopback only, with room
// for it, bounded, and nobody's member.
func TestDrillJob(t *testing.T) {
	drilled(t, func() corev1.ContainerStatus { return corev1.ContainerStatus{} }, func(w *world) {
		w.mustPassRequests(nightly(everyDrill), 2*time.Hour+10*time.Second)
		m := w.manifests()[0]
		job := jobsOf(w)[0]
		pod := job.Spec.Template.Spec
		etcd := pod.InitContainers[1]
		for _, arg := range etcd.Args {
			if strings.Contains(arg, "://") && !strings.Contains(arg, "://127.0.0.1:") || strings.Contains(arg, "metrics") {
				t.Errorf("etcd can be reached: %s", arg)
			}
		}
		if !strings.HasSuffix(etcd.Image, ":v"+m.EtcdVersion) || *etcd.RestartPolicy != corev1.ContainerRestartPolicyAlways || len(etcd.Ports) > 0 {
			t.Errorf("%+v", etcd)
		}
		if room := pod.Volumes[0].EmptyDir.SizeLimit.Value(); room != 2*m.Size+512<<20 || *job.Spec.ActiveDeadlineSeconds != 3600 || *job.Spec.BackoffLimit != 0 || *job.Spec.TTLSecondsAfterFinished != 900 {
			t.Errorf("room for %d, %+v", room, job.Spec)
		}
		if labels := job.Spec.Template.Labels; labels[naming.LabelCluster] != "" || labels["app.kubernetes.io/name"] == "etcd" || labels[naming.LabelDrillOf] != "nightly" || job.OwnerReferences[0].Name != "nightly-backup-schedule" {
			t.Errorf("labels %v, owners %v", labels, job.OwnerReferences)
		}
		want := fmt.Sprintf("--trial --volume=/var/lib/etcd --member=trial --peer-url=http://127.0.0.1:2380 --token=%s --at-least=7 --sha256=%s --size=%d --hash=99", job.Name, m.SHA256, m.Size)
		if args := strings.Join(pod.InitContainers[0].Args, " "); !strings.Contains(args, want) {
			t.Errorf("it runs %s, want %s", args, want)
		}
	})
}

// 98: quorate is killed at each write of a drill, and the drill's Job is deleted by
// somebody: there is one result in the end, and nothing is left.
func TestADrillSurvivesAKillAtEachStep(t *testing.T) {
	good := func() corev1.ContainerStatus {
		return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7}`)
	}
	for _, after := range []bool{false, true} {
		for n := range 2 {
			t.Run(fmt.Sprintf("write %d, carried out %t", n+1, after), func(t *testing.T) {
				drilled(t, good, func(w *world) {
					w.mustPassRequests(nightly(), 3*time.Hour)
					w.passUntilKilled(w.killAt(n+1, after), nightly(everyDrill))
					w.signs()
					w.mustPassRequests(nightly(everyDrill), time.Hour)
					if m := w.manifests()[0]; m.Drill.Result != backup.DrillPassed {
						t.Errorf("%+v\n%s", m.Drill, w.log)
					}
				})
			})
		}
	}
	none := true
	drilled(t, func() corev1.ContainerStatus {
		if none {
			return corev1.ContainerStatus{}
		}
		return good()
	}, func(w *world) {
		w.mustPassRequests(nightly(everyDrill), 2*time.Hour+10*time.Second)
		if err := w.api.BatchV1().Jobs("shop").Delete(w.Context(), jobsOf(w)[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		none = false
		w.mustPassRequests(nightly(everyDrill), time.Minute)
		if m := w.manifests()[0]; m.Drill.Result != backup.DrillPassed {
			t.Errorf("%+v", m.Drill)
		}
		w.wantNoDrill()
	})
}

// No more drills than --max-drills run at once, whoever has begun them.
func TestDrillsWaitForAPlace(t *testing.T) {
	drilled(t, func() corev1.ContainerStatus { return corev1.ContainerStatus{} }, func(w *world) {
		other := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "else", Namespace: "shop", Labels: map[string]string{naming.LabelDrillOf: "else"}}}
		if _, err := w.api.BatchV1().Jobs("shop").Create(w.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.mustPassRequests(nightly(everyDrill), 3*time.Hour)
		if said := w.lines("backup waits", "message"); len(said) != 1 || !strings.Contains(said[0], "--max-drills") || len(jobsOf(w)) != 1 {
			t.Errorf("%q, %d Jobs", said, len(jobsOf(w)))
		}
		if err := w.api.BatchV1().Jobs("shop").Delete(w.Context(), "else", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		w.mustPassRequests(nightly(everyDrill), time.Minute)
		if len(jobsOf(w)) != 1 || jobsOf(w)[0].Name == "else" {
			t.Errorf("%v", jobsOf(w))
		}
	})
}
