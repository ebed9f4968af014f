package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// fleet keeps a change that reaches many clusters from disrupting many at once,
// and takes them wave by wave.
//
//	never waits                because
//	a roll that has begun      half of it is worse than either end
//	a repair, a fixed member   they make the cluster safer
func fleet(s *situation.Situation) verdict.Verdict {
	f := s.Observed.Fleet
	switch {
	case !s.BeginsDisruption():
		return verdict.Pass()
	case len(f.Unfinished) > 0:
		return awaitOthers(fmt.Sprintf("wave %d begins when every lower wave is done; not yet: %s", s.Desired.Spec.Upgrade.Wave, state.Neighbours(f.Unfinished)))
	case f.Limit > 0 && len(f.Disrupted) >= f.Limit:
		return awaitOthers(fmt.Sprintf("at most %s may be disrupted at once (--max-disrupted), and now it is %s", state.Plural(f.Limit, "cluster"), state.Neighbours(f.Disrupted)))
	}
	return verdict.Pass()
}

// turn is the time between two checks whether it is this cluster's turn: short
// beside a roll, and long for many clusters that wait.
const turn = 10 * time.Second

// awaitOthers is a hold until other clusters are done.
func awaitOthers(message string) verdict.Verdict {
	v := verdict.Wait(message, time.Time{})
	v.Hold.Again, v.Hold.Awaits = turn, decision.AwaitsFleet
	return v
}
