package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// now changes the newest look.
func now(f func(*state.Round)) mutation {
	return func(s *situation.Situation) { f(s.Observed.Round()) }
}

// of changes one member in the newest look.
func of(ordinal int32, f func(*state.Member)) mutation {
	return func(s *situation.Situation) { f(memberAt(s, ordinal)) }
}

func TestHealth(t *testing.T) {
	leaderless := now(func(r *state.Round) {
		for i := range r.Members {
			r.Members[i].Leader = ""
		}
	})
	crashes := func(i int32) mutation {
		return with(down(i), func(s *situation.Situation) { podAt(s, i).Trouble = "etcd: panic: no" })
	}
	// victim is a roll to "b" that was given up for "c" and left orders-1 broken.
	victim := with(commit(newVersion), begun, rolled(newVersion, 1, 2), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(1))
	// lonely is a cluster of one whose new image cannot be pulled, and whose commit
	// is taken back.
	lonely := with(commit(newVersion), begun, rolled(newVersion, 0), down(0), neverRan(0),
		func(s *situation.Situation) { s.Desired.Template = "a" }, now(func(r *state.Round) { *r = state.Round{Problem: "no answer"} }))
	checkRule(t, health, []ruleCase{
		{name: "17: a healthy cluster passes"},
		{name: "an unformed cluster is the bootstrap's", change: unformed},
		{name: "no member was asked", change: func(s *situation.Situation) { s.Observed.Rounds = nil }, want: "Confirm: no member was asked yet"},
		{name: "84: no quorum", change: now(func(r *state.Round) { *r = state.Round{Problem: "no linearizable answer"} }), want: "Unhealthy: the members cannot be listed (no linearizable answer); nothing is restarted until the cluster is healthy; check the pods of its members"},
		{name: "80: another cluster", change: now(func(r *state.Round) { r.ClusterID = "c2" }), want: "the members say that they are cluster c2, the record says c1"},
		{name: "58: a learner", change: of(1, func(m *state.Member) { m.Learner = true }), want: "orders-1 is a learner that quorate did not add; nothing is restarted until the cluster is healthy; where that learner is not wanted, remove it with `etcdctl member remove m1`"},
		{name: "58: a learner that has not started", change: of(1, func(m *state.Member) { m.Learner, m.Name = true, "" }), want: "m1 is a learner"},
		{name: "46: a member too many", change: now(func(r *state.Round) { r.Members = append(r.Members, state.Member{ID: "m9", Name: "orders-9"}) }), want: "Refused: etcd lists orders-9 (member m9), which the record does not know: the record is older than the cluster, or the member was added manually; restore ConfigMap orders-record as it was last"},
		{name: "46: or too few", change: now(func(r *state.Round) { r.Members = r.Members[1:] }), want: "the member list (orders-1=m1 orders-2=m2) is not the recorded one (orders-0=m0 orders-1=m1 orders-2=m2)"},
		{name: "94: one that was removed manually", change: now(func(r *state.Round) { r.Members = r.Members[1:] }), want: "orders-0 was removed manually: delete its pod and its volume claim data-orders-0"},
		{name: "94: while another one joins", change: now(func(r *state.Round) { r.Members[0] = state.Member{ID: "m9", Name: "orders-9"} }), want: "etcd lists orders-9 (member m9), which the record does not know"},
		{name: "94: who has removed whom is not clear", change: now(func(r *state.Round) { r.Members = r.Members[1:]; r.Members[0].Name = "orders-0" }), want: "check the member named here"},
		{name: "94: of two members no member can be replaced", size: 2, change: now(func(r *state.Round) { r.Members = r.Members[1:] }), want: "check the member named here"},
		{name: "94: a member with another ID", change: of(0, func(m *state.Member) { m.ID = "m7" }), want: "etcd lists orders-0 (member m7), which the record does not know"},
		{name: "57: a member is down", change: down(1), want: "Unhealthy: orders-1 does not answer (connection refused)"},
		{name: "46: a member without a pod", change: with(down(1), func(s *situation.Situation) { s.Observed.Pods = slices.Delete(s.Observed.Pods, 1, 2) }), want: "Unhealthy: orders-1 does not answer (connection refused)"},
		{name: "46: a member without a pod that answers is for the rules that know pods", change: func(s *situation.Situation) { s.Observed.Pods = slices.Delete(s.Observed.Pods, 1, 2) }},
		{name: "61: a pod's trouble says more than that its member is silent", change: with(down(1), func(s *situation.Situation) { podAt(s, 1).Trouble = "CrashLoopBackOff" }), want: "orders-1 does not run: CrashLoopBackOff"},
		{name: "a trouble of a pod that is ready is over", change: func(s *situation.Situation) { podAt(s, 1).Trouble = "Error, exit code 1" }},
		{name: "no leader", change: leaderless, want: "there is no leader"},
		{name: "another leader", change: of(0, func(m *state.Member) { m.Leader = "m1" }), want: "orders-0 does not follow the leader orders-2"},
		{name: "another term", change: of(0, func(m *state.Member) { m.Term = 6 }), want: "orders-0 does not follow the leader orders-2"},
		{name: "72: far behind", change: of(0, func(m *state.Member) { m.AppliedIndex = 3999 }), want: "orders-0 is far behind the leader (1001 entries)"},
		{name: "a little behind passes", change: of(0, func(m *state.Member) { m.AppliedIndex = 4000 })},
		{name: "59: an alarm", change: now(func(r *state.Round) {
			r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "m1"}, {Kind: state.Corrupt, MemberID: state.UnknownMember}}
		}), want: "alarm: NOSPACE on member m1, CORRUPT on an unknown member"},
		{name: "a downgrade that was not asked for", change: now(func(r *state.Round) { r.Downgrading, r.DowngradeTarget = true, "3.4" }), want: "Unhealthy: a downgrade to 3.4 is in progress, which Git does not ask for and the record does not know; nothing is restarted until the cluster is healthy; find out who has begun it: `etcdctl downgrade cancel` ends it; or restore ConfigMap orders-record as it was last"},
		{name: "59: what keeps space from being freed is told before the alarm", change: now(func(r *state.Round) {
			r.Downgrading, r.DowngradeTarget, r.Alarms = true, "3.4", []state.Alarm{{Kind: state.NoSpace, MemberID: "m1"}}
		}), want: "a downgrade to 3.4 is in progress"},
		{name: "59: so is a version that is not the image's", change: with(now(func(r *state.Round) {
			r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "m1"}}
		}), of(1, func(m *state.Member) { m.Version = newVersion })), want: "orders-1 runs etcd 3.6.16, but its pod was made for 3.5.35"},
		{name: "59: where nothing does, the alarm is", change: now(func(r *state.Round) {
			r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "m1"}}
		}), want: "alarm: NOSPACE on member m1"},
		{name: "a downgrade to an unknown minor", change: now(func(r *state.Round) { r.Downgrading = true }), want: "a downgrade to another release is in progress, which Git"},
		{name: "the downgrade that Git asks for", change: now(func(r *state.Round) { r.Downgrading, r.DowngradeTarget = true, "3.5" })},
		{name: "a downgrade that Git asked for before", change: with(now(func(r *state.Round) { r.Downgrading, r.DowngradeTarget = true, "3.4" }), func(s *situation.Situation) { s.Observed.Record.Downgrade = &state.Downgrade{Minor: "3.4"} })},
		{name: "another one than Git asked for before", change: with(now(func(r *state.Round) { r.Downgrading, r.DowngradeTarget = true, "3.4" }), func(s *situation.Situation) { s.Observed.Record.Downgrade = &state.Downgrade{Minor: "3.3"} }), want: "a downgrade to 3.4 is in progress"},
		{name: "errors that a member reports", change: of(1, func(m *state.Member) { m.Errors = []state.MemberError{{Text: "disk slow"}} }), want: "orders-1 reports: disk slow"},
		{name: "59: an alarm that only a member reports", change: of(1, func(m *state.Member) {
			m.Errors = []state.MemberError{{Text: "memberID:1 alarm:NOSPACE ", Alarm: state.NoSpace}}
		}), want: "orders-1 reports: memberID:1 alarm:NOSPACE"},
		{name: "59: a full database", change: of(1, func(m *state.Member) { m.DBSize, m.Quota = 100, 100 }), want: "the database of orders-1 has reached its quota"},
		{name: "a quota that is not known", change: of(1, func(m *state.Member) { m.DBSize = 100 })},
		{name: "69: a version that is not the image's", change: of(1, func(m *state.Member) { m.Version = newVersion }), want: "orders-1 runs etcd 3.6.16, but its pod was made for 3.5.35"},
		{name: "82: a crash loop", change: crashes(1), want: "delete its pod and its volume claim data-orders-1, and a new member takes its place"},
		{name: "82: no such advice for who may be all that is left", size: 1, change: crashes(0), want: "check the member named here"},
		{name: "82: nor for a broken roll", change: with(commit(newVersion), begun, crashes(1)), want: "what Git asks for would reach orders-2 first, which serves; bring orders-1 back by other means"},
		{name: "other data", change: with(of(1, func(m *state.Member) { m.Hash = 1 }), now(func(r *state.Round) { r.Deep = true })), want: "orders-1 and orders-2 hold different data (compared at revision 0)"},
		{name: "other data after another compaction cannot be compared", change: with(of(1, func(m *state.Member) { m.Hash, m.CompactRevision = 1, 9 }), now(func(r *state.Round) { r.Deep = true }))},
		{name: "other data at another revision cannot either", change: with(of(1, func(m *state.Member) { m.Hash, m.HashRevision = 1, 9 }), now(func(r *state.Round) { r.Deep = true }))},
		{name: "nor can data without a leader, a moment ago", change: func(s *situation.Situation) {
			for i := range s.Observed.Rounds[0].Members {
				s.Observed.Rounds[0].Members[i].Leader = ""
			}
		}},
		{name: "I15: other data in the first look is permanently other data", change: func(s *situation.Situation) { s.Observed.Rounds[0].Members[1].Hash = 1 }, want: "Unhealthy: orders-1 and orders-2 hold different data (compared at revision 0)"},
		{name: "hashes count only where they were asked for", change: with(of(1, func(m *state.Member) { m.Hash = 1 }), now(func(r *state.Round) { r.Deep = false }))},
		{name: "87: a pod that is not ready", change: func(s *situation.Situation) { podAt(s, 0).Ready = false }, want: "the pod of orders-0 is not ready"},
		{name: "363: which a container beside etcd keeps from that", change: func(s *situation.Situation) {
			podAt(s, 0).Ready, podAt(s, 0).Beside = false, "mesh: ImagePullBackOff"
		}, want: "the pod of orders-0 is not ready: a container beside etcd has trouble (mesh: ImagePullBackOff)"},
		{name: "68: a pod that is drained", change: func(s *situation.Situation) { podAt(s, 0).Terminating = true }, want: "the pod of orders-0 is not ready"},
		{name: "62: the member that an abandoned roll broke passes", change: victim},
		{name: "I15: one that is ready and has lost one answer is no victim", change: with(victim, func(s *situation.Situation) {
			podAt(s, 1).Ready, s.Observed.Rounds[0].Member("orders-1").Problem = true, ""
		}), want: "orders-1 does not answer"},
		{name: "I15: with one look it is unknown", change: with(victim, func(s *situation.Situation) { podAt(s, 1).Ready = true }, oneLook), want: "Confirm: orders-1 did not answer"},
		{name: "62: one that is ready, and silent twice, is one", change: with(victim, func(s *situation.Situation) { podAt(s, 1).Ready = true })},
		{name: "57: who is put to sleep is broken by no roll", change: with(commit(newVersion), asksState(schema.StateHibernated), down(1), func(s *situation.Situation) { podAt(s, 1).Ran, podAt(s, 1).Unpulled = false, true }), want: "Unhealthy: orders-1 does not answer"},
		{name: "I15: nor of one that the last template made", change: with(victim, oneLook, func(s *situation.Situation) { podAt(s, 1).Ready, podAt(s, 1).Template = true, "a" }), want: "Unhealthy: orders-1 does not answer"},
		{name: "62: one that is not ready is a victim after one look", change: with(victim, oneLook)},
		{name: "62: so is one that shuts down", change: with(victim, oneLook, func(s *situation.Situation) { podAt(s, 1).Ready, podAt(s, 1).Terminating = true, true })},
		{name: "62: what the victim complains of stops no member", change: with(victim, of(1, func(m *state.Member) { m.Errors = []state.MemberError{{Text: "disk slow"}} }))},
		{name: "57: another one that is down does not", change: with(victim, down(0)), want: "orders-0 does not answer"},
		{name: "57: nor do two that the roll broke", change: with(victim, down(2)), want: "orders-1 does not answer"},
		{name: "57: without a roll no member is broken by one", change: with(down(1), func(s *situation.Situation) {
			podAt(s, 1).Template, s.Observed.Set.Template, s.Desired.Template = "b", "b", "b"
		}), want: "orders-1 does not answer"},
		{name: "62: one member alone that never ran passes", size: 1, change: lonely},
		{name: "84: one member alone that ran does not", size: 1, change: with(lonely, func(s *situation.Situation) { podAt(s, 0).Ran = true }), want: "Unhealthy: the members cannot be listed (no answer)"},
		{name: "84: nor does one that may still start", size: 1, change: with(lonely, func(s *situation.Situation) { podAt(s, 0).Trouble = "" }), want: "Unhealthy: the members cannot be listed (no answer)"},
		{name: "57: while the last template is unknown, no member is broken by a roll", change: with(commit(newVersion), down(1), func(s *situation.Situation) { s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = "", "" }), want: "Unhealthy: orders-1 does not answer"},
	})
}

