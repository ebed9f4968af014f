package reconciler

import (
	"bytes"
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

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// nightly is the EtcdBackupSchedule shop/nightly of the cluster orders, at two.
func nightly(edits ...func(*schema.BackupScheduleSpec)) desired.Backup {
	s := schema.EtcdBackupSchedule{}
	s.Metadata.Namespace, s.Metadata.Name = "shop", "nightly"
	s.Spec.Schedule = "0 2 * * *"
	s.Spec.BackupTemplate.Source.ClusterName = "orders"
	for _, edit := range edits {
		edit(&s.Spec)
	}
	return desired.ScheduleOf(s, "0a1b2c3")
}

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// times are those of the backups in the store, as "01-02 15:04".
func (w *world) times() []string {
	w.Helper()
	var list []string
	for _, m := range w.manifests() {
		list = append(list, m.Time.Format("01-02 15:04"))
	}
	return list
}

func (w *world) wantTimes(want ...string) {
	w.Helper()
	if got := w.times(); !slices.Equal(got, want) {
		w.Errorf("backups at %q, want %q\n%s", got, want, w.log)
	}
}

func (w *world) mustPassRequests(q desired.Backup, during time.Duration) {
	w.Helper()
	if err := w.passRequests(q, during); err != nil {
		w.Fatalf("%v\n%s", err, w.log)
	}
}

// 96: a schedule strikes at its times; its backups say so.
func TestScheduleStrikes(t *testing.T) {
	backedUp(t, func(w *world) {
		q := nightly()
		w.mustPassRequests(q, 72*time.Hour)
		w.wantTimes("01-01 02:00", "01-02 02:00", "01-03 02:00")
		if k := w.requestRecord(q); len(k.Done) > 0 {
			w.Errorf("the record grows with every backup: %+v", k.Done)
		}
		m := w.manifests()[2]
		if m.Schedule != "shop/nightly" || m.Request != "" || m.Reason != "schedule nightly" || m.Member != "orders-1" {
			w.Errorf("%+v", m)
		}
		labels := `{cluster="orders",namespace="shop",schedule="nightly"} `
		w.wantMetric("quorate_backup_last_success_timestamp_seconds" + labels + fmt.Sprint(float64(m.Time.Unix())))
		w.wantMetric("quorate_backup_last_success_size_bytes" + labels + fmt.Sprint(float64(m.Size)))
		w.wantMetric("quorate_backup_overdue" + labels + "0")
		w.wantMetric("quorate_backup_failures_total" + labels + "0")
		w.r.scheduler.SetRequests([]desired.Backup{q})
		w.r.scheduler.SetRequests(nil)
		families, err := w.registry.Gather()
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
	backedUp(t, func(w *world) {
		q := nightly()
		w.mustPassRequests(q, 24*time.Hour)
		time.Sleep(5*24*time.Hour + 10*time.Hour)
		w.restart()
		w.mustPassRequests(q, 24*time.Hour)
		w.wantTimes("01-01 02:00", "01-07 10:00", "01-08 02:00")
		if missed := w.lines("backup begins", "missed"); !slices.Equal(missed, []string{"0", "5", "0"}) {
			w.Errorf("missed %q", missed)
		}
	})
}

// 99, 101: other times count from when they are seen; a suspended schedule takes no
// backup and makes good one when it goes on; a clock that jumps hides nothing.
func TestScheduleIsEditedAndSuspended(t *testing.T) {
	backedUp(t, func(w *world) {
		w.mustPassRequests(nightly(), 10*time.Hour)
		w.wantTimes("01-01 02:00")
		noon := func(s *schema.BackupScheduleSpec) { s.Schedule = "0 9 * * *" }
		w.mustPassRequests(nightly(noon), 24*time.Hour)
		w.wantTimes("01-01 02:00", "01-02 09:00")
		suspended := func(s *schema.BackupScheduleSpec) { s.Suspend = true }
		w.mustPassRequests(nightly(noon, suspended), 72*time.Hour)
		if n := len(w.manifests()); n != 2 {
			w.Errorf("%d backups of a suspended schedule", n)
		}
		w.wantMetric(`quorate_backup_overdue{cluster="orders",namespace="shop",schedule="nightly"} 0`)
		w.mustPassRequests(nightly(noon), time.Hour)
		w.wantTimes("01-01 02:00", "01-02 09:00", "01-05 10:00")
		// The clock is put ahead by a day, and back again.
		ahead := 24 * time.Hour
		w.reconfigure(func(o *Options) { o.Now = func() time.Time { return time.Now().Add(ahead) } })
		w.mustPassRequests(nightly(noon), 10*time.Minute)
		ahead = 0
		w.mustPassRequests(nightly(noon), 24*time.Hour)
		w.wantTimes("01-01 02:00", "01-02 09:00", "01-05 10:00", "01-06 11:00")
		w.mustPassRequests(nightly(noon), 24*time.Hour)
		w.wantTimes("01-01 02:00", "01-02 09:00", "01-05 10:00", "01-06 11:00", "01-07 09:00")
	})
}

// 100: a time that comes while a backup is still being taken is left out, and told.
func TestOverlapIsLeftOut(t *testing.T) {
	backedUp(t, func(w *world) {
		slow := 25 * time.Minute
		w.etcd.stream = func(context.Context) io.Reader {
			return io.MultiReader(readFunc(func([]byte) (int, error) {
				time.Sleep(slow)
				return 0, io.EOF
			}), bytes.NewReader(w.etcd.snapshot))
		}
		w.mustPassRequests(nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "*/10 * * * *" }), 59*time.Minute)
		w.wantTimes("01-01 00:10", "01-01 00:40")
		if said := w.lines("no backup", "message"); len(said) == 0 || !strings.Contains(said[0], "came while a backup was still being taken, and is left out") {
			w.Errorf("said %q", said)
		}
	})
}

// 104, 115: a store that takes nothing is a failure that is counted and overdue;
// the starting deadline gives a time up; nothing of it counts as a backup.
func TestFailingScheduleIsOverdue(t *testing.T) {
	backedUp(t, func(w *world) {
		if err := os.Chmod(w.backups, 0o700); err != nil {
			w.Fatal(err)
		}
		w.etcd.stream = func(context.Context) io.Reader { return strings.NewReader("this is no database") }
		q := nightly(func(s *schema.BackupScheduleSpec) { s.StartingDeadline = lasting(30 * time.Minute) })
		w.mustPassRequests(q, 2*time.Hour+29*time.Minute)
		labels := `{cluster="orders",namespace="shop",schedule="nightly"} `
		w.wantMetric("quorate_backup_overdue" + labels + "0")
		w.mustPassRequests(q, time.Hour)
		w.wantMetric("quorate_backup_overdue" + labels + "1")
		// At 0, 1, 3, 7 and 15 minutes; at 31 the deadline has passed.
		w.wantMetric("quorate_backup_failures_total" + labels + "5")
		if said := w.lines("no backup", "message"); len(said) != 0 {
			w.Errorf("%q", said) // the failure has been told
		}
		w.etcd.stream = nil
		w.mustPassRequests(q, 24*time.Hour)
		w.wantTimes("01-02 02:00")
		w.wantMetric("quorate_backup_overdue" + labels + "0")
	})
}

// Jitter delays a backup by the same time each day.
func TestJitterDelaysTheSameEachDay(t *testing.T) {
	backedUp(t, func(w *world) {
		w.mustPassRequests(nightly(func(s *schema.BackupScheduleSpec) { s.Jitter = lasting(2 * time.Hour) }), 48*time.Hour)
		list := w.times()
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
				backedUp(t, func(w *world) {
					q := nightly()
					w.mustPassRequests(q, time.Minute)
					time.Sleep(2 * time.Hour)
					w.passUntilKilled(w.killAt(n+1, after), q)
					w.mustPassRequests(q, time.Hour)
					if got := len(w.manifests()); got != 1 {
						w.Fatalf("%d backups\n%s", got, w.log)
					}
					w.mustPassRequests(q, 24*time.Hour)
					if got := len(w.manifests()); got != 2 {
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
	backedUp(t, func(w *world) {
		q := nightly()
		w.mustPassRequests(q, time.Minute)
		time.Sleep(2 * time.Hour)
		w.killedWhileTaking(q)
		begun := w.requestRecord(q).Begun
		if begun == nil || begun.Failed {
			w.Fatalf("%+v", begun)
		}
		left := strings.TrimPrefix(desired.WithoutQuery(begun.URL), "file://")
		if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
			w.Fatal(err)
		}
		w.mustPassRequests(q, time.Hour)
		if list := w.manifests(); len(list) != 1 || list[0].Object == desired.WithoutQuery(begun.URL) {
			w.Errorf("%+v", list)
		}
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			w.Errorf("half a backup is left: %v", err)
		}
	})
}

// onceElsewhere is once with another place.
func (w *world) onceElsewhere() desired.Backup {
	return once(func(s *schema.BackupRequest) {
		s.Destination.ObjectURLTemplate = "file://" + w.backups + "/elsewhere/{{ .Name }}-{{ .UID }}.db?root=" + w.backups
	})
}

// What was begun in a store that is gone does not keep back who wants another place.
func TestAStoreThatIsGoneHoldsNoOtherSpec(t *testing.T) {
	backedUp(t, func(w *world) {
		w.killedWhileTaking(once())
		if err := os.RemoveAll(w.backups + "/shop"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.backups+"/shop", []byte("no directory"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.mustPassRequests(once(), 30*time.Second)
		if k := w.requestRecord(once()); k.Begun == nil || k.Failures != 1 {
			t.Fatalf("what became of it cannot be known: %+v", k)
		}
		elsewhere := w.onceElsewhere()
		w.mustPassRequests(elsewhere, time.Minute)
		if k := w.requestRecord(elsewhere); len(w.manifests()) != 1 || k.Begun != nil || k.Failures != 0 {
			t.Errorf("%d backups, %+v", len(w.manifests()), k)
		}
		if told := w.lines("left behind", "url"); len(told) > 0 {
			t.Errorf("where nothing is known, something was to be removed: %q", told)
		}
	})
}

// A try that a kill ended is no failure of the spec that replaced its own: that one is
// taken at once.
func TestAChangedSpecDoesNotWaitForAFailedOne(t *testing.T) {
	backedUp(t, func(w *world) {
		w.killedWhileTaking(once())
		elsewhere := w.onceElsewhere()
		w.mustPassRequests(elsewhere, time.Second)
		if list := w.manifests(); len(list) != 1 {
			t.Errorf("%d backups\n%s", len(list), w.log)
		}
	})
}

// Without the credentials nobody knows what is in the store: what was begun there is
// not looked for with others, nor removed.
func TestABackupIsSettledWithItsCredentials(t *testing.T) {
	byJobs(t, func(w *world) {
		w.reconfigure(func(o *Options) { o.BackupRunner = RunnerDaemon })
		w.killedWhileTaking(once())
		if err := w.api.CoreV1().Secrets("shop").Delete(w.Context(), "s3", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.mustPassRequests(once(), 30*time.Second)
		if k := w.requestRecord(once()); k.Begun == nil || !k.Begun.Failed || !strings.Contains(k.Problem, "the Secret shop/s3 with the credentials") {
			t.Errorf("%+v, begun %+v", k, k.Begun)
		}
	})
}
