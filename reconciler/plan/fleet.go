package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/waves"
	"github.com/quorate/quorate/reconciler/state"
)

// fleet keeps a change that reaches many clusters from disrupting many at once,
// and takes them wave by wave: a wave is done when its clusters are what their files say, and the
// checks that these name hold.
//
//	never waits                because
//	a roll that has begun      half of it is worse than either end
//	a repair, a fixed member   they make the cluster safer
//	a surge with two voters    each of them is needed until one has left
//
// A cluster that is broken, and to which quorate does nothing, keeps its place for a while, so
// that nothing begins beside it, and not for ever.
func fleet(s *situation.Situation) verdict.Verdict {
	f := s.Observed.Fleet
	disrupted := waves.Disrupted(s)
	unchecked, measured, do := waves.Unchecked(f.Checks, s.Now)
	switch {
	case !s.BeginsDisruption():
		return verdict.Pass()
	case len(f.Unfinished) > 0:
		return awaitOthers(s, fmt.Sprintf("wave %d begins when every lower wave is done; not yet: %s", s.Desired.Spec.Upgrade.Wave, state.Neighbours(f.Unfinished)), f.Unfinished,
			"find out what keeps it: its own status says; to go on without it, set its spec.mode to Observe, or take it out of the lower waves (spec.upgrade.wave)")
	case len(unchecked) > 0:
		v := awaitOthers(s, fmt.Sprintf("wave %d begins when every lower wave is done; not yet: %s", s.Desired.Spec.Upgrade.Wave, state.Neighbours(unchecked)), unchecked, "").About(situation.Remark{Detail: measured})
		if do != "" {
			v.Hold.Do = do + "; to go on without it, take it out of spec.upgrade.checks of that cluster"
		}
		return v
	case f.Limit > 0 && len(disrupted) >= f.Limit:
		return awaitOthers(s, fmt.Sprintf("at most %s may be disrupted at once (--max-disrupted), and now it is %s", state.Plural(f.Limit, "cluster"), state.Neighbours(disrupted)), disrupted,
			"find out what keeps it: its own status says; to go on without it, raise --max-disrupted, or set its spec.mode to Observe")
	}
	return verdict.Pass()
}

// turn is the time between two checks whether it is this cluster's turn: short
// beside a roll, and long for many clusters that wait.
const turn = 10 * time.Second

// awaitOthers is a hold until other clusters are done.
func awaitOthers(s *situation.Situation, message string, others []state.Neighbour, do string) verdict.Verdict {
	since := slices.MinFunc(others, func(a, b state.Neighbour) int { return a.Since.Compare(b.Since) }).Since
	v := verdict.WaitFor(s, message, since, waves.PlaceTime, do)
	v.Hold.Again, v.Hold.Awaits = turn, decision.AwaitsFleet
	return v
}
