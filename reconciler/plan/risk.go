package plan

import (
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
)

// judged is a step that says until when it can be taken back.
func judged(s *situation.Situation, step Step) Step {
	step.Undo = step.Action.Undo(s)
	return step
}

// Restarts are the names of the members that the steps stop, in order.
func Restarts(steps []Step) []string {
	var names []string
	for _, s := range steps {
		if a, ok := s.Action.(action.RestartMember); ok {
			names = append(names, a.Member)
		}
	}
	return names
}
