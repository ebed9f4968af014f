package record_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
)

// The record changes only from what an action rests on: the very member, by name and
// by ID. What does not fit changes nothing, and nor does what was done before.
func TestMembershipRecordTransitions(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	from := func(edits ...func(*record.Record)) func() record.Record {
		return func() record.Record {
			r := record.Record{ClusterID: "c1", Members: map[string]string{"orders-0": "a0", "orders-1": "a1"}}
			for _, edit := range edits {
				edit(&r)
			}
			return r
		}
	}
	learner := func(id string) func(*record.Record) {
		return func(r *record.Record) { r.Joining = &record.Joining{Member: "orders-2", ID: id, Since: now} }
	}
	leaves := func(r *record.Record) { r.Leaving = &record.Leaving{Member: "orders-1", ID: "a1", Since: now} }
	replaces := func(member string) func(*record.Record) { return func(r *record.Record) { r.Replacing = member } }
	failed := func(member string, times int) func(*record.Record) {
		return func(r *record.Record) { r.FailedJoin = &record.FailedJoin{Member: member, At: now, Times: times} }
	}
	retired := func(r *record.Record) { r.Retired = map[string]string{"orders-1": "a1"} }
	left := func(r *record.Record) { r.Members = map[string]string{"orders-0": "a0"}; retired(r) }
	joined := func(r *record.Record) { r.Members["orders-2"] = "a2" }
	idle, joining, nameless, leaving := from(), from(learner("a2")), from(learner("")), from(leaves)

	join := func(member string) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.BeginJoin(action.BeginJoin{Member: member}, now) }
	}
	is := func(member, id string) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.LearnerIs(member, id) }
	}
	vote := func(member, id string) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.Promoting(action.PromoteMember{Member: member, ID: id}) }
	}
	end := func(member, id string) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.EndJoin(action.EndJoin{Member: member, ID: id}) }
	}
	drop := func(a action.DropLearner) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.DropLearner(a, now) }
	}
	leave := func(member, id string) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.BeginLeave(action.BeginLeave{Member: member, ID: id}, now) }
	}
	stay := func(member, id string) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.CancelLeave(action.CancelLeave{Member: member, ID: id}) }
	}
	gone := func(a action.EndLeave) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.EndLeave(a) }
	}
	replaced := func(member string) func(*record.Record) bool {
		return func(r *record.Record) bool { return r.EndReplace(action.EndReplace{Member: member}) }
	}
	for name, test := range map[string]struct {
		from   func() record.Record
		change func(*record.Record) bool
		fits   bool
		// to is the record after it; nil where it stays.
		to func() record.Record
	}{
		"a join":                           {idle, join("orders-2"), true, nameless},
		"a join that has begun":            {joining, join("orders-2"), true, nil},
		"a join beside another":            {joining, join("orders-3"), false, nil},
		"a join of a member":               {idle, join("orders-1"), false, nil},
		"a join while one leaves":          {leaving, join("orders-2"), false, nil},
		"a join of the one to be replaced": {from(replaces("orders-2")), join("orders-2"), true, nameless},
		"a join while another is replaced": {from(replaces("orders-1")), join("orders-2"), true, from(replaces("orders-1"), learner(""))},
		"an ID":                            {nameless, is("orders-2", "a2"), true, joining},
		"an ID of nobody":                  {idle, is("orders-2", "a2"), false, nil},
		"the ID of another":                {joining, is("orders-3", "a2"), false, nil},
		"a second ID":                      {joining, is("orders-2", "a9"), false, nil},
		"the same ID":                      {joining, is("orders-2", "a2"), true, nil},
		"a vote":                           {joining, vote("orders-2", "a2"), true, from(learner("a2"), func(r *record.Record) { r.Joining.Promoting = true })},
		"a vote of nobody":                 {idle, vote("orders-2", "a2"), false, nil},
		"a vote of another":                {joining, vote("orders-3", "a2"), false, nil},
		"a vote of another ID":             {joining, vote("orders-2", "a9"), false, nil},
		"an end":                           {from(learner("a2"), failed("orders-2", 3)), end("orders-2", "a2"), true, from(joined)},
		"an end of nobody":                 {idle, end("orders-2", "a2"), false, nil},
		"an end of another":                {joining, end("orders-3", "a2"), false, nil},
		"an end of another ID":             {joining, end("orders-2", "a9"), false, nil},
		"an end of one long joined":        {joining, end("orders-1", "a1"), false, nil},
		"an end that was before":           {idle, end("orders-1", "a1"), true, nil},
		"a drop":                           {joining, drop(action.DropLearner{Member: "orders-2", ID: "a2"}), true, idle},
		"a drop that was before":           {idle, drop(action.DropLearner{Member: "orders-2", ID: "a2", Failed: true, Retire: true, Replace: true}), true, nil},
		"a drop of another":                {joining, drop(action.DropLearner{Member: "orders-3", ID: "a2"}), false, nil},
		"a drop of another ID":             {joining, drop(action.DropLearner{Member: "orders-2", ID: "a9"}), false, nil},
		"a drop after a failure":           {joining, drop(action.DropLearner{Member: "orders-2", ID: "a2", Failed: true}), true, from(failed("orders-2", 1))},
		"a drop after one more failure":    {from(learner("a2"), failed("orders-2", 4)), drop(action.DropLearner{Member: "orders-2", ID: "a2", Failed: true}), true, from(failed("orders-2", 5))},
		"a drop after another's failures":  {from(learner("a2"), failed("orders-3", 4)), drop(action.DropLearner{Member: "orders-2", ID: "a2", Failed: true}), true, from(failed("orders-2", 1))},
		"a drop that leaves a volume":      {joining, drop(action.DropLearner{Member: "orders-2", ID: "a2", Retire: true}), true, from(func(r *record.Record) { r.Retired = map[string]string{"orders-2": "a2"} })},
		"a drop without an ID":             {nameless, drop(action.DropLearner{Member: "orders-2", Retire: true}), true, idle},
		"a drop of one to be replaced":     {joining, drop(action.DropLearner{Member: "orders-2", ID: "a2", Replace: true}), true, from(replaces("orders-2"))},
		"a leave":                          {idle, leave("orders-1", "a1"), true, leaving},
		"a leave that has begun":           {leaving, leave("orders-1", "a1"), true, nil},
		"a leave that began earlier":       {from(leaves, func(r *record.Record) { r.Leaving.Since = now.Add(-time.Hour) }), leave("orders-1", "a1"), true, nil},
		"a leave of another":               {leaving, leave("orders-0", "a1"), false, nil},
		"a leave of another ID":            {leaving, leave("orders-1", "a9"), false, nil},
		"a leave while one joins":          {joining, leave("orders-1", "a1"), false, nil},
		"a leave of no such ID":            {idle, leave("orders-1", "a9"), false, nil},
		"a stay":                           {leaving, stay("orders-1", "a1"), true, idle},
		"a stay of one who stays":          {idle, stay("orders-1", "a1"), true, nil},
		"a stay of another":                {leaving, stay("orders-0", "a1"), false, nil},
		"a stay of another ID":             {leaving, stay("orders-1", "a9"), false, nil},
		"a departure":                      {leaving, gone(action.EndLeave{Member: "orders-1", ID: "a1"}), true, from(left)},
		"a departure to be replaced":       {leaving, gone(action.EndLeave{Member: "orders-1", ID: "a1", Replace: true}), true, from(left, replaces("orders-1"))},
		"a departure that was before":      {from(left), gone(action.EndLeave{Member: "orders-1", ID: "a1"}), true, nil},
		"a departure of a member":          {from(retired), gone(action.EndLeave{Member: "orders-1", ID: "a1"}), false, nil},
		"a departure of who is unknown":    {idle, gone(action.EndLeave{Member: "orders-2", ID: "a2"}), false, nil},
		"a departure of another":           {leaving, gone(action.EndLeave{Member: "orders-0", ID: "a1"}), false, nil},
		"a departure of another ID":        {leaving, gone(action.EndLeave{Member: "orders-1", ID: "a9"}), false, nil},
		"a replacement":                    {from(replaces("orders-2")), replaced("orders-2"), true, idle},
		"a replacement that was before":    {idle, replaced("orders-2"), true, nil},
		"a replacement of another":         {from(replaces("orders-2")), replaced("orders-3"), false, nil},
		"a departure beside a retired one": {from(leaves, func(r *record.Record) { r.Retired = map[string]string{"orders-3": "a3"} }), gone(action.EndLeave{Member: "orders-1", ID: "a1"}), true, from(left, func(r *record.Record) { r.Retired["orders-3"] = "a3" })},
	} {
		want := test.to
		if want == nil {
			want = test.from
		}
		r := test.from()
		if fits := test.change(&r); fits != test.fits || !reflect.DeepEqual(r, want()) {
			t.Errorf("%s: %t, the record is %+v, joining %+v, leaving %+v", name, fits, r, r.Joining, r.Leaving)
		}
	}
}