func TestQuorumWithoutTheTarget(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int32
		down []int32
		want string
	}{
		{name: "3 of 3", n: 3},
		{name: "42: 2 of 3", n: 3, down: []int32{0}, want: "without orders-2 only 1 of 3 members would be left, and a quorum is 2"},
		{name: "4 of 5", n: 5, down: []int32{0}},
		{name: "42: 3 of 5", n: 5, down: []int32{0, 1}, want: "without orders-4 only 2 of 5 members would be left, and a quorum is 3"},
		{name: "two members never can", n: 2, down: []int32{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(c.n)
			commit(newVersion)(s)
			for _, i := range c.down {
				down(i)(s)
			}
			if got := s.QuorumProblem(s.Observed.Round(), ""); got.String() != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	s := healthy(3)
	commit(newVersion)(s)
	s.Observed.Round().Members[0].Learner = true
	if got := s.QuorumProblem(s.Observed.Round(), ""); got.String() != "without orders-2 only 1 of 3 members would be left, and a quorum is 2" {
		t.Errorf("I19: a learner counts for the quorum: %q", got)
	}
	s = healthy(3)
	with(down(0), down(1))(s)
	if got := s.QuorumProblem(s.Observed.Round(), ""); !got.None() {
		t.Errorf("without a roll nobody is missed: %q", got)
	}
	for name, change := range map[string]mutation{
		"without a roll":             func(*situation.Situation) {},
		"while the members sleep":    with(commit(newVersion), asksState(schema.StateHibernated)),
		"when every pod is replaced": with(commit(newVersion), rolled(newVersion, 0, 1, 2)),
	} {
		s := healthy(3)
		change(s)
		if got := s.Restarting(""); got != "" {
			t.Errorf("%s %s would restart", name, got)
		}
	}
	if got := healthy(3).Restarting("orders-1"); got != "orders-1" {
		t.Errorf("the broken member goes first, not %s", got)
	}
}

func TestConfirm(t *testing.T) {
	before := func(f func(*state.Round)) mutation {
		return with(commit(newVersion), func(s *situation.Situation) { f(&s.Observed.Rounds[0]) })
	}
	checkRule(t, confirm, []ruleCase{
		{name: "17: nothing to do needs no second look", change: func(s *situation.Situation) { s.Observed.Rounds = s.Observed.Rounds[1:] }},
		{name: "two good looks pass", change: commit(newVersion)},
		{name: "I15: one look is not enough", change: with(commit(newVersion), func(s *situation.Situation) { s.Observed.Rounds = s.Observed.Rounds[1:] }), want: "Confirm: health counts when it was seen twice"},
		{name: "I15: nor for the others of one that never ran", change: with(commit(newVersion), begun, rolled(newVersion, 2), down(2), neverRan(2), leads(0), oneLook), want: "Confirm: health counts when it was seen twice"},
		{name: "an old look is not enough", change: with(commit(newVersion), func(s *situation.Situation) { s.Now = noon.Add(16 * time.Second) }), want: "Confirm: the last check of the members is too old"},
		{name: "286: hashes are not", change: before(func(r *state.Round) { r.Deep = false })},
		{name: "two looks at once are one", change: before(func(r *state.Round) { r.At = noon.Add(-state.Between / 2) }), want: "Confirm: the two checks of the members were too close"},
		{name: "87: sick a moment ago", change: before(func(r *state.Round) { r.Members[0].Problem = "timeout" }), want: "Confirm: healthy now, but a moment ago: orders-0 does not answer (timeout)"},
		{name: "no list a moment ago", change: before(func(r *state.Round) { *r = state.Round{At: r.At, Deep: true, Problem: "timeout"} }), want: "Confirm: healthy now, but a moment ago: the members cannot be listed (timeout)"},
		{name: "I16: not caught up", change: before(func(r *state.Round) { r.Member("orders-2").CommitIndex = 5100 }), want: "Confirm: orders-0 has not applied yet what the leader had committed (5000 of 5100 entries)"},
	})
}
