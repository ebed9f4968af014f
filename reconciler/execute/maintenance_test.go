package execute_test

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
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 91: the whole way out of NOSPACE, in the order in which the members are asked.
func TestNoSpaceIsDrivenToIdle(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		const mi = int64(1) << 20
		w.Etcd.Calls = nil
		w.Etcd.Change = func(r *state.Round) { execute.FullAsTold(r, w.Etcd.Calls, 100*mi) }
		w.UntilIdle()
		var calls []string
		for _, call := range w.Etcd.Calls {
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
		r := w.Record()
		if r.Backup == nil || r.Backup.For != "compaction" || r.Compacted == nil || r.Compacted.Revision != 7 || len(r.Defragmented) != 3 {
			t.Errorf("record %+v", r)
		}
	})
}

func TestCompactRestsOnItsBackup(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		compact := action.Compact{Member: "orders-0", ID: "a0", Revision: 7}
		backuptest.WantError(t, w.Do(compact), "compact: no backup was taken")
		w.MustDo(action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "compaction"})
		w.Etcd.Calls = nil
		for range 2 {
			w.MustDo(compact)
		}
		if want := []string{"compact through orders-0 at 7", "compact through orders-0 at 7"}; !slices.Equal(w.Etcd.Calls, want) {
			t.Errorf("calls %q", w.Etcd.Calls)
		}
		path, _, _ := strings.Cut(strings.TrimPrefix(w.Record().Backup.URL, "file://"), "?")
		if err := os.Remove(path + backup.ManifestSuffix); err != nil {
			t.Fatal(err)
		}
		if err := w.Do(compact); !errors.Is(err, backup.ErrNotFound) || len(w.Etcd.Calls) != 2 {
			t.Errorf("without the backup in the store: %v, calls %q", err, w.Etcd.Calls)
		}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupSkip })
		w.MustDo(compact)
	})
}

func TestDefragmentIsRecorded(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		// One who is no member any more is forgotten.
		err := w.R.Executor.Note(t.Context(), w.Look(), func(r *record.Record) { r.Defragmented = map[string]time.Time{"orders-7": time.Now()} })
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]time.Time{}
		for _, member := range []string{"orders-1", "orders-1", "orders-2"} {
			time.Sleep(time.Minute)
			want[member] = time.Now().UTC()
			w.MustDo(action.Defragment{Member: member, ID: reconcilertest.FakeMemberID(member)})
		}
		if got := w.Record().Defragmented; !maps.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("defragmented %v, want %v", got, want)
		}
		backuptest.WantError(t, w.Do(action.Defragment{Member: "orders-7"}), "defragment", "orders-7 has no address")
		backuptest.WantError(t, w.Do(action.Compact{Member: "orders-7"}), "compact")
	})
}

func TestDisarmAsksEveryMember(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Calls = nil
		for range 2 {
			w.MustDo(action.Disarm{Alarm: state.NoSpace, MemberID: "a1"})
		}
		if want := []string{"disarm NOSPACE on member a1 with 3", "disarm NOSPACE on member a1 with 3"}; !slices.Equal(w.Etcd.Calls, want) {
			t.Errorf("calls %q", w.Etcd.Calls)
		}
	})
}

func TestQuotaOfAPod(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if got := pods.PodQuota(w.Pod("orders-0")); got != 4<<30 {
			t.Errorf("%d", got)
		}
	}, func(c *schema.EtcdCluster) { c.Spec.Etcd.QuotaBackendBytes = new(resource.MustParse("4Gi")) })
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if got := pods.PodQuota(w.Pod("orders-0")); got != 0 {
			t.Errorf("%d", got)
		}
	})
}
