package situation

import (
	"slices"

	"github.com/quorate/quorate/reconciler/state"
)

// EachMember changes the members in every round.
func (s *Situation) EachMember(change func(*state.Member)) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Members = slices.Clone(s.Observed.Rounds[i].Members)
		for j := range s.Observed.Rounds[i].Members {
			change(&s.Observed.Rounds[i].Members[j])
		}
	}
}
