package plan

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// defragment makes files smaller before they are a trouble: by thresholds inside
// the maintenance windows, and on the schedule of the file. It comes last, when
// there is nothing else to do, and asks for the gate twice before each member.
// When a member's last time was is in the record.
func defragment(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Set == nil || s.Rolling() || s.Observed.Round() == nil {
		return verdict.Pass()
	}
	if s.FindMember(func(m state.Member) bool { return !s.DefragmentReason(m).None() }) == nil {
		return verdict.Pass()
	}
	if v := twice(s); !v.Silent() {
		return v
	}
	return defragmentOne(s, s.DefragmentReason)
}
