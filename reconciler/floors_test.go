package reconciler_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 412: at rest it is noted once an hour how far the members have written, if they have.
func TestFloorsAreNotedAtRest(t *testing.T) {
	const note = "update configmaps orders-record"
	writes := func(w *reconcilertest.World) {
		w.Etcd.Change = func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].AppliedIndex = 150
			}
		}
	}
	for name, test := range map[string]struct {
		world func(*reconcilertest.World)
		after time.Duration
		noted bool
	}{
		"an hour later": {writes, time.Hour, true},
		"before that":   {writes, time.Hour - time.Second, false},
		"nobody writes": {func(*reconcilertest.World) {}, 24 * time.Hour, false},
		"it only observes": {func(w *reconcilertest.World) {
			writes(w)
			w.Commit(func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		}, 24 * time.Hour, false},
		"a clock that was far ahead":   {func(w *reconcilertest.World) { writes(w); flooredAt(w, time.Now().AddDate(10, 0, 0)) }, 0, true},
		"a record of an older release": {func(w *reconcilertest.World) { writes(w); flooredAt(w, time.Time{}) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				test.world(w)
				time.Sleep(test.after)
				w.API.ClearActions()
				for range 2 { // the second time there is nothing to note
					w.MustPass()
				}
				if got := w.API.Writes(); (len(got) == 1 && got[0] == note) != test.noted || len(got) > 1 {
					t.Errorf("writes %q", got)
				}
				if got := w.Record().Floors["orders-0"]; (got == guard.Floor{ID: "a0", Term: 2, Index: 150}) != test.noted {
					t.Errorf("noted %+v", got)
				}
			})
		})
	}
}

// flooredAt sets when the record has noted how far the members have written.
func flooredAt(w *reconcilertest.World, at time.Time) {
	w.Notes(func(r *record.Record) { r.FlooredAt = at })
}
