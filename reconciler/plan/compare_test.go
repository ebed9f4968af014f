package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// uncompared takes the comparison of the data away.
func uncompared(s *situation.Situation) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Deep = false
	}
}

// neverEqual says why the comparison told nothing.
func neverEqual(s *situation.Situation) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Incomparable = "the members have compacted at different revisions"
	}
}

// passedOver lets the comparison do without a member, that answers again afterwards or not.
func passedOver(ordinal int, answers bool) mutation {
	return func(s *situation.Situation) {
		last := len(s.Observed.Rounds) - 1
		for i := range s.Observed.Rounds {
			r := &s.Observed.Rounds[i]
			if i == last {
				r.Deep = false
			}
			if i < last || !answers {
				r.Members[ordinal].Problem = "status: deadline exceeded"
			}
		}
	}
}

// createdBefore is how long ago the pod of orders-2 was created, and its etcd started.
func createdBefore(age time.Duration) mutation {
	return func(s *situation.Situation) {
		podAt(s, 2).Created, podAt(s, 2).RunsSince = noon.Add(-age), noon.Add(-age)
	}
}

// servesFor is how long a member has been ready.
func servesFor(ordinal int32, age time.Duration) mutation {
	return func(s *situation.Situation) { podAt(s, ordinal).ReadySince = noon.Add(-age) }
}

// claimBefore is how long ago the claim of orders-2 was made.
func claimBefore(age time.Duration) mutation {
	return func(s *situation.Situation) {
		v := memberVolume("data-orders-2", 8<<30)
		v.Created = noon.Add(-age)
		s.Observed.Volumes = []state.Volume{v}
	}
}

// option sets a flag of etcd in Git.
func option(name, value string) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.Etcd.Options = map[string]string{name: value} }
}

func TestCompare(t *testing.T) {
	const confirm = "Confirm: the members' data has not been compared yet"
	begins := with(commit(oldVersion), begun, uncompared)
	on36 := looks(func(r *state.Round) { r.ClusterVersion = "3.6.0" })
	second := with(commit(newVersion), begun, uncompared, on36, rolled(newVersion, 2), leads(0))
	upgrade := with(commit(newVersion), begun, uncompared)
	checkRule(t, compare, []ruleCase{
		{name: "286: nothing rolls", change: uncompared},
		{name: "286: not before the first restart", change: begins, want: confirm},
		{name: "286: compared a moment ago", change: with(commit(oldVersion), begun)},
		{name: "286: what tells nothing is no comparison", change: with(commit(oldVersion), begun, neverEqual), want: "Confirm: the members' data could not be compared: the members have compacted at different revisions"},
		{name: "422: without a voter that answers by now", change: with(commit(oldVersion), begun, passedOver(1, true)), want: "Confirm: the members' data could not be compared: orders-1: status: deadline exceeded"},
		{name: "422: that a learner was left out does not matter", change: with(commit(oldVersion), begun, passedOver(1, true), looks(func(r *state.Round) { r.Members[1].Learner = true }))},
		{name: "422: nor one that does not answer at all", change: with(commit(oldVersion), begun, passedOver(1, false))},
		{name: "286: the data of one is compared with nothing", size: 1, change: begins},
		{name: "286: but with that of another", size: 2, change: begins, want: confirm},
		{name: "286: not before the second restart: etcd itself compared", change: with(second, createdBefore(time.Minute))},
		{name: "387: it passed over one that was down then", change: with(second, createdBefore(time.Minute), servesFor(0, 30*time.Second)), want: confirm},
		{name: "387: not over one that served by then", change: with(second, createdBefore(time.Minute), servesFor(0, time.Minute))},
		{name: "387: that it was ready itself only later says nothing", change: with(second, createdBefore(time.Minute), servesFor(2, 30*time.Second))},
		{name: "387: it passed over one without a pod, too", change: with(second, createdBefore(time.Minute), withoutPod(0)), want: confirm},
		{name: "387: and over one that is not ready", change: with(second, createdBefore(time.Minute), unready(0)), want: confirm},
		{name: "387: when etcd started is unknown", change: with(second, createdBefore(time.Minute), func(s *situation.Situation) { podAt(s, 2).RunsSince = time.Time{} }), want: confirm},
		{name: "387: each that was restarted has compared", change: with(second, rolled(newVersion, 1), createdBefore(2*time.Minute), servesFor(1, time.Minute), func(s *situation.Situation) {
			podAt(s, 1).Created, podAt(s, 1).RunsSince = noon.Add(-90*time.Second), noon.Add(-90*time.Second)
			podAt(s, 2).ReadySince = noon.Add(-100 * time.Second)
		})},
		{name: "264: one that has just joined had nothing to compare", change: with(second, createdBefore(time.Minute), claimBefore(time.Minute)), want: confirm},
		{name: "264: nor had one whose pod was refused for a while", change: with(second, createdBefore(time.Minute), claimBefore(10*time.Minute)), want: confirm},
		{name: "264: one that was there before has", change: with(second, createdBefore(time.Minute), claimBefore(11*time.Minute))},
		{name: "286: by a clock that is ahead, too", change: with(second, createdBefore(-time.Minute))},
		{name: "286: a roll that has paused for an hour", change: with(second, createdBefore(time.Hour)), want: confirm},
		{name: "286: the pod of another template tells nothing", change: with(begins, on36, createdBefore(time.Minute)), want: confirm},
		{name: "288: etcd 3.5 does not compare", change: with(begins, rolled(oldVersion, 2), leads(0), createdBefore(time.Minute)), want: confirm},
		{name: "288: nor is it trusted on the way to 3.6", change: with(second, looks(func(r *state.Round) { r.ClusterVersion = "3.5.0" }), createdBefore(time.Minute)), want: confirm},
		{name: "288: nor on the way back", change: with(second, func(s *situation.Situation) { s.Desired.Spec.Version = oldVersion }, createdBefore(time.Minute)), want: confirm},
		{name: "288: nor while nobody knows the cluster version", change: with(second, looks(func(r *state.Round) { r.ClusterVersion = "" }), createdBefore(time.Minute)), want: confirm},
		{name: "286: nor does one that is no member", change: with(second, createdBefore(time.Minute), func(s *situation.Situation) { delete(s.Observed.Record.Members, "orders-2") }), want: confirm},
		{name: "286: etcd's own check is off by the name of its flag", change: with(second, createdBefore(time.Minute), option("experimental-initial-corrupt-check", "false")), want: confirm},
		{name: "286: or by that of its gate", change: with(second, createdBefore(time.Minute), option("feature-gates", "InitialCorruptCheck=false")), want: confirm},
		{name: "286: other options leave it on", change: with(second, createdBefore(time.Minute), option("heartbeat-interval", "200"))},
		{name: "286: it was compared before the backup, and may differ since", change: with(upgrade, backedUp(time.Minute)), want: confirm},
		{name: "286: which is long ago", change: with(upgrade, backedUp(time.Hour)), want: confirm},
		{name: "286: or was for something else", change: with(upgrade, func(s *situation.Situation) {
			s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: state.ForHibernation, Time: noon}
		}), want: confirm},
		{name: "286: nor does it count for the second restart", change: with(upgrade, backedUp(time.Minute), rolled(newVersion, 2), leads(0), createdBefore(time.Minute)), want: confirm},
		{name: "286: one that does not serve is not stopped by its restart", change: with(begins, down(2), leads(0))},
	})
}

