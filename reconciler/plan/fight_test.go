package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/objects"
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

// shrunk lets another writer leave one pod of three.
func shrunk(s *situation.Situation) { s.Observed.Set.Replicas = 1 }

// heavy lets what differs be what members find each other by.
func heavy(name string) mutation {
	return func(s *situation.Situation) {
		s.Observed.Objects[0].Name, s.Observed.Objects[0].Weight = name, state.WeightMembers
	}
}

// 370: no truce holds back what brings members back.
func TestNoTruceForWhatTakesMembersAway(t *testing.T) {
	set, peers := fought("StatefulSet", time.Minute), with(fought("Service", time.Minute), heavy("orders-peers"))
	const waits = "Waiting: StatefulSet orders: spec.type was put back again and again"
	checkRule(t, objects.Drift, []ruleCase{
		{name: "fewer pods are a matter of resize", change: with(set, shrunk)},
		{name: "so they are where nobody fights", change: with(fought("StatefulSet", 0), shrunk)},
		{name: "more pods wait", change: with(set, func(s *situation.Situation) { s.Observed.Set.Replicas = 5 }), want: waits},
		{name: "as many wait", change: set, want: waits},
		{name: "a recovery stops members itself", change: with(set, shrunk, func(s *situation.Situation) { s.Observed.Record.Recovering = &state.Recovering{} }), want: waits},
		{name: "members that are not recorded yet", change: with(set, shrunk, func(s *situation.Situation) { s.Observed.Record.ClusterID, s.Observed.Record.Members = "", nil }), want: waits},
		{name: "what Git leaves is left", change: with(leaves("StatefulSet"), shrunk), want: "Refused: StatefulSet orders is drifted"},
		{name: "what admission undoes is not tried again and again", change: with(admitted("StatefulSet", state.WeightAll, time.Minute), shrunk), want: "Refused: StatefulSet orders: the API server changes"},
		{name: "nor what is refused", change: with(denied("StatefulSet", state.ObjectDrifted, state.WeightAll, time.Minute), shrunk), want: "Refused: StatefulSet orders is not taken"},
		{name: "members find each other again", change: peers, want: "apply Service orders-peers: it differs"},
		{name: "also the first time", change: with(peers, func(s *situation.Situation) { s.Observed.Objects[0].Fight = nil }), want: "apply Service orders-peers: it differs"},
		{name: "what Git leaves of them is left", change: with(leaves("Service"), heavy("orders-peers"))},
		{name: "a Service is put back first", change: with(fought("Service", 0), shrunk), want: "apply Service orders: it differs"},
		{name: "clients wait", change: with(fought("Service", time.Minute), heavy("orders-client"))},
		{name: "so does the budget", change: with(fought("PodDisruptionBudget", time.Minute), heavy("orders"))},
		{name: "so does what no member hangs on", change: with(peers, func(s *situation.Situation) { s.Observed.Objects[0].Weight = state.WeightLight })},
		{name: "what is in sync stays", change: with(peers, func(s *situation.Situation) { s.Observed.Objects[0].State = state.ObjectInSync })},
	})
	for name, c := range map[string]struct {
		change mutation
		want   bool
	}{
		"fewer pods, set by another writer": {with(shrunk, func(s *situation.Situation) { s.Observed.Set.ScaledBy = "kubectl" }), true},
		"more pods":                         {func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Set.ScaledBy = 5, "kubectl" }, false},
		"nobody has set it":                 {shrunk, false},
	} {
		s := healthy(3)
		c.change(s)
		if v := resize(s); v.Step == nil || v.Step.AtOnce != c.want {
			t.Errorf("%s: %+v, want at once %t", name, v.Step, c.want)
		}
	}
	s := healthy(3)
	peers(s)
	if v := objects.Drift(s); v.Step == nil || !v.Step.AtOnce {
		t.Errorf("%+v", v.Step)
	}
}

