package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

func TestDrift(t *testing.T) {
	object := func(state state.ObjectState, detail string) mutation {
		return func(s *situation.Situation) {
			s.Observed.Objects[0].State, s.Observed.Objects[0].Detail, s.Observed.Objects[0].ChangedAt = state, detail, noon.Add(-time.Hour)
		}
	}
	noSet := func(s *situation.Situation) { s.Observed.Set, s.Observed.Pods, s.Observed.Rounds = nil, nil, nil }
	volumes := func(s *situation.Situation) { s.Observed.Volumes = memberVolumes(3) }
	// counted is a StatefulSet of so many pods, older a record from before the last member joined, and
	// lowered a budget for as many members as that record knows.
	counted := func(n int32) mutation {
		return func(s *situation.Situation) {
			s.Observed.Set.Replicas = n
			s.Observed.Objects[0] = state.Object{Kind: "StatefulSet", Name: "orders", State: state.ObjectDrifted, Detail: ".spec.replicas"}
		}
	}
	older := func(s *situation.Situation) { delete(s.Observed.Record.Members, "orders-2") }
	lowered := func(how state.ObjectState) mutation {
		return func(s *situation.Situation) {
			s.Observed.Objects[0] = state.Object{Kind: state.KindBudget, Name: "orders", State: how, Detail: ".spec.minAvailable"}
		}
	}
	noList := looks(func(r *state.Round) { r.Problem = "context deadline exceeded" })
	const unknown = "Refused: etcd lists orders-2 (member m2), which the record does not know: the record is older than the cluster"
	checkRule(t, objects.Drift, []ruleCase{
		{name: "17: in sync passes"},
		{name: "a foreign object is another rule's", change: object(state.ObjectForeign, "")},
		{name: "a missing object comes back", change: object(state.ObjectMissing, ""), want: "apply Service orders: it is gone"},
		{name: "a drifted object goes back, and who did it is told", change: object(state.ObjectDrifted, "spec.type, changed by kubectl-edit"), want: "apply Service orders: it differs from what Git says: spec.type, changed by kubectl-edit (at 2026-03-01T11:00:00Z)"},
		{name: "85: a deleted StatefulSet comes back on its volumes", change: with(noSet, volumes), want: "create 3 members: the StatefulSet is gone"},
		{name: "not together with a new commit", change: with(noSet, volumes, commit(newVersion)), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "not when nothing was ever applied", change: with(noSet, volumes, func(s *situation.Situation) { s.Observed.Record.Applied = nil }), want: "so what its members ran is unknown; bring the StatefulSet back from a backup of the Kubernetes API", lacks: "revert"},
		{name: "nor with other settings than were applied", change: with(noSet, volumes, func(s *situation.Situation) { s.Observed.Record.Applied.Settings = "others" }), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "77: nor when one volume is gone", change: with(noSet, volumes, func(s *situation.Situation) { s.Observed.Volumes = s.Observed.Volumes[1:] }), want: "Refused: the StatefulSet is gone, and so are volumes: 2 of 3 are left"},
		{name: "77: nor while one is being deleted", change: with(noSet, volumes, func(s *situation.Situation) { s.Observed.Volumes[2].Terminating = true }), want: "Refused: the StatefulSet is gone, and so are volumes: 2 of 3 are left"},
		{name: "nor does the volume of a stranger stand in for one", change: with(noSet, volumes, func(s *situation.Situation) {
			s.Observed.Volumes[2] = memberVolume("data-orders-7", 8<<30)
		}), want: "Refused: the StatefulSet is gone, and so are volumes: 2 of 3 are left"},
		{name: "86: without any volume there is nothing to continue from", change: noSet, want: "Refused: "},
		{name: "50: more pods than members are for resize", change: counted(5)},
		{name: "50: so are fewer", change: counted(2)},
		{name: "what else differs is put back", change: counted(3), want: "apply StatefulSet orders: it differs from what Git says: .spec.replicas"},
		{name: "306: the pod of a voter that an older record does not know is for resize", change: with(older, counted(3))},
		{name: "306: a StatefulSet that is gone takes no voter's place away", change: with(older, volumes, func(s *situation.Situation) { s.Observed.Set = nil }), want: unknown},
		{name: "306: nor that of one that its volume tells of", change: with(older, volumes, noList, func(s *situation.Situation) { s.Observed.Set = nil }), want: "Refused: volume claim data-orders-2 holds the data of member m2, which is not in the record"},
		{name: "306: no budget lets others stop it", change: with(older, lowered(state.ObjectDrifted))},
		{name: "306: also where it is gone", change: with(older, lowered(state.ObjectMissing))},
		{name: "306: also where there is no list", change: with(older, volumes, noList, lowered(state.ObjectDrifted))},
		{name: "a budget of members that are all known is put back", change: lowered(state.ObjectDrifted), want: "apply PodDisruptionBudget orders: "},
	})
}