// What else is not done before the data was compared: each asks for that once, by itself.
func TestComparedFirst(t *testing.T) {
	const confirm = "Confirm: the members' data has not been compared yet"
	full := with(holds(90, 90, 100), alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), looks(func(r *state.Round) {
		for i := range r.Members {
			r.Members[i].Revision = 900
		}
	}), uncompared)
	applies := with(commit(newVersion), uncompared, rolled(newVersion, 0, 1, 2), func(s *situation.Situation) {
		begun(s)
		s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = "b", newVersion
	})
	for _, c := range []struct {
		rule string
		eval func(*situation.Situation) verdict.Verdict
		ruleCase
	}{
		{"backup", backup, ruleCase{name: "286: before the backup of an upgrade", change: with(commit(newVersion), uncompared), want: confirm}},
		{"hibernate", hibernate, ruleCase{name: "286: before all members sleep", change: with(asksState("Hibernated"), uncompared), want: confirm}},
		{"membership", membership, ruleCase{name: "287: before a member is removed", change: with(wanting(2), leaving(2, false), leads(0), uncompared), want: confirm}},
		{"membership", membership, ruleCase{name: "287: not before one that is lost", change: with(down(2), leaving(2, true), leads(0), uncompared), want: "remove"}},
		{"membership", membership, ruleCase{name: "287: not before the leader moves away from it", change: with(wanting(2), leaving(2, false), uncompared), want: "move the leader"}},
		{"alarms", alarms, ruleCase{name: "288: before history is dropped", change: full, want: confirm}},
		{"applied", applied, ruleCase{name: "286: another release is applied when all are the same under it", change: applies, want: confirm}},
		{"applied", applied, ruleCase{name: "286: other settings need not", change: with(commit(oldVersion), uncompared, rolled(oldVersion, 0, 1, 2)), want: "record that"}},
		{"start", start, ruleCase{name: "286: the new template stops nobody", change: with(commit(oldVersion), uncompared), want: "start the roll"}},
		{"leader", leader, ruleCase{name: "286: nor does a leader that moves", change: with(commit(oldVersion), begun, uncompared), want: "move the leader"}},
	} {
		checkRule(t, c.eval, []ruleCase{c.ruleCase})
	}
}

// 421: a comparison before a member stops, or leaves, names it, so that the leadership is
// not handed to it.
func TestAComparisonNamesWhoStopsNext(t *testing.T) {
	for name, c := range map[string]struct {
		eval   func(*situation.Situation) verdict.Verdict
		change mutation
		want   string
	}{
		"before a restart": {compare, with(commit(newVersion), begun, uncompared, backedUp(time.Minute), leads(0)), "orders-2"},
		"before a removal": {membership, with(wanting(2), leaving(2, false), leads(0), uncompared), "orders-2"},
		"before a backup":  {backup, with(commit(newVersion), uncompared), ""},
	} {
		s := healthy(3)
		c.change(s)
		if v := c.eval(s); v.Hold == nil || !v.Hold.Compare || v.Hold.Stops != c.want {
			t.Errorf("%s: %+v", name, v.Hold)
		}
	}
}
