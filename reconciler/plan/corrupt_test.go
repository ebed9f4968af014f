package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// compared makes both looks ones that compared the data, with these hashes.
func compared(hashes ...uint32) mutation {
	return looks(func(r *state.Round) {
		r.Deep = true
		for i := range r.Members {
			m := &r.Members[i]
			m.Hash, m.HashRevision, m.CompactRevision, m.Revision = hashes[i], 900, 100, 900
		}
	})
}

func TestCorruptMember(t *testing.T) {
	last := func(f func(*state.Round)) mutation { return func(s *situation.Situation) { f(s.Observed.Round()) } }
	old := looks(func(r *state.Round) { r.Members[0].Version = "3.5.15" })
	for _, c := range []struct {
		name   string
		size   int32
		change mutation
		want   string
	}{
		{name: "nothing is suspected", change: compared(1, 1, 1), want: `"" "" false`},
		{name: "one differs from two", change: compared(1, 2, 1), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice (compared at revision 900)" true`},
		{name: "the leader may be the one", change: compared(1, 1, 2), want: `"orders-2" "orders-2 holds other data than the 2 others, seen twice (compared at revision 900)" true`},
		{name: "90: etcd accuses the same one", change: with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m1"})), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice (compared at revision 900)" true`},
		{name: "90: etcd does not know who it is", change: with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: state.UnknownMember})), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice (compared at revision 900)" true`},
		{name: "90: etcd accuses another one", change: with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m0"})), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice, but etcd accuses orders-0 (compared at revision 900)" false`},
		{name: "90: etcd accuses both others", change: with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m1"}, state.Alarm{Kind: state.Corrupt, MemberID: "m2"})), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice, but etcd accuses orders-2 (compared at revision 900)" false`},
		{name: "90: who left long ago does not count", change: with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m9"})), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice (compared at revision 900)" true`},
		{name: "seen once", change: with(compared(1, 2, 1), last(func(r *state.Round) { r.Deep = false })), want: `"" "the members' data has not been compared twice yet" false`},
		{name: "another one the second time", change: with(compared(1, 2, 1), last(func(r *state.Round) { r.Members[1].Hash, r.Members[0].Hash = 1, 2 })), want: `"" "orders-1 differed from all others in one check, and orders-0 in another" false`},
		{name: "all different", change: compared(1, 2, 3), want: `"" "no single member differs from a majority that agrees (orders-0 00000001, orders-1 00000002, orders-2 00000003)" false`},
		{name: "one of two", size: 2, change: compared(1, 2), want: `"" "no single member differs from a majority that agrees (orders-0 00000001, orders-1 00000002)" false`},
		{name: "two of five", size: 5, change: compared(1, 2, 2, 1, 1), want: `"" "no single member differs from a majority that agrees (orders-0 00000001, orders-1 00000002, orders-2 00000002, orders-3 00000001, orders-4 00000001)" false`},
		{name: "one of five", size: 5, change: compared(1, 1, 1, 2, 1), want: `"orders-3" "orders-3 holds other data than the 4 others, seen twice (compared at revision 900)" true`},
		{name: "one was not asked", change: with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: state.UnknownMember}), looks(func(r *state.Round) { r.Members[0].HashRevision = 0 })), want: `"" "the data of orders-0 could not be compared" false`},
		{name: "one does not answer", change: with(compared(1, 2, 1), looks(func(r *state.Round) { r.Members[2].Problem = "timeout" })), want: `"" "the data of orders-2 could not be compared" false`},
		{name: "another compaction", change: with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m1"}), looks(func(r *state.Round) { r.Members[1].CompactRevision = 50 })), want: `"" "orders-1 and orders-0 have compacted at different revisions, so their data cannot be compared" false`},
		{name: "hashes of an old release prove nothing", change: with(compared(1, 2, 1), old), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice, but etcd has raised no alarm, and the hashes of 3.5.15 alone prove nothing (compared at revision 900)" false`},
		{name: "unless etcd itself complains", change: with(compared(1, 2, 1), old, alarmed(state.Alarm{Kind: state.Corrupt, MemberID: state.UnknownMember})), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice (compared at revision 900)" true`},
		{name: "the alarm of one who left long ago is no complaint", change: with(compared(1, 2, 1), old, alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m9"})), want: `"orders-1" "orders-1 holds other data than the 2 others, seen twice, but etcd has raised no alarm, and the hashes of 3.5.15 alone prove nothing (compared at revision 900)" false`},
		{name: "an unformed cluster", change: unformed, want: `"" "" false`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(max(c.size, 3))
			if c.size == 2 {
				s = healthy(2)
			}
			c.change(s)
			why, proven := s.CorruptMember()
			if got := fmt.Sprintf("%q %q %t", why.Member, why, proven); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCorruptAlarm(t *testing.T) {
	accused := func(id string) mutation { return alarmed(state.Alarm{Kind: state.Corrupt, MemberID: id}) }
	mended := func(s *situation.Situation) {
		s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: "repair orders-1"}
	}
	checkRule(t, alarms, []ruleCase{
		{name: "90: first the data is compared", change: with(accused("m1"), now(func(r *state.Round) { r.Deep = false })), want: "Confirm: the members' data has not been compared twice yet"},
		{name: "90: the one that differs is to be replaced", change: with(accused("m1"), compared(1, 2, 1)), want: "Unhealthy: alarm CORRUPT: orders-1 holds other data than the 2 others, seen twice (compared at revision 900); orders-1 is replaced"},
		{name: "90: no proof, no repair", change: with(accused("m0"), compared(1, 2, 1)), want: "Unhealthy: CORRUPT on member m0: etcd refuses to serve, and quorate cannot prove which member is wrong: orders-1 holds other data than the 2 others, seen twice, but etcd accuses orders-0 (compared at revision 900); compare the members with `etcdctl endpoint hashkv --cluster`; then either delete the pod and the volume claim"},
		{name: "90: all agree, but the accused is still there", change: with(accused("m1"), compared(1, 1, 1)), want: "Unhealthy: CORRUPT on member m1: etcd refuses to serve, and quorate cannot prove which member is wrong: all members hold the same data"},
		{name: "90: all agree, and the accused is gone", change: with(accused("m9"), compared(1, 1, 1)), want: "disarm CORRUPT on member m9: all members hold the same data, and the one that did not is a member no longer"},
		{name: "90: all agree, and no member was accused", change: with(accused(state.UnknownMember), compared(1, 1, 1)), want: "Unhealthy: CORRUPT on an unknown member: etcd refuses to serve"},
		{name: "90: all agree, and a member was replaced", change: with(accused(state.UnknownMember), compared(1, 1, 1), mended), want: "disarm CORRUPT on an unknown member"},
		{name: "90: a backup for something else is no repair", change: with(accused(state.UnknownMember), compared(1, 1, 1), backedUp(time.Minute)), want: "Unhealthy: CORRUPT on an unknown member: etcd refuses to serve"},
		{name: "90: an alarm of another kind beside it stays", change: with(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m0"}, state.Alarm{Kind: state.Corrupt, MemberID: "m9"}), compared(1, 1, 1)), want: "disarm CORRUPT on member m9"},
		{name: "90: one is accused still, beside one that is gone", change: with(alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m9"}, state.Alarm{Kind: state.Corrupt, MemberID: "m1"}), compared(1, 1, 1)), want: "Unhealthy: CORRUPT on member m9, CORRUPT on member m1"},
		{name: "90: the accused is gone, and another differs", change: with(accused("m9"), compared(1, 2, 2)), want: "Unhealthy: alarm CORRUPT: orders-0 holds other data"},
		{name: "90: the new member has not joined yet", change: with(accused("m9"), compared(1, 1, 1), looks(func(r *state.Round) { r.Members[1].Learner = true })), want: "Unhealthy: CORRUPT on member m9: etcd refuses to serve"},
		{name: "90: no members agreed a moment ago", change: with(accused("m9"), compared(1, 1, 1), func(s *situation.Situation) { s.Observed.Rounds[0].Members[0].HashRevision = 0 }), want: "Unhealthy: CORRUPT on member m9: etcd refuses to serve, and quorate cannot prove which member is wrong: the data of orders-0 could not be compared"},
		{name: "I23: CORRUPT comes before NOSPACE", change: with(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}, state.Alarm{Kind: state.Corrupt, MemberID: "m1"}), holds(10, 10, 100), compared(1, 2, 1)), want: "Unhealthy: alarm CORRUPT"},
	})
}
