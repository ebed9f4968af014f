package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

// shift puts the scheduler's clock ahead of the world's.
func shift(w *reconcilertest.World, by time.Duration) {
	w.R.Scheduler.Now = func() time.Time { return time.Now().Add(by) }
}

const year = 365 * 24 * time.Hour

// 179, 180: a clock that was a year ahead for two nights is put back: backups and drills
// go on at once, what was dated ahead stays and takes no place, and retention looks
// once after each backup.
func TestAClockThatWasAheadStopsNothing(t *testing.T) {
	good := func() corev1.ContainerStatus {
		return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7}`)
	}
	drilled(t, good, func(w *reconcilertest.World) {
		q := clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(3)) })
		w.MustPassRequests(q, 4*24*time.Hour)
		shift(w, year)
		w.MustPassRequests(q, 2*24*time.Hour)
		shift(w, 0)
		w.Log.Reset()
		w.MustPassRequests(q, 3*24*time.Hour)
		dated := slices.DeleteFunc(w.Manifests(), func(m backup.Manifest) bool { return m.Time.After(time.Now()) })
		if ahead := len(w.Manifests()) - len(dated); ahead < 2 || len(dated) != 3 {
			t.Errorf("%d backups, and %d dated ahead\n%q", len(dated), ahead, w.Times())
		}
		for _, m := range dated {
			if m.Drill.Result != backup.DrillPassed {
				t.Errorf("%s was not restored on trial: %+v", m.Time, m.Drill)
			}
		}
		if taken := len(w.Lines("backup taken", "url")); taken < 3 || taken > 4 {
			t.Errorf("%d backups in three nights", taken)
		}
		if k := w.RequestRecord(q); k.Struck.After(time.Now()) || !k.RetainedAfter.Equal(k.Ended) {
			t.Errorf("%+v", k)
		}
	})
}

// 180: a clock that is put back after a backup lets retention rest: it does not look
// again and again until the time of that backup comes.
func TestRetentionDoesNotSpinAfterTheClockWentBack(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
		shift(w, year)
		w.MustPassRequests(q, 3*time.Hour)
		shift(w, 0)
		q.Schedule.Suspend = true
		w.MustPassRequests(q, 100*time.Millisecond) // the changed spec is noted
		w.API.ClearActions()
		w.MustPassRequests(q, time.Second)
		writes := 0
		for _, a := range w.API.Actions() {
			if a.GetVerb() == "update" {
				writes++
			}
		}
		if writes > 2 {
			t.Errorf("the record was written %d times in a second", writes)
		}
	})
}

// 182, I10: rules that would remove more than half of the backups at once, as those by
// age do when the clock jumps ahead, remove none without a person's word, and say what it
// is. It goes by itself with its cause; and a changed spec.retention is the word.
func TestRetentionRemovesNoMoreThanHalfWithoutAWord(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		aged := func(hours int) func(s *schema.BackupScheduleSpec) {
			return func(s *schema.BackupScheduleSpec) {
				s.Retention.MaxAge = scheduler.Lasting(time.Duration(hours) * time.Hour)
			}
		}
		q := clustertest.Nightly(aged(24 * 30))
		w.MustPassRequests(q, 10*24*time.Hour)
		w.DrainEvents()
		shift(w, year)
		w.MustPassRequests(q, 2*24*time.Hour)
		held := w.RequestRecord(q).RetentionHold
		if n := len(w.Manifests()); n < 12 || held == nil || !strings.Contains(held.Problem, "at most 6 may go at once") || !strings.Contains(held.Problem, "commit any change of spec.retention") {
			t.Fatalf("%d are left, %+v", n, held)
		}
		w.R.Scheduler.SetDesired([]desired.Backup{q})
		w.MustPassRequests(q, time.Minute)
		w.WantPhase(schema.KindBackupSchedule, "nightly", schema.PhaseStalled, "RetentionHeld")
		told := slices.DeleteFunc(w.DrainEvents(), func(e string) bool { return !strings.Contains(e, "RetentionHeld") })
		if len(told) != 1 || len(w.Lines("retention is held", "reason")) != 1 {
			t.Errorf("told %q", told)
		}
		// The clock is put back.
		shift(w, 0)
		w.MustPassRequests(q, 24*time.Hour)
		if held := w.RequestRecord(q).RetentionHold; held != nil {
			t.Errorf("%+v", held)
		}
		before := len(w.Manifests())
		w.MustPassRequests(clustertest.Nightly(aged(26)), 24*time.Hour)
		if after := len(w.Manifests()); after > before/2 {
			t.Errorf("%d were left of %d by a person's word", after, before)
		}
	})
}

// 181, I10: a cluster that is made again, under another ID, rotates none of the old
// one's last backups away.
func TestAClusterMadeAgainRotatesNothingAway(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(3)) })
		w.MustPassRequests(q, 4*24*time.Hour)
		old := w.Times()
		rename(w, "feed")
		w.MustPassRequests(q, 2*24*time.Hour)
		if got := w.Times(); len(old) != 3 || len(got) != 5 || !slices.Equal(got[:3], old) {
			t.Errorf("%q, and before %q", got, old)
		}
		w.MustPassRequests(q, 2*24*time.Hour)
		if got := w.Times(); len(got) != 4 || got[0] != old[2] {
			t.Errorf("%q, and before %q", got, old)
		}
	})
}

// rename gives all backups that are stored another cluster ID.
func rename(w *reconcilertest.World, id string) {
	for _, m := range w.Manifests() {
		if err := (backup.Store{}).Annotate(w.Context(), m.Object+"?root="+w.Backups, func(m *backup.Manifest) { m.ClusterID = id }); err != nil {
			w.Fatal(err)
		}
	}
}
