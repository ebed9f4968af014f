package situation

import "github.com/quorate/quorate/reconciler/state"

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
