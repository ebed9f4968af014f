package plan

import (
	"time"

	"github.com/quorate/quorate/reconciler/plan/recorded"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// The limits of the health gate.
const (
	// fresh is how old a round may be that an action builds on.
	fresh = 15 * time.Second
)

// health is the gate: nothing below it happens while a member is not well. The
// one exception is the member that an abandoned roll broke, see BrokenByRoll.
func health(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Alone() {
		return verdict.Pass()
	}
	if len(s.Observed.Rounds) == 0 {
		return verdict.ConfirmIn(verdict.Instantly, "no member was asked yet")
	}
	if name := s.Doubtful(); name != "" {
		return verdict.ConfirmIn(state.Between, name+" did not answer, and whether the abandoned rollout broke it is seen in two checks").At(name)
	}
	if v := recorded.Voters(s); !v.Silent() {
		return v
	}
	// What keeps space from being freed is told before the alarm that this would end.
	problem := s.ToleratingNoSpace().HealthProblem(s.Observed.Round())
	if problem.None() {
		problem = s.HealthProblem(s.Observed.Round())
	}
	if problem.None() {
		problem = s.PodProblem()
	}
	if problem.None() {
		problem = hashProblem(s)
	}
	if !problem.None() {
		return verdict.Unhealthy(problem.Text, "nothing is restarted until the cluster is healthy; "+s.HealthChoices(problem)).About(problem)
	}
	return verdict.Pass()
}

// hashProblem is about members that held different data in any round: what once differed
// at a revision does not get better on its own.
func hashProblem(s *situation.Situation) situation.Remark {
	for i := range s.Observed.Rounds {
		if problem := s.HashProblem(&s.Observed.Rounds[i]); !problem.None() {
			return problem
		}
	}
	return situation.Remark{}
}

// confirm wants the gate to hold twice in a row, and every member to have applied by
// the second round what the leader had committed at the first.
func confirm(s *situation.Situation) verdict.Verdict {
	if !s.Unfinished() || s.Alone() {
		return verdict.Pass()
	}
	return twice(s)
}

// twice is what confirm wants, for every other rule that is about to touch a member.
func twice(s *situation.Situation) verdict.Verdict {
	last := s.Observed.Round()
	if s.Now.Sub(last.At) > fresh {
		return verdict.ConfirmIn(verdict.Instantly, "the last check of the members is too old to act on")
	}
	if len(s.Observed.Rounds) < 2 {
		return verdict.ConfirmIn(verdict.Instantly, "health counts when it was seen twice")
	}
	before := &s.Observed.Rounds[len(s.Observed.Rounds)-2]
	if last.At.Sub(before.At) < state.Between {
		return verdict.ConfirmIn(state.Between, "the two checks of the members were too close to each other")
	}
	if problem := s.HealthProblem(before); !problem.None() {
		return verdict.ConfirmIn(state.Between, "healthy now, but a moment ago: "+problem.Text).About(problem)
	}
	if problem := s.CatchUpProblem(before, last, ""); !problem.None() {
		return verdict.ConfirmIn(state.Between, problem.Text).About(problem)
	}
	return verdict.Pass()
}
