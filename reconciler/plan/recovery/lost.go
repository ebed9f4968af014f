// Package recovery has the rules about clusters without a quorum: one that quorate only
// cannot reach, one that has lost its quorum, one that Git has recovered or restored, and
// one that could not form.
package recovery

import (
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// Lost speaks when what is left of the members is no quorum. It lists what
// is there, so that a person can choose, and does nothing automatically: whatever
// continues from less than a quorum may lose what was acknowledged. What it does is
// what spec.recovery says, once.
func Lost(s *situation.Situation) verdict.Verdict {
	if !s.Formed() {
		return verdict.Pass()
	}
	oneShot := s.RequestedRecovery()
	switch {
	case s.Observed.Set == nil:
		return verdict.Pass()
	case oneShot == "" && s.Observed.Record.RefusedRecovery != "":
		return verdict.Do(action.RefuseRecovery{}, "Git no longer asks for it")
	case !s.QuorumLost(oneShot != ""):
		return needlessRecovery(s, oneShot)
	}
	if v := silent(s, oneShot); !v.Silent() {
		return v
	}
	if oneShot != "" {
		return begin(s, oneShot)
	}
	left := s.Inventory()
	return verdict.Unhealthy(left.Text, s.Choices()).About(left)
}
