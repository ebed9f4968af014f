package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestStart(t *testing.T) {
	checkRule(t, start, []ruleCase{
		{name: "17: no change passes"},
		{name: "53: a new version", change: commit(newVersion), want: "start the roll 3.5.35 → 3.6.16: "},
		{name: "I25: new settings are a roll, too", change: commit(oldVersion), want: "start the roll on 3.5.35: "},
		{name: "one that has begun passes", change: with(commit(newVersion), begun)},
		{name: "71: the step before has not been agreed on", change: with(youngPods, commit(newVersion), now(func(r *state.Round) { r.ClusterVersion = "3.4.0" })), want: "Waiting: every member runs etcd 3.5.35; the cluster version is still 3.4.0 and follows within seconds"},
		{name: "71: which keeps no patch and no setting from it", change: with(commit("3.5.36"), now(func(r *state.Round) { r.ClusterVersion = "3.4.0" })), want: "start the roll 3.5.35 → 3.5.36"},
		{name: "55: before 3.7 the reason is said", change: with(runs("3.6.16"), commit("3.7.3"), exposedTo35, func(s *situation.Situation) {
			s.Desired.Waypoints = []state.Waypoint{{Version: "3.6.16", Flush: true, Template: "f"}}
		}), want: "start the roll on 3.6.16: before 3.7.3: the logs may hold entries of 3.5, at which 3.7 panics"},
	})
}

func TestLeader(t *testing.T) {
	rolling := with(commit(newVersion), begun)
	checkRule(t, leader, []ruleCase{
		{name: "17: without a roll no member moves"},
		{name: "64: the leader is next, and the one that restarts last takes over", change: rolling, want: "move the leader orders-2 → orders-0: orders-2 restarts next"},
		{name: "64: the leader is not next", change: with(rolling, leads(1))},
		{name: "64: an upgraded member takes over before any other", change: with(rolling, rolled(newVersion, 2), leads(1)), want: "move the leader orders-1 → orders-2"},
		{name: "64: of two upgraded members the lower takes over", change: with(rolling, rolled(newVersion, 1, 2), leads(0)), want: "move the leader orders-0 → orders-1"},
		{name: "64: in a downgrade a member with the newer minor leads for as long as there is one", change: with(runs("3.7.3"), commit("3.6.16"), begun, rolled("3.6.16", 2), leads(1), descends), want: "move the leader orders-1 → orders-0"},
		{name: "64: and the last of them hands over to an older one", change: with(runs("3.7.3"), commit("3.6.16"), begun, rolled("3.6.16", 1, 2), leads(0), descends), want: "move the leader orders-0 → orders-1"},
		{name: "64: no leader to move", change: with(rolling, func(s *situation.Situation) { s.Observed.Rounds = nil })},
		{name: "64: one that is down does not take over", change: with(rolling, down(0)), want: "move the leader orders-2 → orders-1"},
		{name: "64: nor does a learner", change: with(rolling, of(0, func(m *state.Member) { m.Learner = true })), want: "move the leader orders-2 → orders-1"},
		{name: "64: nor does one that shuts down", change: with(rolling, func(s *situation.Situation) { podAt(s, 0).Terminating = true }), want: "move the leader orders-2 → orders-1"},
		{name: "64: nobody can take over", change: with(rolling, down(0), down(1)), want: "Unhealthy: orders-2 is the leader and no other member can take over"},
		{name: "27: one member has nobody to move to", size: 1, change: rolling},
	})
}

func TestRestart(t *testing.T) {
	rolling := with(commit(newVersion), begun, leads(0))
	// abandoned is a roll to "b", given up for "c", that left orders-1 broken.
	abandoned := with(commit(newVersion), begun, rolled(newVersion, 1, 2), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(1))
	checkRule(t, restart, []ruleCase{
		{name: "17: no change passes"},
		{name: "a roll without pods passes", change: with(commit(newVersion), func(s *situation.Situation) { s.Observed.Pods = nil })},
		{name: "the highest ordinal goes first", change: rolling, want: "restart orders-2 3.5.35 → 3.6.16: all members are healthy and caught up, the others keep the quorum; 3 left to go"},
		{name: "then the next", change: with(rolling, rolled(newVersion, 2)), want: "restart orders-1 3.5.35 → 3.6.16: all members are healthy and caught up, the others keep the quorum; 2 left to go"},
		{name: "38: 10 is higher than 9", size: 11, change: rolling, want: "restart orders-10 "},
		{name: "27: one member does not serve meanwhile", size: 1, change: rolling, want: "restart orders-0 3.5.35 → 3.6.16: 1 member to go; a cluster of 1 member does not serve while one restarts"},
		{name: "360: one that admission has made stale goes again", change: with(rolling, rolled(newVersion, 2), stale(2)), want: "restart orders-2 on 3.6.16: all members are healthy and caught up, the others keep the quorum; 3 left to go"},
		{name: "62: a broken member goes first", change: abandoned, want: "restart orders-1 3.6.16 → 3.5.35: an abandoned rollout left it broken; it comes back as it was before that rollout"},
		{name: "62: the broken member is the highest", change: with(commit(newVersion), begun, rolled(newVersion, 2), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(2)), want: "restart orders-2 on 3.6.16: an abandoned rollout left it broken; the others keep the quorum"},
		{name: "63: a broken member that would come back too old", change: with(abandoned, now(func(r *state.Round) { r.ClusterVersion = "3.6.0" })), want: "Refused: orders-1 is broken and would come back with etcd 3.5.35, while the cluster version is 3.6.0"},
		{name: "a broken member of a cluster that says no version is left alone", change: with(abandoned, now(func(r *state.Round) { r.ClusterVersion = "" })), want: "Refused: "},
		{name: "a broken member of a cluster that nobody has asked is left alone", change: with(abandoned, func(s *situation.Situation) {
			podAt(s, 2).Template, s.Observed.Rounds = "a", nil
		}), want: "Refused: "},
	})
}

