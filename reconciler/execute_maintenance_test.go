package reconciler

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 91: the whole way out of NOSPACE, in the order in which the members are asked.
func TestNoSpaceIsDrivenToIdle(t *testing.T) {
	formed(t, func(w *world) {
		const mi = int64(1) << 20
		w.etcd.calls = nil
		w.etcd.change = func(r *state.Round) { fullAsTold(r, w.etcd.calls, 100*mi) }
		w.untilIdle()
		var calls []string
		for _, call := range w.etcd.calls {
			if !strings.HasPrefix(call, "round") {
				calls = append(calls, call)
			}
		}
		want := []string{
			"snapshot of orders-0", "compact through orders-0 at 7", "defragment orders-2", "defragment orders-1",
			"move leader from orders-0 to a1", "defragment orders-0", "disarm NOSPACE on member a1 with 3",
		}
		if !slices.Equal(calls, want) {
			t.Errorf("got  %q\nwant %q", calls, want)
		}
		r := w.record()
		if r.Backup == nil || r.Backup.For != "compaction" || r.Compacted == nil || r.Compacted.Revision != 7 || len(r.Defragmented) != 3 {
			t.Errorf("record %+v", r)
		}
	})
}

// fullAsTold makes every member full of old revisions, until what was called has
// changed that.
func fullAsTold(r *state.Round, calls []string, quota int64) {
	called := func(prefix string) bool {
		return slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(call, prefix) })
	}
	for i := range r.Members {
		m := &r.Members[i]
		m.DBSize, m.DBInUse, m.Quota = quota, quota, quota
		if called("defragment " + m.Name) {
			m.DBSize, m.DBInUse = quota/10, quota/10
		}
	}
	if !called("disarm") {
		r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}}
	}
}

func TestCompactRestsOnItsBackup(t *testing.T) {
	formed(t, func(w *world) {
		compact := action.Compact{Member: "orders-0", ID: "a0", Revision: 7}
		backuptest.WantError(t, w.do(compact), "compact: no backup was taken")
		w.mustDo(action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "compaction"})
		w.etcd.calls = nil
		for range 2 {
			w.mustDo(compact)
		}
		if want := []string{"compact through orders-0 at 7", "compact through orders-0 at 7"}; !slices.Equal(w.etcd.calls, want) {
			t.Errorf("calls %q", w.etcd.calls)
		}
		path, _, _ := strings.Cut(strings.TrimPrefix(w.record().Backup.URL, "file://"), "?")
		if err := os.Remove(path + backup.ManifestSuffix); err != nil {
			t.Fatal(err)
		}
		if err := w.do(compact); !errors.Is(err, backup.ErrNotFound) || len(w.etcd.calls) != 2 {
			t.Errorf("without the backup in the store: %v, calls %q", err, w.etcd.calls)
		}
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupSkip })
		w.mustDo(compact)
	})
}

func TestDefragmentIsRecorded(t *testing.T) {
	formed(t, func(w *world) {
		// One who is no member any more is forgotten.
		err := w.r.executor.Note(t.Context(), w.look(), func(r *record.Record) { r.Defragmented = map[string]time.Time{"orders-7": time.Now()} })
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]time.Time{}
		for _, member := range []string{"orders-1", "orders-1", "orders-2"} {
			time.Sleep(time.Minute)
			want[member] = time.Now().UTC()
			w.mustDo(action.Defragment{Member: member, ID: fakeMemberID(member)})
		}
		if got := w.record().Defragmented; !maps.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("defragmented %v, want %v", got, want)
		}
		backuptest.WantError(t, w.do(action.Defragment{Member: "orders-7"}), "defragment", "orders-7 has no address")
		backuptest.WantError(t, w.do(action.Compact{Member: "orders-7"}), "compact")
	})
}

func TestDisarmAsksEveryMember(t *testing.T) {
	formed(t, func(w *world) {
		w.etcd.calls = nil
		for range 2 {
			w.mustDo(action.Disarm{Alarm: state.NoSpace, MemberID: "a1"})
		}
		if want := []string{"disarm NOSPACE on member a1 with 3", "disarm NOSPACE on member a1 with 3"}; !slices.Equal(w.etcd.calls, want) {
			t.Errorf("calls %q", w.etcd.calls)
		}
	})
}

func TestQuotaOfAPod(t *testing.T) {
	formed(t, func(w *world) {
		if got := pods.PodQuota(w.pod("orders-0")); got != 4<<30 {
			t.Errorf("%d", got)
		}
	}, func(c *schema.EtcdCluster) { c.Spec.Etcd.QuotaBackendBytes = new(resource.MustParse("4Gi")) })
	formed(t, func(w *world) {
		if got := pods.PodQuota(w.pod("orders-0")); got != 0 {
			t.Errorf("%d", got)
		}
	})
}
