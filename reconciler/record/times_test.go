package record_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// 313: when a time ahead of the clock was seen first is noted once, unless the note is of
// a clock that was ahead itself; what lies ahead no more is forgotten.
func TestWhenATimeAheadWasSeenFirst(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stamp, later := now.AddDate(10, 0, 0), now.Add(time.Hour)
	of := func(what ...string) (a action.NoteTimes) {
		for _, w := range what {
			a.Seen = append(a.Seen, state.Seen{What: w, Stamp: stamp})
		}
		return a
	}
	var r record.Record
	r.NoteTimes(of("a", "b"), now)
	r.NoteTimes(of("a", "b"), now) // executed twice
	r.NoteTimes(of("b", "c"), later)
	want := []state.Seen{{What: "b", Stamp: stamp, At: now}, {What: "c", Stamp: stamp, At: later}}
	if got := r.State().Seen; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.NoteTimes(of("b", "c"), now) // the clock is put back
	want[1].At = now
	if got := r.State().Seen; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	again := of("b")
	again.Seen[0].Stamp = stamp.Add(1)
	r.NoteTimes(again, later)
	if got := r.State().Seen; len(got) != 1 || !got[0].At.Equal(later) {
		t.Errorf("another time keeps the note of the one before: %v", got)
	}
}
