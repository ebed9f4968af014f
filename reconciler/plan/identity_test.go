package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestReadable(t *testing.T) {
	checkRule(t, readable, []ruleCase{
		{name: "a good file passes"},
		{name: "14: all errors of the file are told", change: func(s *situation.Situation) {
			s.Desired.Problems = []string{"orders.yaml:3: bad version", "orders.yaml:5: bad size"}
		}, want: "Refused: the file of this cluster has errors, so the cluster is left unchanged: orders.yaml:3: bad version; orders.yaml:5: bad size"},
	})
}

func TestOwnership(t *testing.T) {
	leftover := func(s *situation.Situation) {
		s.Observed.Record, s.Observed.Set, s.Observed.Pods, s.Observed.Volumes = nil, nil, nil, memberVolumes(1)
	}
	orphan := func(s *situation.Situation) {
		s.Observed.Record, s.Observed.Set, s.Observed.Volumes = nil, nil, nil
		s.Observed.Pods = []state.Pod{{Name: "orders-1", Ordinal: 1}}
	}
	checkRule(t, ownership, []ruleCase{
		{name: "own objects pass"},
		{name: "own volumes pass", change: func(s *situation.Situation) { s.Observed.Volumes = memberVolumes(1) }},
		{name: "35: another's object is never touched", change: func(s *situation.Situation) {
			s.Observed.Objects[0].State, s.Observed.Objects[0].Detail = state.ObjectForeign, "made by helm"
		}, want: "Refused: Service orders exists and is not quorate's (made by helm)"},
		{name: "34: a volume of an earlier cluster is refused", change: leftover, want: "Refused: volume claim data-orders-0 exists"},
		{name: "34: one that is being deleted is waited for", change: with(leftover, goingClaim("")), want: "Waiting: volume claim data-orders-3 of an earlier cluster is being deleted"},
		{name: "34: and hides none that stays", change: with(goingClaim(""), func(s *situation.Situation) {
			s.Observed.Record, s.Observed.Set, s.Observed.Pods = nil, nil, nil
			s.Observed.Volumes = append(s.Observed.Volumes, memberVolumes(1)...)
		}), want: "Refused: volume claim data-orders-0 exists"},
		{name: "135: that a deleted cluster has left a copy of one is no harm", change: with(leftover, asksState(schema.StateDeleted))},
		{name: "34: unless a restore is to take its place", change: with(leftover, asksState(schema.StateDeleted), func(s *situation.Situation) { s.Desired.Restore = &state.RestoreFrom{} }), want: "Refused: volume claim data-orders-0 exists"},
		{name: "35: a pod of an earlier cluster is not taken over", change: orphan, want: "Refused: pod orders-1 exists, but there is no record of a cluster orders: a new one of that name would take it over; rename the cluster; or restore its record, ConfigMap orders-record, from a backup of the Kubernetes API, which says whose data that is; or delete pod orders-1, where"},
		{name: "35: one that shuts down is waited for", change: with(orphan, func(s *situation.Situation) {
			s.Observed.Pods[0].Terminating, s.Observed.Pods[0].GoingSince = true, noon
		}), want: "Waiting: pod orders-1 of an earlier cluster shuts down"},
		{name: "35: and hides none that stays", change: with(orphan, func(s *situation.Situation) {
			s.Observed.Pods = append([]state.Pod{{Name: "orders-2", Ordinal: 2, Terminating: true}}, s.Observed.Pods...)
		}), want: "Refused: pod orders-1 exists"},
		{name: "35: a cluster that is deleted begins nothing", change: with(orphan, asksState(schema.StateDeleted))},
		{name: "35: nor is one that has a record taken over", change: func(s *situation.Situation) { s.Observed.Set = nil }},
		{name: "a damaged record is left to the next rule", change: with(leftover, func(s *situation.Situation) { s.Observed.RecordProblem = "no token" })},
		{name: "so is a StatefulSet without a record", change: with(leftover, func(s *situation.Situation) { s.Observed.Set = &state.Set{} })},
	})
}

func TestRecord(t *testing.T) {
	checkRule(t, record, []ruleCase{
		{name: "a record beside a StatefulSet passes"},
		{name: "neither is a new cluster", change: func(s *situation.Situation) { s.Observed.Record, s.Observed.Set = nil, nil }},
		{name: "a lost record is not made up", change: func(s *situation.Situation) { s.Observed.Record = nil }, want: "Refused: StatefulSet orders exists, but its record (ConfigMap orders-record) is gone"},
		{name: "a damaged record is not guessed at", change: func(s *situation.Situation) {
			s.Observed.Record, s.Observed.RecordProblem = nil, "members: not JSON"
		}, want: "Refused: the record of the cluster cannot be used: members: not JSON"},
	})
}
