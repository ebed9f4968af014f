package record

import (
	"maps"
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/state"
)

// NoteFloors notes how far each member's log goes at least, by what it has answered in a round, so that
// an older volume is known by it. What a member has applied may not be on its disk
// yet, and what it had applied before it could answer a linearizable read is: it writes
// its log before it looks at what came later. So only a member without a problem counts.
func (r *Record) NoteFloors(round *state.Round, now time.Time) {
	floors := map[string]guard.Floor{}
	for name, id := range r.Members {
		f := r.Floors[name]
		if f.ID != id {
			f = guard.Floor{ID: id}
		}
		if m := round.ByID(id); m != nil && m.Problem == "" && !m.Learner && round.ClusterID == r.ClusterID {
			f.Term, f.Index = max(f.Term, m.Term), max(f.Index, m.AppliedIndex)
		}
		if f.Index > 0 {
			floors[name] = f
		}
	}
	if !maps.Equal(floors, r.Floors) {
		r.Floors, r.FlooredAt = floors, now.UTC()
	}
}

// floorsAge is how old a note about logs that go on may become.
const floorsAge = time.Hour

// FloorsDue reports whether a round tells more than is noted, and that is old.
func (r Record) FloorsDue(round *state.Round, now time.Time) bool {
	if age, known := clock.Age(r.FlooredAt, now); known && age < floorsAge {
		return false
	}
	before := r.Floors
	r.NoteFloors(round, now)
	return !maps.Equal(before, r.Floors)
}
