package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// owner lets one daemon that follows one place in Git act on a cluster. A record
// from before there were owners belongs to the first daemon that comes. Another owner
// gives way to the word of a person only, which names it by its claim: the next
// claim has another number, so the word works once.
func owner(s *situation.Situation) verdict.Verdict {
	if s.Desired.Owner.Nobody() || s.Observed.Record == nil {
		return verdict.Pass() // no daemon acts on this plan, or there is nothing to own yet
	}
	was := s.Observed.Record.Owner
	switch {
	case was == nil:
		return verdict.Do(action.ClaimCluster{To: s.NextOwner()}, "its record names no owner yet, and from now on only one may act")
	case was.Is(s.Desired.Owner):
		return verdict.Pass()
	case s.Desired.Spec.TakeOver == was.String():
		return verdict.Do(action.ClaimCluster{From: *was, To: s.NextOwner()}, "spec.takeOver names its owner, so it changes hands")
	}
	return verdict.Refuse(ownerConflict(s, *was), fmt.Sprintf(
		"remove the file here; or let go of the cluster there with mode: Observe, and write spec.takeOver: %q here", was))
}

// ownerConflict names both owners.
func ownerConflict(s *situation.Situation, was state.Owner) string {
	text := fmt.Sprintf("the cluster belongs to %s, and this is %s", was, s.Desired.Owner)
	if named := s.Desired.Spec.TakeOver; named != "" {
		text += fmt.Sprintf(" (spec.takeOver names %s, which does not own it)", named)
	}
	return text
}
