package reconciler

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan"
)

// The record changes only from what an action rests on: the very member, by name and
// by ID.
func TestMembershipRecordTransitions(t *testing.T) {
	idle := func() Record {
		return Record{ClusterID: "c1", Members: map[string]string{"orders-0": "a0", "orders-1": "a1"}}
	}
	joining := func() Record {
		r := idle()
		r.Joining = &JoiningRecord{Member: "orders-2", ID: "a2"}
		return r
	}
	now := time.Now()
	for name, test := range map[string]struct {
		from   func() Record
		change func(*Record) bool
		fits   bool
	}{
		"an ID of nobody":           {idle, func(r *Record) bool { return r.learnerIs("orders-2", "a2") }, false},
		"the ID of another":         {joining, func(r *Record) bool { return r.learnerIs("orders-3", "a2") }, false},
		"a second ID":               {joining, func(r *Record) bool { return r.learnerIs("orders-2", "a9") }, false},
		"the same ID":               {joining, func(r *Record) bool { return r.learnerIs("orders-2", "a2") }, true},
		"a vote of nobody":          {idle, func(r *Record) bool { return r.promoting(plan.PromoteMember{Member: "orders-2", ID: "a2"}) }, false},
		"a vote of another":         {joining, func(r *Record) bool { return r.promoting(plan.PromoteMember{Member: "orders-3", ID: "a2"}) }, false},
		"a vote of another ID":      {joining, func(r *Record) bool { return r.promoting(plan.PromoteMember{Member: "orders-2", ID: "a9"}) }, false},
		"an end of another":         {joining, func(r *Record) bool { return r.endJoin(plan.EndJoin{Member: "orders-3", ID: "a2"}) }, false},
		"an end of another ID":      {joining, func(r *Record) bool { return r.endJoin(plan.EndJoin{Member: "orders-2", ID: "a9"}) }, false},
		"an end of one long joined": {joining, func(r *Record) bool { return r.endJoin(plan.EndJoin{Member: "orders-1", ID: "a1"}) }, false},
		"an end that was before":    {idle, func(r *Record) bool { return r.endJoin(plan.EndJoin{Member: "orders-1", ID: "a1"}) }, true},
		"a drop of another":         {joining, func(r *Record) bool { return r.dropLearner(plan.DropLearner{Member: "orders-3", ID: "a2"}, now) }, false},
		"a drop of another ID":      {joining, func(r *Record) bool { return r.dropLearner(plan.DropLearner{Member: "orders-2", ID: "a9"}, now) }, false},
	} {
		r := test.from()
		if fits := test.change(&r); fits != test.fits || !reflect.DeepEqual(r, test.from()) {
			t.Errorf("%s: %t, the record is %+v", name, fits, r)
		}
	}
	r := joining()
	r.FailedJoin = &FailedJoinRecord{Member: "orders-3", Times: 4}
	if !r.dropLearner(plan.DropLearner{Member: "orders-2", ID: "a2", Failed: true}, now) || r.FailedJoin.Times != 1 || len(r.Retired) > 0 {
		t.Errorf("the failures of another are counted, or a volume is given up: %+v", r)
	}
	r = joining()
	r.Joining.ID = ""
	if !r.dropLearner(plan.DropLearner{Member: "orders-2", Retire: true}, now) || len(r.Retired) > 0 {
		t.Errorf("a learner without an ID leaves a volume: %+v", r)
	}
}
