package scheduler_test

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

// 102: after each good backup those that no rule keeps are removed, and only what
// this schedule took; each with its reason.
func TestRetentionRemovesWhatNobodyKeeps(t *testing.T) {
	keepTwo := func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(2)) }
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Once(), time.Minute)
		weekly := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "0 1 * * *" })
		weekly.Metadata.Name = "weekly"
		w.MustPassRequests(weekly, 2*time.Hour)
		q := clustertest.Nightly(keepTwo)
		w.MustPassRequests(q, 5*24*time.Hour)
		w.WantTimes("01-01 00:00", "01-01 01:00", "01-05 02:00", "01-06 02:00")
		if reasons := w.Lines("removing backup", "reason"); len(reasons) != 3 || reasons[0] != "no rule keeps it" {
			w.Errorf("%q", reasons)
		}
		if reasons := w.Lines("backup kept", "reason"); len(reasons) != 6 || reasons[1] != "last 1 of 2, the newest that can be restored" {
			w.Errorf("%q", reasons)
		}
		// Objects and manifests go together.
		if files, err := os.ReadDir(w.Backups + "/shop/orders"); err != nil || len(files) != 8 {
			w.Errorf("%v, %v", files, err)
		}
	})
}

// 102, I10: what must not be removed is not.
func TestRetentionKeepsWhatIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *reconcilertest.World, q *desired.Backup, object string)
		want   int
	}{
		"nothing in the way": {func(*reconcilertest.World, *desired.Backup, string) {}, 1},
		"a restore in Git": {func(w *reconcilertest.World, _ *desired.Backup, o string) {
			w.R.Scheduler.SetNeeded(map[string]string{o + "?a=b": "EtcdRestore shop/x"}, "")
		}, 2},
		"a restore in Git that cannot be read": {func(w *reconcilertest.World, _ *desired.Backup, _ string) {
			w.R.Scheduler.SetNeeded(nil, "the document at x.yaml:1 has errors")
		}, 2},
		"a recovery in Git": {func(w *reconcilertest.World, _ *desired.Backup, o string) {
			w.Wish.Spec.Recovery.ObjectURL = o
			w.R.SetDesired([]desired.Cluster{w.Wish})
		}, 2},
		"a backup that the cluster's record names": {func(w *reconcilertest.World, _ *desired.Backup, o string) {
			w.Notes(func(r *record.Record) { r.Backup = &record.Backup{URL: o + "?a=b"} })
		}, 2},
		"one that its last roll rests on": {func(w *reconcilertest.World, _ *desired.Backup, o string) {
			w.Notes(func(r *record.Record) {
				r.Backup, r.RollBackup = &record.Backup{URL: "s3://b/a.db"}, &record.Backup{URL: o + "?a=b"}
			})
		}, 2},
		"a recovery under way": {func(w *reconcilertest.World, _ *desired.Backup, o string) {
			w.Notes(func(r *record.Record) {
				r.Recovering = &record.Recovering{ClusterID: "a1", ObjectURL: o + "?a=b"}
			})
		}, 2},
		"the file has errors": {func(_ *reconcilertest.World, q *desired.Backup, _ string) { q.Held = true }, 2},
		"a copy from elsewhere": {func(w *reconcilertest.World, _ *desired.Backup, o string) {
			path := strings.TrimPrefix(o, "file://")
			for _, suffix := range []string{"", backup.ManifestSuffix} {
				text, err := os.ReadFile(path + suffix)
				if err != nil {
					w.Fatal(err)
				}
				if err := os.WriteFile(w.Backups+"/shop/orders/copy.db"+suffix, text, 0o600); err != nil {
					w.Fatal(err)
				}
			}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
				q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
				w.MustPassRequests(q, 3*time.Hour)
				c.change(w, &q, w.Manifests()[0].Object)
				w.MustPassRequests(q, 24*time.Hour)
				if n := len(w.Manifests()); n != c.want {
					w.Errorf("%d backups, want %d\n%s", n, c.want, w.Log)
				}
			})
		})
	}
}

