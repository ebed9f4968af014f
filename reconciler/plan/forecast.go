package plan

import (
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// horizon bounds a forecast: more steps than the longest roll of the largest
// cluster takes.
const horizon = 100

// forecast lists the steps that follow one step, if each goes well.
func forecast(rules []rule, s *situation.Situation, step decision.Step) []decision.Step {
	next := after(s, step.Action)
	var steps []decision.Step
	for range horizon {
		v := first(rules, next)
		switch {
		case v.Step != nil:
			steps = append(steps, judged(next, *v.Step))
			next = after(next, v.Step.Action)
		case v.Hold != nil && passes(*v.Hold):
			next = awaited(next, *v.Hold)
		default:
			return steps
		}
	}
	return steps
}

// forecastBehind lists the steps that follow a hold that ends on its own.
func forecastBehind(rules []rule, s *situation.Situation, h decision.Hold) []decision.Step {
	if !passes(h) {
		return nil
	}
	next := awaited(s, h)
	v := first(rules, next)
	for n := 0; v.Hold != nil && passes(*v.Hold) && n < horizon; n++ {
		next = awaited(next, *v.Hold)
		v = first(rules, next)
	}
	if v.Step == nil {
		return nil
	}
	return append([]decision.Step{judged(next, *v.Step)}, forecast(rules, next, *v.Step)...)
}

// passes reports whether a hold ends on its own.
func passes(h decision.Hold) bool { return h.Kind == decision.Waiting || h.Kind == decision.Confirm }

// awaited is the situation in which what a hold waits for has come true.
func awaited(s *situation.Situation, h decision.Hold) *situation.Situation {
	c := outlook.Clone(s)
	c.Now = c.Now.Add(max(h.Again, state.Between))
	// A hold asks for a pass now and then; the window may be weeks away.
	if opens, _ := s.NextOpening(); h.Awaits == decision.AwaitsWindow && opens.After(c.Now) {
		c.Now = opens
	}
	outlook.RecoverOn(c)
	if h.Awaits == decision.AwaitsFleet {
		c.Observed.Fleet = state.Fleet{}
	}
	if h.Awaits == decision.AwaitsClients {
		outlook.Prove(c)
	}
	outlook.Settle(c)
	outlook.Retemplate(c)
	c.Aim()
	outlook.ShareEvictions(s, c)
	return c
}

// after is the situation after an action that went well.
func after(s *situation.Situation, a action.Action) *situation.Situation {
	c := outlook.Clone(s)
	a.After(c)
	outlook.Retemplate(c)
	c.Aim()
	outlook.ShareEvictions(s, c)
	return c
}

// judged is a step that says until when it can be taken back.
func judged(s *situation.Situation, step decision.Step) decision.Step {
	step.Undo = step.Action.Undo(s)
	return step
}
