package record

import (
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// Seen is when quorate saw, by its own clock, a time that lay ahead of it.
type Seen struct {
	// What has the time, in a few words, and Stamp is the time as it stands there.
	What  string    `json:"what"`
	Stamp time.Time `json:"stamp"`
	// At is when quorate saw it first.
	At time.Time `json:"at"`
}

// NoteTimes notes when the times of an action were seen first. One that is noted keeps its
// note, unless that was made by a clock that was ahead itself; others are forgotten.
func (r *Record) NoteTimes(a action.NoteTimes, now time.Time) {
	var all []Seen
	for _, s := range a.Seen {
		at := now.UTC()
		for _, was := range r.Seen {
			if was.What == s.What && was.Stamp.Equal(s.Stamp) && !clock.Ahead(was.At, now) {
				at = was.At
			}
		}
		all = append(all, Seen{What: s.What, Stamp: s.Stamp, At: at})
	}
	r.Seen = all
}

// seenTimes are the notes in the planner's words.
func (r Record) seenTimes() []state.Seen {
	var all []state.Seen
	for _, s := range r.Seen {
		all = append(all, state.Seen{What: s.What, Stamp: s.Stamp, At: s.At})
	}
	return all
}