// 102, 114: schedules of one name in two Kubernetes clusters may put their backups
// into one place: each removes its own only, and says that there are others. They
// are told apart by the UIDs of their records.
func TestRetentionLeavesAnotherKubernetesClustersBackups(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
		w.MustPassRequests(q, 51*time.Hour)
		if err := w.API.CoreV1().ConfigMaps("shop").Delete(w.Context(), scheduler.RecordName(q), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(q, 48*time.Hour)
		w.WantTimes("01-03 02:00", "01-05 02:00")
		if list := w.Manifests(); list[0].ScheduleUID == "" || list[0].ScheduleUID == list[1].ScheduleUID {
			t.Errorf("%+v", list)
		}
		if told := w.Lines("backups of another schedule of this name are left alone", "backups"); !slices.Equal(told, []string{"1"}) {
			t.Errorf("told %q", told)
		}
	})
}

// 101, 102: a suspended schedule's backups grow too old, but for the newest one.
func TestRetentionGoesOnWhileSuspended(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		aged := func(s *schema.BackupScheduleSpec) { s.Retention.MaxAge = scheduler.Lasting(50 * time.Hour) }
		w.MustPassRequests(clustertest.Nightly(aged), 51*time.Hour)
		w.WantTimes("01-01 02:00", "01-02 02:00", "01-03 02:00")
		w.MustPassRequests(clustertest.Nightly(aged, func(s *schema.BackupScheduleSpec) { s.Suspend = true }), 240*time.Hour)
		w.WantTimes("01-03 02:00")
	})
}

// A listing without the newest backup is not the whole truth: nothing is removed.
func TestRetentionDoesNotTrustAnIncompleteList(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(3)) })
		w.MustPassRequests(q, 51*time.Hour)
		path := strings.TrimPrefix(w.Manifests()[2].Object, "file://") + backup.ManifestSuffix
		if err := os.Remove(path); err != nil {
			w.Fatal(err)
		}
		q = clustertest.Nightly(func(s *schema.BackupScheduleSpec) {
			s.Retention.KeepLast, s.Suspend = new(int32(1)), true
		})
		w.MustPassRequests(q, 5*time.Hour)
		w.WantTimes("01-01 02:00", "01-02 02:00")
		if said := w.Lines("retention failed", "error"); len(said) == 0 || !strings.Contains(said[0], "nothing is removed before the next backup") {
			w.Errorf("%q", said)
		}
	})
}

// A manifest that cannot be read is nobody's to remove, is told once, and is in
// nobody's way; a backup that another has removed just now is as good as removed.
func TestRetentionBesideOthers(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
		w.MustPassRequests(q, 3*time.Hour)
		first := strings.TrimPrefix(w.Manifests()[0].Object, "file://")
		broken := w.Backups + "/shop/orders/broken.db" + backup.ManifestSuffix
		if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		// The other one is faster, between the decision and the removal.
		w.R.Scheduler.Log = slog.New(slog.NewJSONHandler(io.MultiWriter(w.Log, scheduler.WriteFunc(func(line []byte) {
			if bytes.Contains(line, []byte(`"msg":"removing backup"`)) {
				_ = os.Remove(first + backup.ManifestSuffix)
			}
		})), nil))
		w.MustPassRequests(q, 48*time.Hour)
		if _, err := os.Stat(broken); err != nil {
			t.Error(err)
		}
		if removed := w.Lines("removing backup", "url"); len(removed) != 2 || !strings.HasSuffix(removed[0], first) {
			t.Errorf("removed %q", removed)
		}
		if told := w.Lines("backup with an unreadable manifest is neither counted nor removed", "error"); len(told) != 1 {
			t.Errorf("told %q", told)
		}
		if said := w.Lines("retention failed", "error"); len(said) > 0 {
			t.Errorf("%q", said)
		}
	})
}

// I10: what a record needs that cannot be read, nobody knows: nothing is removed.
func TestRetentionWaitsForTheRecord(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(), 27*time.Hour)
		w.Notes(func(r *record.Record) { r.Backup = &record.Backup{URL: w.Manifests()[0].Object} })
		reconcilertest.Damage(w)
		synctest.Wait()
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast, s.Suspend = new(int32(1)), true })
		w.MustPassRequests(q, 5*time.Hour)
		w.WantTimes("01-01 02:00", "01-02 02:00")
		if said := w.Lines("retention failed", "error"); len(said) == 0 || !strings.Contains(said[0], "nothing is removed while nobody knows what is needed: record shop/orders-record") {
			w.Errorf("%q", said)
		}
	})
}
