package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

// 96: a schedule strikes at its times; its backups say so.
func TestScheduleStrikes(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly()
		w.MustPassRequests(q, 72*time.Hour)
		w.WantTimes("01-01 02:00", "01-02 02:00", "01-03 02:00")
		if k := w.RequestRecord(q); len(k.Done) > 0 {
			w.Errorf("the record grows with every backup: %+v", k.Done)
		}
		m := w.Manifests()[2]
		if m.Schedule != "shop/nightly" || m.Request != "" || m.Reason != "schedule nightly" || m.Member != "orders-1" {
			w.Errorf("%+v", m)
		}
		labels := `{etcd_cluster="orders",etcd_namespace="shop",schedule="nightly"} `
		w.WantMetric("quorate_backup_last_success_timestamp_seconds" + labels + fmt.Sprint(float64(m.Time.Unix())))
		w.WantMetric("quorate_backup_last_success_size_bytes" + labels + fmt.Sprint(float64(m.Size)))
		w.WantMetric("quorate_backup_overdue" + labels + "0")
		w.WantMetric("quorate_backup_failures_total" + strings.Replace(labels, "{", `{backup="",`, 1) + "0")
		w.R.Scheduler.SetDesired([]desired.Backup{q})
		w.R.Scheduler.SetDesired(nil)
		families, err := w.Registry.Gather()
		if err != nil {
			w.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "schedule" && l.GetValue() == "nightly" {
						w.Errorf("%s is left of a schedule that is gone", f.GetName())
					}
				}
			}
		}
	})
}

// 97, 98, 115: what was missed while the daemon was down is made good by one
// backup, and is overdue meanwhile.
func TestMissedTimesAreMadeGoodOnce(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly()
		w.MustPassRequests(q, 24*time.Hour)
		time.Sleep(5*24*time.Hour + 10*time.Hour)
		w.Restart()
		w.MustPassRequests(q, 24*time.Hour)
		w.WantTimes("01-01 02:00", "01-07 10:00", "01-08 02:00")
		if missed := w.Lines("backup started", "missed"); !slices.Equal(missed, []string{"0", "5", "0"}) {
			w.Errorf("missed %q", missed)
		}
	})
}

// 99, 101: other times count from when they are seen; a suspended schedule takes no
// backup and makes good one when it continues; a clock that jumps hides nothing.
func TestScheduleIsEditedAndSuspended(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(), 10*time.Hour)
		w.WantTimes("01-01 02:00")
		noon := func(s *schema.BackupScheduleSpec) { s.Schedule = "0 9 * * *" }
		w.MustPassRequests(clustertest.Nightly(noon), 24*time.Hour)
		w.WantTimes("01-01 02:00", "01-02 09:00")
		suspended := func(s *schema.BackupScheduleSpec) { s.Suspend = true }
		w.MustPassRequests(clustertest.Nightly(noon, suspended), 72*time.Hour)
		if n := len(w.Manifests()); n != 2 {
			w.Errorf("%d backups of a suspended schedule", n)
		}
		w.WantMetric(`quorate_backup_overdue{etcd_cluster="orders",etcd_namespace="shop",schedule="nightly"} 0`)
		w.MustPassRequests(clustertest.Nightly(noon), time.Hour)
		w.WantTimes("01-01 02:00", "01-02 09:00", "01-05 10:00")
		// 179: the clock is put ahead by a day, and back again. What was noted ahead counts
		// for nothing: a backup is taken at once, and at the next time, which was left out.
		ahead := 24 * time.Hour
		w.Reconfigure(func(o *reconciler.Options) { o.Now = func() time.Time { return time.Now().Add(ahead) } })
		w.MustPassRequests(clustertest.Nightly(noon), 10*time.Minute)
		ahead = 0
		w.MustPassRequests(clustertest.Nightly(noon), 24*time.Hour)
		w.WantTimes("01-01 02:00", "01-02 09:00", "01-05 10:00", "01-05 11:10", "01-06 09:00", "01-06 11:00")
		w.MustPassRequests(clustertest.Nightly(noon), 24*time.Hour)
		w.WantTimes("01-01 02:00", "01-02 09:00", "01-05 10:00", "01-05 11:10", "01-06 09:00", "01-06 11:00", "01-07 09:00")
	})
}

// 100: a time that comes while a backup is still being taken is left out, and told.
func TestOverlapIsLeftOut(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Etcd.Stream = func(context.Context) io.Reader { return slowly(w.Etcd.Database, 25*time.Minute) }
		w.MustPassRequests(clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "*/10 * * * *" }), 59*time.Minute)
		w.WantTimes("01-01 00:10", "01-01 00:40")
		if said := w.Lines("backup left out", "reason"); len(said) == 0 || !strings.Contains(said[0], "came while a backup was still being taken, and is left out") {
			w.Errorf("said %q", said)
		}
	})
}

