package plan

import (
	"time"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// The limits of the health gate.
const (
	// fresh is how old a round may be that an action builds on.
	fresh = 15 * time.Second
)

// health is the gate: nothing below it happens while a member is not well. The
// one exception is the member that an abandoned roll broke, see BrokenByRoll.
func health(s *situation.Situation) verdict {
	if !s.Formed() || s.Alone() {
		return pass()
	}
	if len(s.Observed.Rounds) == 0 {
		return confirmIn(instant, "no member was asked yet")
	}
	if name := s.Doubtful(); name != "" {
		return confirmIn(state.Between, name+" did not answer, and whether the abandoned rollout broke it is seen in two checks").at(name)
	}
	problem := s.HealthProblem(s.Observed.Round())
	if problem.None() {
		problem = s.PodProblem()
	}
	for i := range s.Observed.Rounds {
		// Data that once differed at a revision does not get better on its own.
		if problem.None() {
			problem = s.HashProblem(&s.Observed.Rounds[i])
		}
	}
	if !problem.None() {
		return unhealthy(problem.Text, "nothing is restarted until the cluster is healthy; "+s.HealthChoices(problem)).about(problem)
	}
	return pass()
}

// confirm wants the gate to hold twice in a row, the first time with hashes, and
// every member to have applied by the second round what the leader had committed
// at the first.
func confirm(s *situation.Situation) verdict {
	if !s.Unfinished() || s.Alone() {
		return pass()
	}
	return twice(s)
}

// twice is what confirm wants, for every other rule that is about to touch a member.
func twice(s *situation.Situation) verdict {
	last := s.Observed.Round()
	if s.Now.Sub(last.At) > fresh {
		return confirmIn(instant, "the last check of the members is too old to act on")
	}
	if len(s.Observed.Rounds) < 2 {
		return confirmIn(instant, "health counts when it was seen twice")
	}
	before := &s.Observed.Rounds[len(s.Observed.Rounds)-2]
	if !before.Deep {
		return confirmIn(instant, "the members' data has not been compared yet")
	}
	if last.At.Sub(before.At) < state.Between {
		return confirmIn(state.Between, "the two checks of the members were too close to each other")
	}
	if problem := s.HealthProblem(before); !problem.None() {
		return confirmIn(state.Between, "healthy now, but a moment ago: "+problem.Text).about(problem)
	}
	if problem := s.CatchUpProblem(before, last, ""); !problem.None() {
		return confirmIn(state.Between, problem.Text).about(problem)
	}
	return pass()
}

// confirmIn asks for another round.
func confirmIn(wait time.Duration, message string) verdict {
	return verdict{hold: &decision.Hold{Kind: decision.Confirm, Message: message, Again: wait}}
}