func TestARestartCarriesItsPreconditions(t *testing.T) {
	next := healthy(3)
	with(commit(newVersion), begun)(next)
	broken := healthy(3)
	with(commit(newVersion), begun, rolled(newVersion, 1, 2), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(1))(broken)
	for _, c := range []struct {
		name string
		s    *situation.Situation
		want action.RestartMember
	}{
		{"by the partition", next, action.RestartMember{SetUID: "set", Member: "orders-2", Ordinal: 2, PodUID: "pod-m2", MemberID: "m2", Partition: 2, From: oldVersion, To: newVersion}},
		{"by deletion", broken, action.RestartMember{SetUID: "set", Member: "orders-1", Ordinal: 1, PodUID: "pod-m1", MemberID: "m1", Partition: 3, ByDeletion: true, From: newVersion, To: oldVersion}},
	} {
		if got := restart(c.s).Step.Action; got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestEnd(t *testing.T) {
	moved := now(func(r *state.Round) { r.ClusterVersion = "3.6.0" })
	over := with(youngPods, commit(newVersion), begun, rolled(newVersion, 0, 1, 2))
	closed := func(s *situation.Situation) {
		s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = "b", newVersion
	}
	lowered := func(s *situation.Situation) { s.Observed.Set.Partition = 0 }
	checkRule(t, end, []ruleCase{
		{name: "at rest nobody asks for the cluster version", change: now(func(r *state.Round) { r.ClusterVersion = "" })},
		{name: "nor for a downgrade", change: now(func(r *state.Round) { r.Downgrading, r.DowngradeTarget = true, "3.5" })},
		{name: "17: a quiet cluster passes"},
		{name: "a cluster that has not formed passes", change: unformed},
		{name: "a roll that continues passes", change: commit(newVersion)},
		{name: "71: the cluster version has not moved", change: over, want: "Waiting: every member runs etcd 3.6.16; the cluster version is still 3.5.0 and follows within seconds"},
		{name: "the controller has not closed the roll", change: with(over, moved), want: "Waiting: every pod has the template; the StatefulSet controller closes the roll"},
		{name: "the partition goes up again", change: with(over, moved, closed, lowered), want: "end the roll: "},
		{name: "the end passes", change: with(over, moved, closed)},
		{name: "53: etcd has not ended the downgrade", change: with(over, moved, closed, descends), want: "Waiting: every member runs etcd 3.6.16; etcd ends the downgrade within seconds"},
		{name: "I25: a partition that was lowered by hand goes up", change: lowered, want: "end the roll: "},
	})
}

func TestApplied(t *testing.T) {
	checkRule(t, applied, []ruleCase{
		{name: "17: what is recorded passes"},
		{name: "a new spec is recorded", change: commit(oldVersion), want: "record that 3.5.35 is applied: "},
		{name: "28: a new cluster's first spec is recorded", change: func(s *situation.Situation) { s.Observed.Record.Applied = nil }, want: "record that 3.5.35 is applied: "},
		{name: "53: a stop on the way is not", change: with(runs("3.4.34"), commit(newVersion), stepwise)},
		{name: "a cluster that has not formed passes", change: unformed},
		{name: "a cluster without a record passes", change: func(s *situation.Situation) { s.Observed.Record = nil }},
	})
	s := healthy(3)
	commit(newVersion)(s)
	want := action.RecordApplied{SpecHash: "b", Settings: s.Settings(), Version: newVersion, Commit: "beef"}
	if got := applied(s).Step.Action; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The pods are looked at in the order of their ordinals, as numbers.
func TestOrdinalsAreNumbers(t *testing.T) {
	s := healthy(12)
	with(commit(newVersion), begun, backedUp(time.Minute))(s)
	var got []int32
	for _, p := range s.Outdated() {
		got = append(got, p.Ordinal)
	}
	for i, ordinal := range got {
		if ordinal != int32(11-i) {
			t.Fatalf("order %v", got)
		}
	}
}

// Two members have no quorum while one is broken: what the roll broke has to
// come back first, and no member answers meanwhile.
func TestTwoMembersWithoutAQuorum(t *testing.T) {
	// broken is a roll to "b" whose image orders-0 cannot pull.
	broken := with(commit(newVersion), begun, rolled(newVersion, 0), down(0), neverRan(0), func(s *situation.Situation) { s.Observed.Rounds = nil })
	// alone1 is one whose image orders-1 cannot pull, and orders-0 waits for a quorum.
	alone1 := with(commit(newVersion), begun, rolled(newVersion, 1), down(1), neverRan(1), func(s *situation.Situation) {
		podAt(s, 0).Ready, podAt(s, 1).Unpulled = false, true
	}, looks(func(r *state.Round) {
		r.Problem, r.Members = "no linearizable answer", []state.Member{{Name: "orders-0", ID: "m0", Version: oldVersion, Problem: "no leader"}, {Name: "orders-1", Problem: "connection refused"}}
	}))
	given := func(template, version string) mutation {
		return with(func(s *situation.Situation) {
			s.Desired.Template, s.Desired.SpecHash, s.Desired.Spec.Version, s.Desired.Spec.Upgrade.Backup = template, template, version, schema.BackupSkip
		}, begun)
	}
	checkRule(t, func(s *situation.Situation) verdict.Verdict { return first(table(), s) }, []ruleCase{
		{name: "62: the other had restarted on its own, and Git goes forward", size: 2, change: with(broken, given("c", newVersion)), want: "orders-0"},
		{name: "62: the other was upgraded before, and Git goes back", size: 2, change: with(rolled(newVersion, 1), broken, given("a", oldVersion), func(s *situation.Situation) { podAt(s, 1).Ready = false }), want: "restart orders-0 3.6.16 → 3.5.35"},
		{name: "62: the other was never touched, and Git goes back", size: 2, change: with(alone1, given("a", oldVersion)), want: "restart orders-1 3.6.16 → 3.5.35"},
		{name: "62: before that the StatefulSet does", size: 2, change: with(alone1, func(s *situation.Situation) {
			s.Desired.Template, s.Desired.SpecHash, s.Desired.Spec.Version = "a", "a", oldVersion
		}), want: "start the roll 3.6.16 → 3.5.35"},
		{name: "62: what shuts down is waited for", size: 2, change: with(alone1, given("a", oldVersion), goingPod(1)), want: "Waiting: orders-1 is shutting down"},
	})
}

// A cluster that began with a broken image and was reformed keeps that template
// as the one of the last closed roll, until a roll closes. A pod that is made
// again before then gets it, and cannot start; only the roll can mend it.
func TestABrokenTemplateThatWasNeverRolledBack(t *testing.T) {
	checkRule(t, func(s *situation.Situation) verdict.Verdict { return first(table(), s) }, []ruleCase{
		{name: "61: a pod that never ran is the roll's to mend", change: with(commit(newVersion), begun, backedUp(time.Minute), leads(0), down(2), neverRan(2), func(s *situation.Situation) {
			s.Observed.Set.CurrentTemplate, podAt(s, 2).Template, podAt(s, 2).Unpulled = "x", "x", true
		}), want: "restart orders-2 "},
		{name: "78: a member that the guard keeps down is not", change: with(commit(newVersion), begun, backedUp(time.Minute), leads(0), down(2), neverRan(2), func(s *situation.Situation) {
			podAt(s, 2).Trouble = "guard: the volume of orders-2 is empty although this member had joined"
		}), want: "Unhealthy: orders-2 does not run: guard: the volume of orders-2 is empty"},
	})
}

// Members that are put to sleep sleep as they are; only a roll that is half done
// continues.
func TestRolling(t *testing.T) {
	sleep := asksState(schema.StateHibernated)
	for _, c := range []struct {
		name   string
		change mutation
		want   bool
	}{
		{"17: a quiet cluster", func(*situation.Situation) {}, false},
		{"a new commit", commit(newVersion), true},
		{"a StatefulSet that lags behind its pods", with(commit(newVersion), rolled(newVersion, 0, 1, 2)), true},
		{"a new commit for a cluster that is to sleep", with(commit(newVersion), sleep), false},
		{"362: stale pods at rest", stale(0, 1, 2), false},
		{"360: stale pods of a roll that the controller has not closed", with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), stale(1)), true},
		{"360: stale pods that the partition lets go", with(stale(1), func(s *situation.Situation) { s.Observed.Set.Partition = 1 }), true},
		{"360: a stale pod of no member", with(func(s *situation.Situation) {
			s.Observed.Set.Partition = 1
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3, Template: s.Desired.Template, Stale: true})
		}), false},
		{"a roll that is half done, before it sleeps", with(commit(newVersion), begun, rolled(newVersion, 2), sleep), true},
	} {
		s := healthy(3)
		c.change(s)
		if got := s.Rolling(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// created lets a pod have been created a while ago.
func created(ordinal int32, ago time.Duration) mutation {
	return func(s *situation.Situation) { podAt(s, ordinal).Created = noon.Add(-ago) }
}

// Of those whom an abandoned roll has broken, one that never ran is fixed first.
func TestVictim(t *testing.T) {
	// broken lets members 1 and 2 be down with a template that was given up.
	broken := with(commit(newVersion), down(1), down(2), leads(0), func(s *situation.Situation) {
		podAt(s, 1).Template, podAt(s, 2).Template = "x", "x"
	})
	ran := func(ordinals ...int32) mutation {
		return func(s *situation.Situation) {
			podAt(s, 1).Ran, podAt(s, 2).Ran = false, false
			for _, i := range ordinals {
				podAt(s, i).Ran = true
			}
		}
	}
	for _, c := range []struct {
		name   string
		change mutation
		want   string
	}{
		{"nobody is broken", commit(newVersion), ""},
		{"360: one is stale, and its template as good as the others'", with(commit(newVersion), begun, rolled(newVersion, 2), stale(2), down(2)), ""},
		{"both ran: the highest", with(broken, ran(1, 2)), "orders-2"},
		{"one never did", with(broken, ran(2)), "orders-1"},
		{"neither did: the highest", with(broken, ran()), "orders-2"},
		{"a template that was good is not to blame", with(commit(newVersion), down(1)), ""},
		{"unless its image cannot be had", with(commit(newVersion), down(1), func(s *situation.Situation) { podAt(s, 1).Ran, podAt(s, 1).Unpulled = false, true }), "orders-1"},
		{"but not where etcd ran on it", with(commit(newVersion), down(1), func(s *situation.Situation) { podAt(s, 1).Unpulled = true }), ""},
		{"81: other settings may be the remedy of the highest", with(commit(oldVersion), down(2), leads(0), stuck(2, "etcd: OOMKilled")), "orders-2"},
		{"81: not of another, which a roll would reach later", with(commit(oldVersion), down(1), leads(0), stuck(1, "etcd: OOMKilled")), ""},
		{"81: not of one that just does not answer", with(commit(oldVersion), down(2), leads(0)), ""},
		{"81: not of one that is ready", with(commit(oldVersion), leads(0), stuck(2, "etcd: OOMKilled")), ""},
		{"81: not of one that shuts down", with(commit(oldVersion), down(2), leads(0), stuck(2, "etcd: OOMKilled"), func(s *situation.Situation) { podAt(s, 2).Terminating = true }), ""},
		{"81: not of one whose data is lost", with(commit(oldVersion), down(2), leads(0), stuck(2, "guard: empty"), damaged(2, state.DamageEmpty, time.Hour)), ""},
		{"81: not of one whose node is gone", with(commit(oldVersion), down(2), leads(0), stuck(2, "etcd: OOMKilled"), func(s *situation.Situation) { podAt(s, 2).NodeGone = true }), ""},
		{"81: not while another is down", with(commit(oldVersion), down(2), down(1), leads(0), stuck(2, "etcd: OOMKilled")), ""},
		{"81: nor by another release", with(commit(newVersion), down(2), leads(0), stuck(2, "etcd: OOMKilled")), ""},
		{"304, I2: one that has just been created only starts", with(broken, ran(1, 2), created(1, 10*time.Second), created(2, 10*time.Second)), ""},
		{"I2: nor is one that never ran", with(broken, ran(1), created(2, 10*time.Second)), "orders-1"},
		{"I2: one without trouble has longer", with(broken, ran(2), created(1, 4*time.Minute)), "orders-2"},
		{"I2: but not for ever", with(broken, ran(2), created(1, 5*time.Minute)), "orders-1"},
		{"I2: with a trouble of half a minute it is broken", with(broken, ran(2), stuck(1, "CrashLoopBackOff"), created(1, 30*time.Second)), "orders-1"},
		{"I15: one look blames nobody who is ready", with(broken, ran(1, 2), oneLook, func(s *situation.Situation) { podAt(s, 1).Ready, podAt(s, 2).Ready = true, true }), ""},
	} {
		s := healthy(3)
		c.change(s)
		s = situation.Of(s.Desired, s.Observed, s.Now)
		got := ""
		if v := s.BrokenByRoll(); v != nil {
			got = v.Name
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
