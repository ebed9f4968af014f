package reconciler

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
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// 102: after each good backup those that no rule keeps are removed, and only what
// this schedule took; each with its reason.
func TestRetentionRemovesWhatNobodyKeeps(t *testing.T) {
	keepTwo := func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(2)) }
	backedUp(t, func(w *world) {
		w.mustPassRequests(once(), time.Minute)
		weekly := nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "0 1 * * *" })
		weekly.Metadata.Name = "weekly"
		w.mustPassRequests(weekly, 2*time.Hour)
		q := nightly(keepTwo)
		w.mustPassRequests(q, 5*24*time.Hour)
		w.wantTimes("01-01 00:00", "01-01 01:00", "01-05 02:00", "01-06 02:00")
		if reasons := w.lines("remove", "reason"); len(reasons) != 3 || reasons[0] != "no rule keeps it" {
			w.Errorf("%q", reasons)
		}
		if reasons := w.lines("keep", "reason"); len(reasons) != 6 || reasons[1] != "last 1 of 2, the newest that can be restored" {
			w.Errorf("%q", reasons)
		}
		// Objects and manifests go together.
		if files, err := os.ReadDir(w.backups + "/shop/orders"); err != nil || len(files) != 8 {
			w.Errorf("%v, %v", files, err)
		}
	})
}

// Backups are looked through once after each good one, and now and then only where
// no more come; where nothing is to be removed, never.
func TestRetainsOnlyWhereThereIsReason(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	kept := func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) }
	suspended := func(s *schema.BackupScheduleSpec) { s.Suspend = true }
	last := &doneBackup{URL: "s3://b/1.db"}
	for name, c := range map[string]struct {
		q    desired.Backup
		rec  requestRecord
		want bool
	}{
		"after a good backup":          {nightly(kept), requestRecord{Last: last, Ended: now.Add(-time.Hour), Retained: now.Add(-2 * time.Hour)}, true},
		"of a single backup":           {once(), requestRecord{Last: last, Ended: now}, false},
		"before the first good one":    {nightly(kept), requestRecord{Ended: now}, false},
		"suspended before the first":   {nightly(kept, suspended), requestRecord{}, false},
		"without retention":            {nightly(), requestRecord{Last: last, Ended: now}, false},
		"suspended, without retention": {nightly(suspended), requestRecord{Last: last}, false},
		"while more come":              {nightly(kept), requestRecord{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-8 * time.Hour)}, false},
		"suspended, an hour ago":       {nightly(kept, suspended), requestRecord{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-time.Hour)}, true},
		"suspended, a moment ago":      {nightly(kept, suspended), requestRecord{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-59 * time.Minute)}, false},
	} {
		if got := retains(c.q, c.rec, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// 102, I10: what must not be removed is not.
func TestRetentionKeepsWhatIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, q *desired.Backup, object string)
		want   int
	}{
		"nothing in the way": {func(*world, *desired.Backup, string) {}, 1},
		"a restore in Git": {func(w *world, _ *desired.Backup, o string) {
			w.r.scheduler.SetNeeded(map[string]string{o + "?a=b": "EtcdRestore shop/x"}, "")
		}, 2},
		"a restore in Git that cannot be read": {func(w *world, _ *desired.Backup, _ string) {
			w.r.scheduler.SetNeeded(nil, "the document at x.yaml:1 has errors")
		}, 2},
		"a recovery in Git": {func(w *world, _ *desired.Backup, o string) {
			w.wish.Spec.Recovery.ObjectURL = o
			w.r.SetDesired([]desired.Cluster{w.wish})
		}, 2},
		"a backup that the cluster's record names": {func(w *world, _ *desired.Backup, o string) {
			w.notes(func(r *record.Record) { r.Backup = &record.Backup{URL: o + "?a=b"} })
		}, 2},
		"a recovery under way": {func(w *world, _ *desired.Backup, o string) {
			w.notes(func(r *record.Record) {
				r.Recovering = &record.Recovering{ClusterID: "a1", ObjectURL: o + "?a=b"}
			})
		}, 2},
		"the file has errors": {func(_ *world, q *desired.Backup, _ string) { q.Held = true }, 2},
		"a copy from elsewhere": {func(w *world, _ *desired.Backup, o string) {
			path := strings.TrimPrefix(o, "file://")
			for _, suffix := range []string{"", backup.ManifestSuffix} {
				text, err := os.ReadFile(path + suffix)
				if err != nil {
					w.Fatal(err)
				}
				if err := os.WriteFile(w.backups+"/shop/orders/copy.db"+suffix, text, 0o600); err != nil {
					w.Fatal(err)
				}
			}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			backedUp(t, func(w *world) {
				q := nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
				w.mustPassRequests(q, 3*time.Hour)
				c.change(w, &q, w.manifests()[0].Object)
				w.mustPassRequests(q, 24*time.Hour)
				if n := len(w.manifests()); n != c.want {
					w.Errorf("%d backups, want %d\n%s", n, c.want, w.log)
				}
			})
		})
	}
}

