package situation

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/state"
)

// NextOwner is the owner that the next claim makes.
func (s *Situation) NextOwner() state.Owner {
	to := s.Desired.Owner
	if to.Nobody() {
		return state.Owner{}
	}
	to.Claim = 1
	if s.Observed.Record != nil && s.Observed.Record.Owner != nil {
		to.Claim = s.Observed.Record.Owner.Claim + 1
	}
	return to
}

// OwnerConflict names both owners.
func (s *Situation) OwnerConflict(was state.Owner) string {
	text := fmt.Sprintf("the cluster belongs to %s, and this is %s", was, s.Desired.Owner)
	if named := s.Desired.Spec.TakeOver; named != "" {
		text += fmt.Sprintf(" (spec.takeOver names %s, which does not own it)", named)
	}
	return text
}
