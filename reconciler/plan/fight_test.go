package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// fought lets somebody change an object again and again; it is put back next in
// some time.
func fought(kind string, left time.Duration) mutation {
	return func(s *situation.Situation) {
		s.Observed.Objects[0].Kind, s.Observed.Objects[0].State, s.Observed.Objects[0].Detail = kind, state.ObjectDrifted, "spec.type, changed by meddler"
		s.Observed.Objects[0].Fight = &state.Fight{Manager: "meddler", Fields: "spec.type", Times: 4, Until: noon.Add(left)}
	}
}

// leaves lets Git leave an object as another writer has made it.
func leaves(kind string) mutation {
	return with(fought(kind, 0), func(s *situation.Situation) { s.Observed.Objects[0].Fight, s.Observed.Objects[0].Left = nil, true })
}

const leftSays = "Refused: Service orders is drifted: spec.type, changed by meddler; spec.drift.mode is Detect, so it is left as it is; put it back by hand, write into the file what it should be, or set spec.drift.mode to Correct"

func TestFight(t *testing.T) {
	service, over := fought("Service", time.Minute), fought("Service", 0)
	const says = "Waiting: Service orders: spec.type was put back again and again, and changed again by meddler each time (4 times; it is put back next at 2026-03-01T12:01:00Z); stop meddler from changing it, or write what it wants into the file"
	checkRule(t, fight, []ruleCase{
		{name: "peace passes"},
		{name: "who fights and what a person can do is told", change: service, want: says},
		{name: "the time is over", change: over},
		{name: "what is in sync is no fight any more", change: with(service, func(s *situation.Situation) { s.Observed.Objects[0].State = state.ObjectInSync })},
		{name: "no roll begins meanwhile", change: with(service, commit(newVersion)), want: says},
		{name: "a roll that has begun continues", change: with(service, commit(newVersion), begun, rolled(newVersion, 2))},
		{name: "241: what Git leaves is told, and nothing begins", change: with(leaves("Service"), commit(newVersion)), want: leftSays},
		{name: "241: a roll that has begun continues", change: with(leaves("Service"), commit(newVersion), begun, rolled(newVersion, 2))},
	})
	checkRule(t, drift, []ruleCase{
		{name: "50: a contested Service waits, and nothing waits for it", change: service},
		{name: "50: when its time comes it is put back", change: over, want: "apply Service orders: it differs from what Git says"},
		{name: "50: nothing happens to a StatefulSet that another writer changes", change: fought("StatefulSet", time.Minute), want: "Waiting: StatefulSet orders: spec.type was put back again and again"},
		{name: "241: what Git leaves is not put back", change: leaves("Service")},
		{name: "241: all rests on the StatefulSet", change: leaves("StatefulSet"), want: "Refused: StatefulSet orders is drifted: spec.type, changed by meddler; spec.drift.mode is Detect"},
		{name: "a deleted object comes back at once", change: with(service, func(s *situation.Situation) { s.Observed.Objects[0].State = state.ObjectMissing }), want: "apply Service orders: it is gone"},
		{name: "another object is put back meanwhile", change: with(service, func(s *situation.Situation) {
			s.Observed.Objects = append(s.Observed.Objects, state.Object{Kind: "PodDisruptionBudget", Name: "orders", State: state.ObjectDrifted})
		}), want: "apply PodDisruptionBudget orders"},
	})
}
