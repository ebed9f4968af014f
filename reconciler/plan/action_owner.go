package plan

// ClaimCluster writes down who looks after the cluster. It fails when somebody
// else has done so in between.
type ClaimCluster struct {
	// From is the owner that the cluster is taken from; the zero Owner where its
	// record names none.
	From, To Owner
}

func (ClaimCluster) isAction() {}

// String implements Action.
func (a ClaimCluster) String() string {
	if a.From.Nobody() {
		return "claim the cluster for " + a.To.String()
	}
	return "take the cluster over from " + a.From.String()
}

// Disruptive implements Action: no member stops.
func (ClaimCluster) Disruptive() bool { return false }

// after implements Action.
func (a ClaimCluster) after(s *situation) {
	to := a.To
	s.o.Record.Owner = &to
}

// undo implements Action.
func (a ClaimCluster) undo(*situation) string {
	if a.From.Nobody() {
		return onlyNotes
	}
	return "reversible at any time, not by a revert but by spec.takeOver in the file of the former owner"
}