// 104, 115: a store that takes nothing is a failure that is counted and overdue;
// the starting deadline gives a time up; nothing of it counts as a backup.
func TestFailingScheduleIsOverdue(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		if err := os.Chmod(w.Backups, 0o700); err != nil {
			w.Fatal(err)
		}
		w.Etcd.Stream = func(context.Context) io.Reader { return strings.NewReader("this is no database") }
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.StartingDeadline = scheduler.Lasting(30 * time.Minute) })
		w.MustPassRequests(q, 2*time.Hour+29*time.Minute)
		labels := `{etcd_cluster="orders",etcd_namespace="shop",schedule="nightly"} `
		w.WantMetric("quorate_backup_overdue" + labels + "0")
		w.MustPassRequests(q, time.Hour)
		w.WantMetric("quorate_backup_overdue" + labels + "1")
		// At 0, 1, 3, 7 and 15 minutes; at 31 the deadline has passed.
		w.WantMetric("quorate_backup_failures_total" + strings.Replace(labels, "{", `{backup="",`, 1) + "5")
		if said := w.Lines("backup left out", "reason"); len(said) != 0 {
			w.Errorf("%q", said) // the failure has been told
		}
		w.Etcd.Stream = nil
		w.MustPassRequests(q, 24*time.Hour)
		w.WantTimes("01-02 02:00")
		w.WantMetric("quorate_backup_overdue" + labels + "0")
	})
}

// Jitter delays a backup by the same time each day.
func TestJitterDelaysTheSameEachDay(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Jitter = scheduler.Lasting(2 * time.Hour) }), 48*time.Hour)
		list := w.Times()
		if len(list) != 2 || list[0][6:] != list[1][6:] || list[0][6:] == "02:00" {
			w.Errorf("%q", list)
		}
	})
}

// 98: quorate is killed at each write while a schedule's backup is taken. The next
// process makes exactly one backup for that time, and one for the next.
func TestScheduleSurvivesAKillAtEachStep(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := range 2 {
			t.Run(fmt.Sprintf("write %d, carried out %t", n+1, after), func(t *testing.T) {
				reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
					q := clustertest.Nightly()
					w.MustPassRequests(q, time.Minute)
					time.Sleep(2 * time.Hour)
					w.PassUntilKilled(w.KillAt(n+1, after), q)
					w.MustPassRequests(q, time.Hour)
					if got := len(w.Manifests()); got != 1 {
						w.Fatalf("%d backups\n%s", got, w.Log)
					}
					w.MustPassRequests(q, 24*time.Hour)
					if got := len(w.Manifests()); got != 2 {
						w.Errorf("%d backups a day later", got)
					}
				})
			})
		}
	}
}

// What a process left that was killed between the object and its manifest is no
// backup: another one is taken elsewhere, and what was left is removed.
func TestObjectWithoutManifestIsNoBackup(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly()
		w.MustPassRequests(q, time.Minute)
		time.Sleep(2 * time.Hour)
		w.KilledWhileTaking(q)
		begun := w.RequestRecord(q).Begun
		if begun == nil || begun.Failed {
			w.Fatalf("%+v", begun)
		}
		left := strings.TrimPrefix(desired.WithoutQuery(begun.URL), "file://")
		if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
			w.Fatal(err)
		}
		w.MustPassRequests(q, time.Hour)
		if list := w.Manifests(); len(list) != 1 || list[0].Object == desired.WithoutQuery(begun.URL) {
			w.Errorf("%+v", list)
		}
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			w.Errorf("half a backup is left: %v", err)
		}
	})
}

// What was begun in a store that is gone does not keep back who wants another place.
func TestAStoreThatIsGoneHoldsNoOtherSpec(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.KilledWhileTaking(clustertest.Once())
		if err := os.RemoveAll(w.Backups + "/shop"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.Backups+"/shop", []byte("no directory"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(clustertest.Once(), 30*time.Second)
		if k := w.RequestRecord(clustertest.Once()); k.Begun == nil || k.Failures != 1 {
			t.Fatalf("what became of it cannot be known: %+v", k)
		}
		elsewhere := w.OnceElsewhere()
		w.MustPassRequests(elsewhere, time.Minute)
		if k := w.RequestRecord(elsewhere); len(w.Manifests()) != 1 || k.Begun != nil || k.Failures != 0 {
			t.Errorf("%d backups, %+v", len(w.Manifests()), k)
		}
		if told := w.Lines("incomplete backup may have left an object", "url"); len(told) > 0 {
			t.Errorf("where nothing is known, something was to be removed: %q", told)
		}
	})
}

// A try that a kill ended is no failure of the spec that replaced its own: that one is
// taken at once.
func TestAChangedSpecDoesNotWaitForAFailedOne(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.KilledWhileTaking(clustertest.Once())
		elsewhere := w.OnceElsewhere()
		w.MustPassRequests(elsewhere, time.Second)
		if list := w.Manifests(); len(list) != 1 {
			t.Errorf("%d backups\n%s", len(list), w.Log)
		}
	})
}

// Without the credentials nobody knows what is in the store: what was begun there is
// not looked for with others, nor removed.
func TestABackupIsSettledWithItsCredentials(t *testing.T) {
	byJobs(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.BackupRunner = scheduler.InDaemon })
		w.KilledWhileTaking(clustertest.Once())
		if err := w.API.CoreV1().Secrets("shop").Delete(w.Context(), "s3", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(clustertest.Once(), 30*time.Second)
		if k := w.RequestRecord(clustertest.Once()); k.Begun == nil || !k.Begun.Failed || !strings.Contains(k.Problem, "the Secret shop/s3 with the credentials") {
			t.Errorf("%+v, begun %+v", k, k.Begun)
		}
	})
}
