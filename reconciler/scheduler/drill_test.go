package scheduler_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// drilled is a world whose backups are restored on trial. What every drill's pod says
// is up to the test.
func drilled(t *testing.T, says func() corev1.ContainerStatus, test func(w *reconcilertest.World)) {
	t.Helper()
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Signs()
		w.Drills = says
		test(w)
	})
}

// 107: a backup is restored on trial, and what was found stands in its manifest, in
// the record, in the metrics and in an Event. Nothing of the drill is left.
func TestABackupIsRestoredOnTrial(t *testing.T) {
	found := func() corev1.ContainerStatus {
		s := jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7,"hash":99}`)
		s.State.Terminated.FinishedAt = metav1.NewTime(time.Now().Add(40 * time.Second))
		return s
	}
	drilled(t, found, func(w *reconcilertest.World) {
		w.DrainEvents()
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 3*time.Hour)
		m := w.Manifests()[0]
		if m.Drill.Result != backup.DrillPassed || m.Drill.Keys != 3 || m.Drill.Hash != 99 || m.Drill.Duration < 40*time.Second || m.Drill.Duration > 50*time.Second {
			t.Errorf("%+v", m.Drill)
		}
		if k := w.RequestRecord(clustertest.Nightly()); k.Drill != nil || k.Proven == nil || k.Proven.Object != m.Object || k.DrillFailures != 0 {
			t.Errorf("%+v", k)
		}
		w.WantMetric("quorate_backup_drill_failed" + scheduler.DrillLabels + "0")
		w.WantMetric("quorate_backup_drill_duration_seconds" + scheduler.DrillLabels + fmt.Sprint(m.Drill.Duration.Seconds()))
		w.WantMetric("quorate_backup_drill_last_success_timestamp_seconds" + scheduler.DrillLabels + fmt.Sprint(float64(m.Drill.Time.Unix())))
		if events := w.DrainEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "RestoreDrillPassed") }) {
			t.Errorf("%q", events)
		}
		w.WantNoDrill()
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 20*time.Hour)
		if n := len(w.Lines("restore drill started", "job")); n != 1 {
			t.Errorf("%d drills", n)
		}
	})
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
	drilled(t, says, func(w *reconcilertest.World) {
		weekly := clustertest.Nightly(func(s *schema.BackupScheduleSpec) {
			s.Verify.Restore, s.Retention.KeepLast = schema.DrillWeekly, new(int32(1))
		})
		bad = true
		w.MustPassRequests(weekly, 3*time.Hour)
		bad = false
		w.MustPassRequests(weekly, 24*time.Hour)
		bad = true
		w.MustPassRequests(clustertest.Nightly(func(s *schema.BackupScheduleSpec) {
			s.Verify.Restore, s.Retention.KeepLast = schema.DrillAlways, new(int32(1))
		}), 24*time.Hour)
		w.WantTimes("01-02 02:00", "01-03 02:00")
		list := w.Manifests()
		if list[0].Drill.Result != backup.DrillPassed || list[1].Drill.Result != "the hash differs" {
			t.Errorf("%+v, %+v", list[0].Drill, list[1].Drill)
		}
		if restorable := stores.Candidates(list, "shop", desired.RestoreFrom{Cluster: "orders"}, schema.RestoreSource{}); len(restorable) == 0 || restorable[0].Object != list[0].Object {
			t.Errorf("%+v would be restored", restorable)
		}
		w.WantMetric("quorate_backup_drill_failed" + scheduler.DrillLabels + "1")
		if events := w.DrainEvents(); !slices.ContainsFunc(events, func(e string) bool {
			return strings.Contains(e, "Warning RestoreDrillFailed") && strings.Contains(e, "the hash differs")
		}) {
			t.Errorf("%q", events)
		}
	})
}

// 605: a drill's pod was given other bytes than were verified. Only where they are in the
// store, too, is the backup bad: something may answer pods in the store's place.
func TestOtherBytesCondemnOnlyWhatTheStoreHas(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, object string)
		bad    bool
		want   string
	}{
		"the store has what was verified": {func(*testing.T, string) {}, false, "the store gives quorate what was verified: look at what answers pods in its place"},
		"the store has other bytes, too": {func(t *testing.T, object string) {
			t.Helper()
			if err := os.WriteFile(object, []byte("<html>moved</html>"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true, "it has other bytes"},
		"the store does not have it": {func(t *testing.T, object string) {
			t.Helper()
			if err := os.Remove(object); err != nil {
				t.Fatal(err)
			}
		}, false, "it could not be read to confirm that"},
	} {
		t.Run(name, func(t *testing.T) {
			says := jobstest.Ended(jobs.RestoreContainer, jobs.ExitOtherBytes, "quorate: the backup is unfit: it has other bytes")
			drilled(t, func() corev1.ContainerStatus { return says }, func(w *reconcilertest.World) {
				w.MustPassRequests(clustertest.Nightly(), 3*time.Hour)
				c.damage(t, strings.TrimPrefix(w.Manifests()[0].Object, "file://"))
				q := clustertest.Nightly(scheduler.EveryDrill)
				w.MustPassRequests(q, time.Minute)
				k := w.RequestRecord(q)
				said := k.DrillProblem
				if c.bad {
					said = k.Drilled.Result
				}
				if condemned := k.Drilled != nil; condemned != c.bad || !strings.Contains(said, c.want) {
					t.Errorf("condemned %t: %+v", condemned, k)
				}
			})
		})
	}
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
	drilled(t, says, func(w *reconcilertest.World) {
		q := clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
		w.MustPassRequests(q, 27*time.Hour)
		w.WantTimes("01-02 02:00")
		k := w.RequestRecord(q)
		if m := w.Manifests()[0]; m.Drill.Result != "" || k.DrillFailures < 5 || k.Drilled != nil || !strings.Contains(k.DrillProblem, "503") {
			t.Errorf("%+v, %+v", m.Drill, k)
		}
		w.WantMetric("quorate_backup_drill_failed" + scheduler.DrillLabels + "1")
		away = false
		w.MustPassRequests(q, 2*time.Hour)
		w.WantMetric("quorate_backup_drill_failed" + scheduler.DrillLabels + "0")
		w.WantNoDrill()
	})
}

// 189: a verdict is taken back by a drill that a person asks for in Git, and that is done
// once: also that of a backup that is not the newest any more. Only backups of the
// schedule are drilled.
func TestAVerdictIsTakenBack(t *testing.T) {
	bad, drills := true, 0
	says := func() corev1.ContainerStatus {
		drills++
		if bad {
			return jobstest.Ended(jobs.RestoreContainer, jobs.ExitUnfit, "quorate: the backup is unfit: it has 3 bytes")
		}
		return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7}`)
	}
	drilled(t, says, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 3*time.Hour)
		first := w.Manifests()[0]
		if !strings.Contains(first.Drill.Result, "unfit") {
			t.Fatalf("%+v", first.Drill)
		}
		if events := w.DrainEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "name it in spec.verify.again") }) {
			t.Errorf("%q", events)
		}
		again := func(objectURL string) desired.Backup {
			return clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Verify.Again = objectURL })
		}
		w.MustPassRequests(again(strings.Replace(first.Object, "orders", "others", 1)), time.Minute)
		if k := w.RequestRecord(clustertest.Nightly()); k.DrillFailures == 0 || k.Again != "" {
			t.Errorf("%+v", k)
		}
		bad, drills = false, 0
		w.MustPassRequests(again(first.Object), time.Hour)
		if m := w.Manifests()[0]; m.Drill.Result != backup.DrillPassed || drills != 1 {
			t.Errorf("%+v after %d drills", m.Drill, drills)
		}
		if k := w.RequestRecord(clustertest.Nightly()); k.Drilled.Result != backup.DrillPassed || k.Proven == nil || k.Proven.Object != first.Object || k.DrillFailures != 0 {
			t.Errorf("%+v", k)
		}
		w.WantMetric("quorate_backup_drill_failed" + scheduler.DrillLabels + "0")
		// One that is not the newest any more.
		w.MustPassRequests(again(first.Object), 24*time.Hour)
		if drills != 2 {
			t.Errorf("%d drills", drills)
		}
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), time.Minute)
		bad = true
		w.MustPassRequests(again(first.Object), time.Hour)
		list := w.Manifests()
		if !strings.Contains(list[0].Drill.Result, "unfit") || list[1].Drill.Result != backup.DrillPassed || drills != 3 {
			t.Errorf("%+v, %+v after %d drills", list[0].Drill, list[1].Drill, drills)
		}
		if k := w.RequestRecord(clustertest.Nightly()); k.Drilled.Object != list[1].Object {
			t.Errorf("%+v", k)
		}
		w.WantNoDrill()
	})
}