func TestFight(t *testing.T) {
	service, over := fought("Service", time.Minute), fought("Service", 0)
	const says = "Waiting: Service orders: spec.type was put back again and again, and changed again by meddler each time (4 times; it is put back next at 2026-03-01T12:01:00Z); stop meddler from changing it, or write what it wants into the file"
	checkRule(t, objects.Fight, []ruleCase{
		{name: "peace passes"},
		{name: "who fights and what a person can do is told", change: service, want: says},
		{name: "the time is over", change: over},
		{name: "what is in sync is no fight any more", change: with(service, func(s *situation.Situation) { s.Observed.Objects[0].State = state.ObjectInSync })},
		{name: "no roll begins meanwhile", change: with(service, commit(newVersion)), want: says},
		{name: "a roll that has begun continues", change: with(service, commit(newVersion), begun, rolled(newVersion, 2))},
		{name: "241: what Git leaves is told, and nothing begins", change: with(leaves("Service"), commit(newVersion)), want: leftSays},
		{name: "241: a roll that has begun continues", change: with(leaves("Service"), commit(newVersion), begun, rolled(newVersion, 2))},
	})
	checkRule(t, objects.Drift, []ruleCase{
		{name: "50: a contested Service waits, and nothing waits for it", change: service},
		{name: "50: when its time comes it is put back", change: over, want: "apply Service orders: it differs from what Git says"},
		{name: "50: nothing happens to a StatefulSet that another writer changes", change: fought("StatefulSet", time.Minute), want: "Waiting: StatefulSet orders: spec.type was put back again and again"},
		{name: "50: until its time comes", change: fought("StatefulSet", 0), want: "apply StatefulSet orders: it differs from what Git says"},
		{name: "241: what Git leaves is not put back", change: leaves("Service")},
		{name: "241: all rests on the StatefulSet", change: leaves("StatefulSet"), want: "Refused: StatefulSet orders is drifted: spec.type, changed by meddler; spec.drift.mode is Detect"},
		{name: "a deleted object comes back at once", change: with(service, func(s *situation.Situation) { s.Observed.Objects[0].State = state.ObjectMissing }), want: "apply Service orders: it is gone"},
		{name: "another object is put back meanwhile", change: with(service, func(s *situation.Situation) {
			s.Observed.Objects = append(s.Observed.Objects, state.Object{Kind: "PodDisruptionBudget", Name: "orders", State: state.ObjectDrifted})
		}), want: "apply PodDisruptionBudget orders"},
	})
}

// admitted lets the API server change an object on its way; it is tried again in some time.
func admitted(kind string, weight state.Weight, left time.Duration) mutation {
	return func(s *situation.Situation) {
		s.Observed.Objects[0].Kind, s.Observed.Objects[0].State, s.Observed.Objects[0].Detail, s.Observed.Objects[0].Weight = kind, state.ObjectDrifted, ".spec.x", weight
		s.Observed.Objects[0].Fight = &state.Fight{Fields: ".spec.x (a, wanted b)", Times: 1, Until: noon.Add(left)}
	}
}

// denied lets the API server refuse an object.
func denied(kind string, is state.ObjectState, weight state.Weight, left time.Duration) mutation {
	return func(s *situation.Situation) {
		s.Observed.Objects[0].Kind, s.Observed.Objects[0].State, s.Observed.Objects[0].Weight = kind, is, weight
		s.Observed.Objects[0].Refused = &state.Refusal{Problem: "policy x denied request: no", Since: noon.Add(-time.Hour), Until: noon.Add(left)}
	}
}

