// Package times has the rule about times that lie ahead of the clock. It is pure.
package times

import (
	"slices"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Note notes since when quorate sees a time that lies ahead of its clock: what waits since
// then waits from now on, as long as it is to wait, and not until that time has come.
// Nobody else knows: the machine that wrote it has a wrong clock, or quorate has.
func Note(s *situation.Situation) verdict.Verdict {
	if s.Desired.Spec.Mode == schema.ModeObserve {
		return verdict.Pass()
	}
	if !slices.ContainsFunc(s.Ahead, func(stamp clock.Stamp) bool { return !stamp.Noted }) {
		return verdict.Pass()
	}
	var all []state.Seen
	for _, stamp := range s.Ahead {
		all = append(all, state.Seen{What: stamp.What, Stamp: stamp.At})
	}
	return verdict.Do(action.NoteTimes{Seen: all}, "it lies ahead of the clock, so that what waits since then counts from now")
}
