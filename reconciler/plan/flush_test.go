package plan

import (
	"maps"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/logs"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

func TestFlush(t *testing.T) {
	// at is a cluster at the stop before 3.7, whose members all have its template.
	at := with(runs("3.6.16"), exposedTo35, func(s *situation.Situation) {
		s.Desired.Spec.Version, s.Desired.Template, s.Desired.SpecHash = "3.7.3", "z", "z"
		s.Desired.Waypoints = []state.Waypoint{{Version: "3.6.16", Flush: true, Template: "a"}}
	})
	nudged := func(age time.Duration, before int64) mutation {
		return func(s *situation.Situation) {
			s.Observed.Record.Forced = &state.ForcedSnapshot{Template: "a", Since: noon.Add(-age), Time: noon.Add(-age), Before: map[string]int64{"orders-0": before, "orders-1": before, "orders-2": before}}
		}
	}
	since := func(age time.Duration) mutation {
		return func(s *situation.Situation) { s.Observed.Record.Forced.Since = noon.Add(-age) }
	}
	saved := func(counts ...int64) mutation {
		return func(s *situation.Situation) {
			for i, n := range counts {
				memberAt(s, int32(i)).Snapshots = n
			}
		}
	}
	born := func(minor string) mutation { return on(func(r *state.Record) { r.BornOn = minor }) }
	flushed := on(func(r *state.Record) { r.Flushed = maps.Clone(r.Members) })
	const first = "add to the log: every member runs with snapshot-count=1"
	checkRule(t, logs.Flush, []ruleCase{
		{name: "17: no change passes"},
		{name: "53: another upgrade passes", change: commit(newVersion)},
		{name: "55: born on 3.6 passes", change: with(runs("3.6.16"), commit("3.7.3"))},
		{name: "27: an unformed cluster is the bootstrap's", change: with(at, unformed)},
		{name: "55: the roll to the stop comes first", change: with(at, func(s *situation.Situation) { podAt(s, 1).Template = "b" })},
		{name: "55: and it is closed first", change: with(at, func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "old" })},
		{name: "55: nothing was added yet", change: at, want: first},
		{name: "55: what was saved before counts for nothing", change: with(at, saved(5, 5, 5)), want: first},
		{name: "55: what was added under another template counts for nothing", change: with(at, nudged(time.Second, 0), saved(5, 5, 5), func(s *situation.Situation) { s.Observed.Record.Forced.Template = "b" }), want: first},
		{name: "55: all have saved since", change: with(at, nudged(time.Second, 2), saved(3, 4, 3)), want: "record that every member has saved its state: "},
		{name: "55: one has not", change: with(at, nudged(time.Second, 2), saved(3, 2, 3)), want: "Waiting: orders-1 saves its state beside its log, which takes a moment"},
		{name: "55: one has restarted, and counts from nothing", change: with(at, nudged(time.Second, 2), saved(3, 1, 3)), want: "Waiting: orders-1 saves"},
		{name: "55: one does not answer", change: with(at, nudged(time.Second, 2), saved(3, 3, 3), down(1)), want: "Waiting: orders-1 saves"},
		{name: "55: no member was asked", change: with(at, nudged(time.Second, 2), func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Waiting: orders-0 saves"},
		{name: "55: one of which nobody knew how often", change: with(at, nudged(time.Second, 2), saved(3, 3, 3), func(s *situation.Situation) { delete(s.Observed.Record.Forced.Before, "orders-2") }), want: "Waiting: orders-2 saves"},
		{name: "55: some time later a few more are added", change: with(at, nudged(logs.SnapshotTime, 2), saved(3, 3, 2)), want: "add to the log: orders-2 has not saved its state beside its log since the last entries; a few more are added"},
		{name: "55: a long time later a person is asked", change: with(at, nudged(time.Second, 2), since(time.Hour), saved(3, 3, 2)), want: "check the log of orders-2: it does not save snapshots"},
		{name: "55: the record is older than a downgrade", change: born("3.6"), want: "record that the members' logs hold entries of 3.5: orders-0 runs etcd 3.5.35, and by the record no log can hold what that writes: the record is older than the cluster"},
		{name: "55: so is one that calls the logs of all flushed", change: flushed, want: "record that the members' logs hold entries of 3.5"},
		{name: "55: and knows of an older minor", change: with(born("3.4"), flushed), want: "record that the members' logs hold entries of 3.4"},
		{name: "55: in the midst of a roll", change: with(commit("3.6.16"), begun, rolled("3.6.16", 0, 2), born("3.6")), want: "record that the members' logs hold entries of 3.5: orders-1 runs"},
		{name: "55: a record that knows it", change: born("3.5")},
		{name: "55: one from before that was noted", change: born("")},
		{name: "55: a minor whose entries all can read", change: with(runs("3.6.16"), born("3.7"), flushed)},
		{name: "55: what does not answer tells nothing", change: with(runs("3.6.16"), born("3.6"), down(0))},
		{name: "55: no member was asked of that", change: with(born("3.6"), func(s *situation.Situation) { s.Observed.Rounds = nil })},
		{name: "27: an unformed cluster has no such record", change: with(born("3.6"), unformed)},
		{name: "55: there is no leader", change: with(at, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Unhealthy: there is no leader to add entries"},
	})
}

// 55: without the rule nothing continues to 3.7, although every pod has the template
// of the stop: what was never seen to have happened has not.
func TestWithoutTheFlushRuleNothingGoesTo37(t *testing.T) {
	s := healthy(3)
	with(runs("3.6.16"), exposedTo35)(s)
	s.Desired.Spec.Version, s.Desired.Template, s.Desired.SpecHash = "3.7.3", "z", "z"
	s.Desired.Waypoints = []state.Waypoint{{Version: "3.6.16", Flush: true, Template: "a"}}
	if p := makeWith(without("flush"), s.Desired, s.Observed, noon); p.Hold != nil || len(p.Steps) > 0 {
		t.Errorf("%s", p.Text())
	}
}

// What is recorded of the logs replaces what was: the two forms of it.
func TestRecordFlushed(t *testing.T) {
	s := healthy(1)
	s.Observed.Record.BornOn, s.Observed.Record.Flushed, s.Observed.Record.Forced = "3.6", s.Observed.Record.Members, &state.ForcedSnapshot{}
	action.RecordFlushed{BornOn: "3.5"}.After(s)
	if r := s.Observed.Record; r.BornOn != "3.5" || len(r.Flushed) > 0 || r.Forced != nil {
		t.Errorf("%+v", r)
	}
}
