package plan

import (
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
)

// judged is a step that says until when it can be taken back.
func judged(s *situation.Situation, step decision.Step) decision.Step {
	step.Undo = step.Action.Undo(s)
	return step
}