// notes changes the cluster's record, as quorate would.
func (w *world) notes(change func(*record.Record)) {
	w.Helper()
	rec := w.record()
	change(&rec)
	records := w.api.CoreV1().ConfigMaps("shop")
	cm, err := records.Get(w.Context(), naming.Record(w.wish.Metadata.Name), metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	cm.Data = rec.ConfigMap(w.wish.EtcdCluster).Data
	if _, err := records.Update(w.Context(), cm, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// 102, 114: schedules of one name in two Kubernetes clusters may put their backups
// into one place: each removes its own only, and says that there are others. They
// are told apart by the UIDs of their records.
func TestRetentionLeavesAnotherKubernetesClustersBackups(t *testing.T) {
	backedUp(t, func(w *world) {
		q := nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
		w.mustPassRequests(q, 51*time.Hour)
		if err := w.api.CoreV1().ConfigMaps("shop").Delete(w.Context(), recordNameOf(q), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.mustPassRequests(q, 48*time.Hour)
		w.wantTimes("01-03 02:00", "01-05 02:00")
		if list := w.manifests(); list[0].ScheduleUID == "" || list[0].ScheduleUID == list[1].ScheduleUID {
			t.Errorf("%+v", list)
		}
		if told := w.lines("left alone", "backups"); !slices.Equal(told, []string{"1"}) {
			t.Errorf("told %q", told)
		}
	})
}

// 101, 102: a suspended schedule's backups grow too old, but for the newest one.
func TestRetentionGoesOnWhileSuspended(t *testing.T) {
	backedUp(t, func(w *world) {
		aged := func(s *schema.BackupScheduleSpec) { s.Retention.MaxAge = lasting(50 * time.Hour) }
		w.mustPassRequests(nightly(aged), 51*time.Hour)
		w.wantTimes("01-01 02:00", "01-02 02:00", "01-03 02:00")
		w.mustPassRequests(nightly(aged, func(s *schema.BackupScheduleSpec) { s.Suspend = true }), 240*time.Hour)
		w.wantTimes("01-03 02:00")
	})
}

// A listing without the newest backup is not the whole truth: nothing is removed.
func TestRetentionDoesNotTrustAnIncompleteList(t *testing.T) {
	backedUp(t, func(w *world) {
		q := nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(3)) })
		w.mustPassRequests(q, 51*time.Hour)
		path := strings.TrimPrefix(w.manifests()[2].Object, "file://") + backup.ManifestSuffix
		if err := os.Remove(path); err != nil {
			w.Fatal(err)
		}
		q = nightly(func(s *schema.BackupScheduleSpec) {
			s.Retention.KeepLast, s.Suspend = new(int32(1)), true
		})
		w.mustPassRequests(q, 5*time.Hour)
		w.wantTimes("01-01 02:00", "01-02 02:00")
		if said := w.lines("retention failed", "error"); len(said) == 0 || !strings.Contains(said[0], "nothing is removed before the next backup") {
			w.Errorf("%q", said)
		}
	})
}

// writeFunc is told of what is written.
type writeFunc func([]byte)

func (f writeFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// A manifest that cannot be read is nobody's to remove, is told once, and is in
// nobody's way; a backup that another has removed just now is as good as removed.
func TestRetentionBesideOthers(t *testing.T) {
	backedUp(t, func(w *world) {
		q := nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
		w.mustPassRequests(q, 3*time.Hour)
		first := strings.TrimPrefix(w.manifests()[0].Object, "file://")
		broken := w.backups + "/shop/orders/broken.db" + backup.ManifestSuffix
		if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		// The other one is faster, between the decision and the removal.
		w.r.scheduler.log = slog.New(slog.NewJSONHandler(io.MultiWriter(w.log, writeFunc(func(line []byte) {
			if bytes.Contains(line, []byte(`"msg":"remove"`)) {
				_ = os.Remove(first + backup.ManifestSuffix)
			}
		})), nil))
		w.mustPassRequests(q, 48*time.Hour)
		if _, err := os.Stat(broken); err != nil {
			t.Error(err)
		}
		if removed := w.lines("remove", "url"); len(removed) != 2 || !strings.HasSuffix(removed[0], first) {
			t.Errorf("removed %q", removed)
		}
		if told := w.lines("left alone", "message"); len(told) != 1 {
			t.Errorf("told %q", told)
		}
		if said := w.lines("retention failed", "error"); len(said) > 0 {
			t.Errorf("%q", said)
		}
	})
}

// I10: what a record needs that cannot be read, nobody knows: nothing is removed.
func TestRetentionWaitsForTheRecord(t *testing.T) {
	backedUp(t, func(w *world) {
		w.mustPassRequests(nightly(), 27*time.Hour)
		w.notes(func(r *record.Record) { r.Backup = &record.Backup{URL: w.manifests()[0].Object} })
		damage(w)
		synctest.Wait()
		q := nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast, s.Suspend = new(int32(1)), true })
		w.mustPassRequests(q, 5*time.Hour)
		w.wantTimes("01-01 02:00", "01-02 02:00")
		if said := w.lines("retention failed", "error"); len(said) == 0 || !strings.Contains(said[0], "nothing is removed while nobody knows what is needed: record shop/orders-record") {
			w.Errorf("%q", said)
		}
	})
}