// 188: what a drill lacked may be what was changed in Git: it is tried again at once.
func TestADrillThatLackedSomethingIsTriedAgainWhenGitChanges(t *testing.T) {
	away := true
	says := func() corev1.ContainerStatus {
		if away {
			return jobstest.Ended(jobs.RestoreContainer, 1, "quorate: fetch the backup: the store answers 503")
		}
		return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7}`)
	}
	drilled(t, says, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 20*time.Hour)
		away = false
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Verify.Decryption.SecretName = "age" }), time.Minute)
		if m := w.Manifests()[0]; m.Drill.Result != backup.DrillPassed {
			t.Errorf("%+v", m.Drill)
		}
	})
}

// 190: the URL of a drill that waits for its node is signed again.
func TestTheOfferOfADrillIsRenewed(t *testing.T) {
	drilled(t, func() corev1.ContainerStatus { return corev1.ContainerStatus{} }, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 2*time.Hour+10*time.Second)
		at := func() string {
			t.Helper()
			list, err := w.API.CoreV1().Secrets("shop").List(w.Context(), metav1.ListOptions{LabelSelector: naming.LabelDrillOf})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			return list.Items[0].Annotations[naming.AnnotationOffered]
		}
		first := at()
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 3*time.Minute)
		if at() != first {
			t.Error("it is signed all the time")
		}
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 3*time.Minute)
		if at() == first {
			t.Error("it is not signed again")
		}
	})
}

// 192, 193: a drill reads its backup as its destination lets pods read it.
func TestADrillReadsItsBackupByItself(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Wish.Spec.Backup.Destination.PodAccess.ClaimName = "backups"
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 2*time.Hour+10*time.Second)
		pod := reconcilertest.JobsOf(w)[0].Spec.Template.Spec
		if v, m := pod.Volumes[2], pod.InitContainers[0].VolumeMounts[2]; v.PersistentVolumeClaim.ClaimName != "backups" || m.MountPath != w.Backups || !m.ReadOnly {
			t.Errorf("it mounts %+v as %+v", v, m)
		}
		if n := len(pod.InitContainers[1].VolumeMounts) + len(pod.Containers[0].VolumeMounts); n != 1 {
			t.Errorf("the others mount %d volumes", n)
		}
	})
}

// 194: that no restore could read a backup is reported when it is taken, once, and stands in
// the status; it is taken all the same.
func TestABackupThatNoRestoreCouldReadIsReported(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.DrainEvents()
		w.MustPassRequests(clustertest.Nightly(), 51*time.Hour)
		if n := len(w.Manifests()); n != 3 {
			t.Errorf("%d backups", n)
		}
		if said := w.Lines("backups cannot be restored from where they are put", "reason"); len(said) != 1 || !strings.Contains(said[0], "podAccess.claimName") {
			t.Errorf("%q", said)
		}
		if k := w.RequestRecord(clustertest.Nightly()); !strings.Contains(k.Unreachable, "/shop/orders/…: this store gives out no URL") {
			t.Errorf("%+v", k)
		}
		w.Wish.Spec.Backup.Destination.PodAccess.ClaimName = "backups"
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPassRequests(clustertest.Nightly(), 24*time.Hour)
		if k := w.RequestRecord(clustertest.Nightly()); k.Unreachable != "" {
			t.Errorf("%+v", k)
		}
		if events := w.DrainEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "Warning BackupUnreachable") }) {
			t.Errorf("%q", events)
		}
	})
}

// 112: an encrypted backup is restored on trial with the private key of a Secret,
// which the daemon does not read; without one the drill says so.
func TestAnEncryptedBackupIsRestoredOnTrial(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	drilled(t, func() corev1.ContainerStatus { return corev1.ContainerStatus{} }, func(w *reconcilertest.World) {
		w.Wish.Spec.Backup.Destination.Encryption.Recipients = []string{identity.Recipient().String()}
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 2*time.Hour+30*time.Second)
		if k := w.RequestRecord(clustertest.Nightly()); !strings.Contains(k.DrillProblem, "spec.verify.decryption.secretName") || len(reconcilertest.JobsOf(w)) > 0 {
			t.Fatalf("%+v", k)
		}
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Verify.Decryption.SecretName = "age" }), 2*time.Minute)
		all := reconcilertest.JobsOf(w)
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
	drilled(t, func() corev1.ContainerStatus { return corev1.ContainerStatus{} }, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 2*time.Hour+10*time.Second)
		m := w.Manifests()[0]
		job := reconcilertest.JobsOf(w)[0]
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
		if room := pod.Volumes[0].EmptyDir.SizeLimit.Value(); room != state.RestoreRoom(m.SnapshotSize)+512<<20 || *job.Spec.ActiveDeadlineSeconds != 3600 || *job.Spec.BackoffLimit != 0 || *job.Spec.TTLSecondsAfterFinished != 900 {
			t.Errorf("room for %d, %+v", room, job.Spec)
		}
		if labels := job.Spec.Template.Labels; labels[naming.LabelCluster] != "" || labels["app.kubernetes.io/name"] == "etcd" || labels[naming.LabelDrillOf] != "nightly" || job.OwnerReferences[0].Name != "nightly-backup-schedule" {
			t.Errorf("labels %v, owners %v", labels, job.OwnerReferences)
		}
		want := fmt.Sprintf("--trial --volume=/var/lib/etcd --member=trial --peer-url=http://127.0.0.1:2380 --token=%s --at-least=7 --sha256=%s --size=%d --snapshot-size=%d --compression=zstd --hash=99", job.Name, m.SHA256, m.Size, m.SnapshotSize)
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
				drilled(t, good, func(w *reconcilertest.World) {
					w.MustPassRequests(clustertest.Nightly(), 3*time.Hour)
					w.PassUntilKilled(w.KillAt(n+1, after), clustertest.Nightly(scheduler.EveryDrill))
					w.Signs()
					w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), time.Hour)
					if m := w.Manifests()[0]; m.Drill.Result != backup.DrillPassed {
						t.Errorf("%+v\n%s", m.Drill, w.Log)
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
	}, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 2*time.Hour+10*time.Second)
		if err := w.API.BatchV1().Jobs("shop").Delete(w.Context(), reconcilertest.JobsOf(w)[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		none = false
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), time.Minute)
		if m := w.Manifests()[0]; m.Drill.Result != backup.DrillPassed {
			t.Errorf("%+v", m.Drill)
		}
		w.WantNoDrill()
	})
}

// No more drills than --max-drills run at once, whichever process has begun them.
func TestDrillsWaitForAPlace(t *testing.T) {
	drilled(t, func() corev1.ContainerStatus { return corev1.ContainerStatus{} }, func(w *reconcilertest.World) {
		other := clustertest.Nightly(scheduler.EveryDrill)
		other.Metadata.Name = "else"
		w.R.SetBackups([]desired.Backup{clustertest.Nightly(scheduler.EveryDrill), other})
		putJob(w, "else", naming.LabelDrillOf, scheduler.RecordName(other))
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 3*time.Hour)
		if said := w.Lines("backup waits", "reason"); len(said) != 1 || !strings.Contains(said[0], "--max-drills") || len(reconcilertest.JobsOf(w)) != 1 {
			t.Errorf("%q, %d Jobs", said, len(reconcilertest.JobsOf(w)))
		}
		if err := w.API.BatchV1().Jobs("shop").Delete(w.Context(), "else", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), time.Minute)
		if len(reconcilertest.JobsOf(w)) != 1 || reconcilertest.JobsOf(w)[0].Name == "else" {
			t.Errorf("%v", reconcilertest.JobsOf(w))
		}
	})
}