func TestAdmission(t *testing.T) {
	const changes, refuses = "Refused: %s orders: the API server changes what quorate applies before it is stored: .spec.x (a, wanted b); members start with that", "Refused: %s orders is not taken as quorate applies it: policy x denied request: no (it is tried again at 2026-03-01T12:01:00Z); let the policy"
	says := func(text, kind string) string { return fmt.Sprintf(text, kind) }
	set := func(w state.Weight) mutation { return admitted("StatefulSet", w, time.Minute) }
	checkRule(t, objects.Fight, []ruleCase{
		{name: "297: what does not matter holds nothing", change: with(set(state.WeightLight), commit(newVersion))},
		{name: "298: what members start with does", change: with(set(state.WeightMembers), commit(newVersion)), want: says(changes, "StatefulSet")},
		{name: "298: also in a roll that has begun", change: with(set(state.WeightMembers), commit(newVersion), begun, rolled(newVersion, 2)), want: says(changes, "StatefulSet")},
		{name: "297: of a Service, a roll that has begun continues", change: with(admitted("Service", state.WeightMembers, time.Minute), commit(newVersion), begun, rolled(newVersion, 2))},
		{name: "298: until its time is over", change: admitted("StatefulSet", state.WeightMembers, 0)},
		{name: "299: a refused Service is told", change: denied("Service", state.ObjectMissing, 0, time.Minute), want: says(refuses, "Service")},
		{name: "299: until its time is over", change: denied("Service", state.ObjectMissing, 0, 0)},
		{name: "299: one that has become what it should be is refused no more", change: denied("Service", state.ObjectInSync, 0, time.Minute)},
		{name: "299: also with a StatefulSet whose labels are refused", change: with(denied("StatefulSet", state.ObjectDrifted, state.WeightLight, time.Minute), commit(newVersion), begun, rolled(newVersion, 2))},
		{name: "299: a roll that has begun continues", change: with(denied("Service", state.ObjectDrifted, 0, time.Minute), commit(newVersion), begun, rolled(newVersion, 2))},
	})
	for name, c := range map[string]struct {
		change mutation
		want   int
	}{
		"297: it is told": {set(state.WeightLight), 1}, "peace": {func(*situation.Situation) {}, 0},
		"365: so is what becomes of a pod": {func(s *situation.Situation) { podAt(s, 1).Mutated = "etcd: livenessProbe" }, 1},
		"365: of no member's it is not": {func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3, Mutated: "x"})
		}, 0},
	} {
		s := healthy(3)
		c.change(s)
		if told := objects.Warnings(s); len(told) != c.want {
			t.Errorf("%s: %v", name, told)
		}
	}
	checkRule(t, objects.Drift, []ruleCase{
		{name: "297: what the API server changes is not applied again", change: set(state.WeightLight)},
		{name: "298: nor is what members start with, and what heals does not wait", change: set(state.WeightMembers)},
		{name: "298: nothing is decided on another number of pods", change: set(state.WeightAll), want: says(changes, "StatefulSet")},
		{name: "297: when its time comes it is tried again", change: admitted("StatefulSet", state.WeightLight, 0), want: "apply StatefulSet orders: it differs from what Git says"},
		{name: "299: a refused Service is not tried yet", change: denied("Service", state.ObjectMissing, 0, time.Minute)},
		{name: "299: and then it is", change: denied("Service", state.ObjectMissing, 0, 0), want: "apply Service orders: it is gone"},
		{name: "299: a refused StatefulSet whose labels differ keeps nothing waiting", change: denied("StatefulSet", state.ObjectDrifted, state.WeightLight, time.Minute)},
		{name: "299: one whose number of pods differs does", change: denied("StatefulSet", state.ObjectDrifted, state.WeightAll, time.Minute), want: says(refuses, "StatefulSet")},
	})
	forming := func(change mutation) mutation {
		return with(change, func(s *situation.Situation) { s.Observed.Record.ClusterID, s.Observed.Record.Members = "", nil })
	}
	checkRule(t, objects.Forming, []ruleCase{
		{name: "297: members form a cluster all the same", change: forming(set(state.WeightLight))},
		{name: "298: not with other settings", change: forming(set(state.WeightMembers)), want: says(changes, "StatefulSet")},
		{name: "298: these are put back", change: forming(admitted("StatefulSet", state.WeightMembers, 0)), want: "apply StatefulSet orders"},
		{name: "299: nor without their Service", change: forming(denied("Service", state.ObjectMissing, 0, time.Minute)), want: says(refuses, "Service")},
	})
}
