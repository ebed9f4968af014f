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
	})
}
