package record_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// 411: what a member answers without a problem is on its disk, and only that is noted; it never sinks.
func TestFloorsAreWhatIsWritten(t *testing.T) {
	answers := func(change ...func(*state.Member)) *state.Round {
		r := &state.Round{ClusterID: "c1", Members: []state.Member{{ID: "a0", Name: "orders-0", Term: 4, AppliedIndex: 100, CommitIndex: 120}}}
		for _, c := range change {
			c(&r.Members[0])
		}
		return r
	}
	floor := func(id string, term, index uint64) map[string]guard.Floor {
		return map[string]guard.Floor{"orders-0": {ID: id, Term: term, Index: index}}
	}
	another := answers()
	another.ClusterID = "c2"
	for name, test := range map[string]struct {
		was   map[string]guard.Floor
		round *state.Round
		want  map[string]guard.Floor
	}{
		"what it has applied":             {nil, answers(), floor("a0", 4, 100)},
		"more than before":                {floor("a0", 3, 50), answers(), floor("a0", 4, 100)},
		"no less than before":             {floor("a0", 5, 150), answers(), floor("a0", 5, 150)},
		"what another ID had is no floor": {floor("a9", 5, 150), answers(), floor("a0", 4, 100)},
		"one that could not be read from": {floor("a0", 3, 50), answers(func(m *state.Member) { m.Problem = "timeout" }), floor("a0", 3, 50)},
		"a learner is not read from":      {nil, answers(func(m *state.Member) { m.Learner = true }), nil},
		"another cluster":                 {nil, another, nil},
		"another ID":                      {floor("a0", 3, 50), answers(func(m *state.Member) { m.ID = "a9" }), floor("a0", 3, 50)},
		"nobody was asked":                {floor("a0", 3, 50), nil, floor("a0", 3, 50)},
		"nothing is applied":              {nil, answers(func(m *state.Member) { m.AppliedIndex = 0 }), nil},
		"one that has left":               {map[string]guard.Floor{"orders-7": {ID: "a7", Term: 1, Index: 1}}, answers(), floor("a0", 4, 100)},
	} {
		rec := record.Record{ClusterID: "c1", Members: map[string]string{"orders-0": "a0"}, Floors: test.was}
		rec.NoteFloors(test.round, time.Time{})
		if len(rec.Floors)+len(test.want) > 0 && !reflect.DeepEqual(rec.Floors, test.want) {
			t.Errorf("%s: %+v, want %+v", name, rec.Floors, test.want)
		}
	}
}

// A recovered cluster begins a new log.
func TestARecoveryForgetsFloors(t *testing.T) {
	rec := record.Record{
		ClusterID: "c1", Members: map[string]string{"orders-0": "a0"}, Floors: map[string]guard.Floor{"orders-0": {ID: "a0", Term: 1, Index: 1}},
		Recovery: record.Recovery{Recovering: &record.Recovering{ClusterID: "c1", NewClusterID: "c2", Member: "orders-0", NewMemberID: "b0", Token: "t2"}},
	}
	if !rec.AdoptRecovery(action.AdoptRecovery{From: "c1", ClusterID: "c2", Member: "orders-0", MemberID: "b0"}) || rec.Floors != nil {
		t.Errorf("%+v", rec)
	}
}
