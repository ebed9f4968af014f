package outlook

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// ShareEvictions has the budget differ after what changes who may stop members, for a forecast.
// Of one or two members it keeps every pod in any case.
func ShareEvictions(before, after *situation.Situation) {
	if after.Small() || exclusive(before) == exclusive(after) {
		return
	}
	for i := range after.Observed.Objects {
		if o := &after.Observed.Objects[i]; o.Kind == state.KindBudget && o.State == state.ObjectInSync {
			o.State, o.Detail, o.Weight = state.ObjectDrifted, ".spec.minAvailable", state.WeightMembers
		}
	}
}

func exclusive(s *situation.Situation) bool {
	return situation.Exclusive(s.Desired.Spec, s.Observed, s.Now)
}
