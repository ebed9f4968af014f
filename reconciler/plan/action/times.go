package action

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// NoteTimes notes when quorate saw times that lie ahead of its clock.
type NoteTimes struct {
	// Seen are all that lie ahead, without when that was: it is when this is executed, for
	// those that are not noted yet.
	Seen []state.Seen
}

func (NoteTimes) isAction() {}

// Kind implements Action.
func (NoteTimes) Kind() string { return "NoteTimes" }

// String implements Action.
func (a NoteTimes) String() string {
	more := ""
	if n := len(a.Seen) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return "note when quorate first saw the time of " + a.Seen[0].What + more
}

// Disruptive implements Action: no member stops.
func (NoteTimes) Disruptive() bool { return false }

// After implements Action.
func (NoteTimes) After(s *situation.Situation) {
	s.Ahead = slices.Clone(s.Ahead)
	for i := range s.Ahead {
		s.Ahead[i].Noted = true
	}
}

// Undo implements Action.
func (NoteTimes) Undo(*situation.Situation) Undo { return onlyNotes() }
