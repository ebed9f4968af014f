package plan

import (
	"time"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// window keeps what disturbs clients inside the maintenance windows: the start of
// a roll, the moves of the leader, restarts, the removal of members that Git no
// longer wants, and sleep.
//
//	never waits                       because
//	what is above in the table        a member that restarts is seen back to its end
//	a member that a roll has broken   bringing it back makes the cluster safer
//	a larger quota under NOSPACE      the cluster takes no writes until it has it
//	a surge with two voters           each of them is needed until one has left
//	a surge that empties a node       a person waits for that, and no client does
//	deletion                          the cluster is to serve no longer
//	the first backup of an upgrade    a store that refuses it is found by day
//	end, applied                      they cause no disruption
//
// The backup that the upgrade rests on is younger than that first one: it is
// taken when the window has opened.
func window(s *situation.Situation) verdict.Verdict {
	if !s.Disturbs() && (!s.Surging() || surge.Drains(s.Desired, s.Observed)) || surge.Begun(s.Git.Spec, s.Observed.Record) || s.MendedByRoll() != nil || s.FirstBackup() || s.EndsNoSpace() {
		return verdict.Pass()
	}
	opens, problem := s.NextOpening()
	switch {
	case problem != "":
		return verdict.Refuse(problem, "fix spec.maintenance in a new commit; no member is stopped until then")
	case !opens.After(s.Now):
		return verdict.Pass()
	}
	v := verdict.WaitUntil("outside the maintenance window; the next one opens "+opens.Format(situation.OpeningLayout), time.Time{})
	v.Hold.Again, v.Hold.Awaits = min(opens.Sub(s.Now), verdict.Rarely), decision.AwaitsWindow
	return v
}
