package plan

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// everyRule are the names of all rules, for what all of them are to see.
func everyRule() string {
	var names []string
	for _, r := range table() {
		names = append(names, r.name)
	}
	return strings.Join(names, " ")
}

// straightOn lets the rules go to what Git says without a stop, and nothing keep
// them from it.
func straightOn(rules []rule) []rule {
	return blind(everyRule(), func(s *situation.Situation) {
		s.Desired, s.Waypoints = s.Git, s.Waypoints[max(0, len(s.Waypoints)-1):]
	})(lacking("path")(rules))
}

// upgradeMutants are ways to get the order of releases wrong.
func upgradeMutants() []mutant {
	return []mutant{
		{name: "the stops on the way are left out", breaks: "I14", table: straightOn, from: stepping},
		{name: "3.7.1 goes down without a stop", breaks: "I14", table: straightOn, from: downFrom(v37Early)},
		{name: "every log counts as flushed", breaks: "I14", table: blind(everyRule(), func(s *situation.Situation) {
			if s.Formed() {
				s.Observed.Record.Flushed = s.Observed.Record.Members
				s.Aim()
			}
		}), from: stepping},
		{name: "every cluster counts as born on 3.6", breaks: "I14", table: blind(everyRule(), func(s *situation.Situation) {
			if s.Formed() {
				s.Observed.Record.BornOn = "3.6"
				s.Aim()
			}
		}), from: stepping},
		{name: "a member that has not saved its state counts", breaks: "I14", table: blind("flush", everyMember(func(m *state.Member) { m.Snapshots = 99 })), from: stepping},
		{name: "without the rule flush", breaks: "liveness", table: lacking("flush"), from: stepping},
		{name: "a downgrade does not wait for the storage", breaks: "I14", table: blind("downgrade", everyMember(func(m *state.Member) { m.StorageVersion = "3.6.0" })), from: downFrom(v37)},
	}
}

// spaceMutants are ways to free space wrongly.
func spaceMutants() []mutant {
	return []mutant{
		{name: "every database counts as small", breaks: "I23", table: blind("alarms", everyMember(func(m *state.Member) { m.DBSize, m.DBInUse = 1<<20, 1<<20 })), from: crowdedStart},
		{name: "history is dropped without a backup", breaks: "I11", table: blind("alarms", func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }), from: crowdedStart},
		{name: "history is dropped where a smaller file is enough", breaks: "I25", table: blind("alarms", everyMember(func(m *state.Member) { m.DBInUse = m.DBSize })), from: crowdedStart},
		{name: "a release that may lose data is defragmented", breaks: "I23", table: blind("alarms", allOn36), from: crowdedStart},
	}
}

// allOn36 lets every member run 3.6.
func allOn36(s *situation.Situation) {
	everyMember(func(m *state.Member) { m.Version = "3.6.16" })(s)
	for i := range s.Observed.Pods {
		s.Observed.Pods[i].Version = "3.6.16"
	}
}

// crowdedStart is where histories start whose databases are full.
func crowdedStart(d dice) world {
	w := runningWorld(3, []int8{v36, v35, v34}[d.roll(3)])
	w.fill(&d)
	return w
}

// stepping is where histories start that go up through several releases.
func stepping(d dice) world {
	w := runningWorld(3, []int8{v36, v35, v34}[d.roll(3)])
	for i := range w.claims {
		w.claims[i].raw = w.claims[i].there
	}
	w = w.asking(v37)
	w.ask.stepwise, w.leader = true, int8(d.roll(3))
	return w
}

// downFrom is where histories start that go down a minor.
func downFrom(v int8) func(dice) world {
	return func(d dice) world {
		w := runningWorld(3, v).asking(v36)
		w.ask.stepwise, w.leader = d.one(2), int8(d.roll(3))
		return w
	}
}

// A way through several releases is gone to its end: with every log flushed before
// 3.7, and no stop left out.
func TestAWayThroughSeveralReleases(t *testing.T) {
	for _, c := range []struct {
		name  string
		start world
		stops []int8
	}{
		{"3.4 to 3.7", stepping(2), []int8{v35, v36Flush, v37}},
		{"3.6 to 3.7", stepping(0), []int8{v36Flush, v37}},
		{"3.7.1 to 3.6", downFrom(v37Early)(1), []int8{v37, v36}},
	} {
		e, w := newEngine(table()), c.start
		var gone []int8
		for range 20 * patience {
			before := w
			if v, broken := e.pass(&w, plainly(&before), done); broken != "" || (v.Hold != nil && v.Hold.Kind == decision.Refused) {
				t.Fatalf("%s: %s %v", c.name, broken, v.Hold)
			}
			if w.set.template != before.set.template {
				gone = append(gone, w.set.template)
			}
			if _, trouble := e.proceed(&w, 0); trouble != "" {
				t.Fatalf("%s: %s", c.name, trouble)
			}
			if w.record.applied == w.ask {
				break
			}
		}
		if len(gone) != len(c.stops) {
			t.Errorf("%s went through %v, not %v", c.name, gone, c.stops)
		}
		for i := range min(len(gone), len(c.stops)) {
			if gone[i] != c.stops[i] {
				t.Errorf("%s went through %v, not %v", c.name, gone, c.stops)
			}
		}
	}
}
