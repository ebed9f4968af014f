package situation

import (
	"time"

	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/state"
)

// Begins reports whether the cluster would be disrupted again: then, and only then,
// the caller has to fill in Observed.Fleet before it asks for a plan.
func Begins(d state.Desired, o state.Observed, now time.Time) bool {
	return Of(d, o, now).BeginsDisruption()
}

// BeginsDisruption reports whether what comes next would disrupt a cluster that is not yet
// disrupted: a roll, a change of the number of members, or members that make way for
// others with volumes of another class.
func (s *Situation) BeginsDisruption() bool {
	r := s.Observed.Record
	if !s.Formed() || s.Observed.Set == nil || r.Joining != nil || r.Leaving != nil || r.Replacing != "" || surge.Begun(s.Git.Spec, r) {
		return false
	}
	switch {
	case !s.Rolling():
		return !s.Complete() || s.Replaceable() && len(s.Misplaced()) > 0
	case s.RollOpen(), s.BrokenByRoll() != nil, s.EndsNoSpace():
		return false
	}
	return true
}
