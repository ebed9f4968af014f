package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/schema"
)

// state lets Git want a state, in a new commit.
func asksState(want schema.State) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.State, s.Desired.SpecHash = want, "s" }
}

// asleep is a cluster whose record says that it sleeps.
func asleep(s *situation.Situation) { s.Observed.Record.Hibernated = true }

// stopped takes every pod away.
func stopped(s *situation.Situation) {
	s.Observed.Set.Replicas, s.Observed.Set.Partition, s.Observed.Pods, s.Observed.Rounds = 0, 0, nil, nil
}

func TestHibernate(t *testing.T) {
	sleep := asksState(schema.StateHibernated)
	checkRule(t, hibernate, []ruleCase{
		{name: "a cluster that is to run passes", change: asksState(schema.StateRunning)},
		{name: "the backup first", change: sleep, want: "back up through orders-2: before the members sleep"},
		{name: "then sleep", change: with(sleep, savedFor("hibernation")), want: "put the members to sleep: spec.state is Hibernated"},
		{name: "nowhere to put the backup", change: with(sleep, func(s *situation.Situation) { s.Desired.BackupURL = "" }), want: "Refused: the hibernation needs a backup first"},
		{name: "a half done roll ends first", change: with(sleep, commit(newVersion), begun, rolled(newVersion, 2))},
		{name: "so does one that the StatefulSet knows no more", change: with(sleep, savedFor("hibernation"), func(s *situation.Situation) { podAt(s, 1).Template = "x" })},
		{name: "a pod of no member has no say in that", change: with(sleep, savedFor("hibernation"), gone(2), func(s *situation.Situation) { podAt(s, 2).Template = "x" }), want: "put the members to sleep"},
		{name: "a downgrade that etcd was told of ends first", change: with(sleep, savedFor("hibernation"), func(s *situation.Situation) { s.Observed.Round().Downgrading = true })},
		{name: "a roll that has not begun waits until it wakes", change: with(commit(newVersion), sleep, savedFor("hibernation")), want: "put the members to sleep"},
		{name: "an unformed cluster is the bootstrap's", change: with(unformed, sleep)},
	})
}

func TestHibernated(t *testing.T) {
	sleep := with(asksState(schema.StateHibernated), asleep)
	checkRule(t, hibernated, []ruleCase{
		{name: "a cluster that is awake passes"},
		{name: "its pods go", change: sleep, want: "resize the StatefulSet 3 → 0: no member is to run"},
		{name: "until the last one has gone", change: with(sleep, func(s *situation.Situation) { s.Observed.Set.Replicas = 0 }), want: "Waiting: 3 pods shut down"},
		{name: "what sleeps is what Git wants", change: with(sleep, stopped), want: "record that 3.5.35 is applied: every member is stopped"},
		{name: "whatever else Git says meanwhile", change: with(commit(newVersion), sleep, stopped), want: "record that 3.5.35 is applied"},
		{name: "241: what Git leaves beside it is told", change: with(sleep, stopped, leaves("Service")), want: leftSays},
		{name: "it wakes whatever is left", change: with(asleep, stopped, leaves("Service")), want: "wake the members"},
		{name: "it wakes", change: with(asleep, stopped), want: "wake the members: spec.state is no longer Hibernated"},
		{name: "nothing was ever applied", change: with(sleep, stopped, func(s *situation.Situation) { s.Observed.Record.Applied = nil }), want: "record that 3.5.35 is applied"},
		{name: "an unformed cluster is the bootstrap's", change: with(unformed, asleep)},
		{name: "deletion is told above", change: with(asleep, stopped, asksState(schema.StateDeleted)), want: "wake the members"},
	})
	s := healthy(3)
	with(sleep, stopped)(s)
	s.Observed.Record.Applied.Settings = "was"
	if a := hibernated(s).Step.Action.(action.RecordApplied); a.Settings != "was" {
		t.Errorf("members that sleep are now %q, and were what was applied", a.Settings)
	}
	s.Observed.Record.Applied.SpecHash = "s"
	if v := hibernated(s); !v.Idle {
		t.Errorf("a sleeping cluster asks for %s", words(v))
	}
	if p := makeWith(table(), s.Desired, s.Observed, noon); !p.Idle() {
		t.Errorf("a sleeping cluster has a plan: %s", p.Text())
	}
}
