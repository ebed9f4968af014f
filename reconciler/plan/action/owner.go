package action

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// ClaimCluster records the owner of the cluster. It fails when another owner
// has done so in between.
type ClaimCluster struct {
	// From is the owner that the cluster is taken from; the zero Owner where its
	// record names none.
	From, To state.Owner
}

func (ClaimCluster) isAction() {}

// Kind implements Action.
func (ClaimCluster) Kind() string { return "ClaimCluster" }

// String implements Action.
func (a ClaimCluster) String() string {
	if a.From.Nobody() {
		return "claim the cluster for " + a.To.String()
	}
	return "take the cluster over from " + a.From.String()
}

// Disruptive implements Action: no member stops.
func (ClaimCluster) Disruptive() bool { return false }

// After implements Action.
func (a ClaimCluster) After(s *situation.Situation) {
	to := a.To
	s.Observed.Record.Owner = &to
}

// Undo implements Action.
func (a ClaimCluster) Undo(*situation.Situation) Undo {
	if a.From.Nobody() {
		return onlyNotes()
	}
	return Undo{UndoAnytime, "reversible at any time, not by a revert but by spec.takeOver in the file of the former owner"}
}
