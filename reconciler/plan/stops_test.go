package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

func TestStops(t *testing.T) {
	mixed := func(from, to string, ordinals ...int32) mutation {
		return with(runs(from), rolled(to, ordinals...))
	}
	born := func(line string) mutation { return func(s *situation.Situation) { s.Observed.Record.BornOn = line } }
	flushed := func(s *situation.Situation) { s.Observed.Record.Flushed = s.Observed.Record.Members }
	goal := func(version string) mutation {
		return func(s *situation.Situation) { s.Desired.Spec.Version = version }
	}
	for _, c := range []struct {
		name   string
		change mutation
		want   string
	}{
		{"17: nothing to do is one stop", runs("3.6.16"), "3.6.16"},
		{"53: a patch", with(runs("3.6.12"), goal("3.6.16")), "3.6.16"},
		{"53: a minor", with(runs("3.5.35"), goal("3.6.16"), stepwise), "3.6.16"},
		{"53: Strict goes straight, and is refused elsewhere", with(runs("3.4.34"), goal("3.6.16")), "3.6.16"},
		{"53: two minors by steps", with(runs("3.4.34"), goal("3.6.16"), stepwise), "3.5.35 3.6.16"},
		{"55: advice is no stop", with(runs("3.5.30"), goal("3.6.16"), stepwise), "3.6.16"},
		{"55: a floor is", with(runs("3.5.20"), goal("3.6.16"), stepwise), "3.5.35 3.6.16"},
		{"65: in the middle of the first stop", with(mixed("3.4.34", "3.5.35", 1, 2), goal("3.6.16"), stepwise), "3.5.35 3.6.16"},
		{"61: the roll to the first stop has reached every pod, and is not closed", with(runs("3.5.35"), goal("3.6.16"), stepwise, notClosed("3.4.34")), "3.5.35 3.6.16"},
		{"61: the same within a line", with(runs("3.5.35"), goal("3.6.16"), stepwise, notClosed("3.5.12")), "3.5.35 3.6.16"},
		{"61: the same on the way down", with(runs("3.7.3"), goal("3.6.16"), stepwise, notClosed("3.7.1")), "3.7.3 3.6.16"},
		{"61: the same before 3.7", with(runs("3.6.16"), goal("3.7.3"), stepwise, notClosed("3.5.35"), born("3.5")), "3.6.16+flush 3.7.3"},
		{"61: nor where its origin is unknown, and there is a way to go", with(runs("3.4.34"), goal("3.6.16"), stepwise, notClosed("")), "3.5.35 3.6.16"},
		{"61: a roll that comes from above makes no way shorter", with(runs("3.4.34"), goal("3.6.16"), stepwise, notClosed("3.5.35")), "3.5.35 3.6.16"},
		{"61: what a closed roll came from is the past", with(runs("3.5.35"), goal("3.6.16"), stepwise, func(s *situation.Situation) { s.Observed.Set.CurrentVersion = "3.4.34" }), "3.6.16"},
		{"I14: one of those that go down is unknown", with(runs("3.7.1"), goal("3.6.16"), stepwise, func(s *situation.Situation) { podAt(s, 0).Version, memberAt(s, 0).Version = "", "" }), "3.6.16"},
		{"47: a pod that is no member's does not count", with(runs("3.4.34"), goal("3.6.16"), stepwise, withPod), "3.5.35 3.6.16"},
		{"14: a downgrade that somebody has cancelled half way", with(mixed("3.7.1", "3.6.16", 2), goal("3.6.16"), stepwise, looks(func(r *state.Round) { r.ClusterVersion = "3.7.0" })), "3.7.3 3.6.16"},
		{"61: where its origin is unknown", with(runs("3.5.35"), goal("3.6.16"), stepwise, notClosed("")), "3.6.16"},
		{"65: one member is still below the floor", with(mixed("3.5.20", "3.5.35", 1, 2), goal("3.6.16"), stepwise), "3.5.35 3.6.16"},
		{"65: in the middle of the last stop", with(mixed("3.5.35", "3.6.16", 2), goal("3.6.16"), stepwise), "3.6.16"},
		{"53: a path that there is none for is tried straight", with(runs("3.4.34"), goal("3.6.1"), stepwise), "3.6.1"},
		{"I14: a version that is unknown", with(runs("3.4.34"), goal("3.6.16"), stepwise, func(s *situation.Situation) { podAt(s, 0).Version, memberAt(s, 0).Version = "", "" }), "3.6.16"},
		{"27: a cluster that has not formed", with(runs("3.4.34"), goal("3.6.16"), stepwise, unformed), "3.6.16"},

		{"55: born on 3.6", with(runs("3.6.16"), goal("3.7.3")), "3.7.3"},
		{"55: born on 3.5", with(runs("3.6.16"), goal("3.7.3"), born("3.5")), "3.6.16+flush 3.7.3"},
		{"55: born on 3.4", with(runs("3.6.16"), goal("3.7.3"), born("3.4")), "3.6.16+flush 3.7.3"},
		{"55: born at an unknown time", with(runs("3.6.16"), goal("3.7.3"), born("")), "3.6.16+flush 3.7.3"},
		{"55: every member has saved its state", with(runs("3.6.16"), goal("3.7.3"), born("3.5"), flushed), "3.7.3"},
		{"55: all but one", with(runs("3.6.16"), goal("3.7.3"), born("3.5"), func(s *situation.Situation) {
			s.Observed.Record.Flushed = map[string]string{"orders-0": "m0", "orders-1": "m1"}
		}), "3.6.16+flush 3.7.3"},
		{"55: one has another identity since", with(runs("3.6.16"), goal("3.7.3"), born("3.5"), func(s *situation.Situation) {
			s.Observed.Record.Flushed = map[string]string{"orders-0": "m0", "orders-1": "m1", "orders-2": "m9"}
		}), "3.6.16+flush 3.7.3"},
		{"55: the newest patch of the members is what flushes", with(mixed("3.6.12", "3.6.16", 2), goal("3.7.3"), born("3.5")), "3.6.16+flush 3.7.3"},
		{"55: a member has 3.7 already", with(mixed("3.6.16", "3.7.3", 2), goal("3.7.3"), born("")), "3.6.16+flush 3.7.3"},
		{"55: all have 3.7 already", with(runs("3.7.3"), born("")), "3.7.3"},
		{"55: on the way by steps the stop before it flushes", with(runs("3.5.35"), goal("3.7.3"), stepwise), "3.6.16+flush 3.7.3"},
		{"55: from far below", with(runs("3.4.34"), goal("3.7.3"), stepwise), "3.5.35 3.6.16+flush 3.7.3"},
		{"55: from below the floor of 3.7", with(runs("3.6.10"), goal("3.7.3"), born("3.5"), stepwise), "3.6.16+flush 3.7.3"},
		{"55: Strict over two minors flushes nothing", with(runs("3.5.35"), goal("3.7.3")), "3.7.3"},
		{"55: a patch of 3.7 needs none", with(runs("3.7.2"), goal("3.7.3"), born("")), "3.7.3"},

		{"53: a minor down", with(runs("3.7.3"), goal("3.6.16"), born("")), "3.6.16"},
		{"14: a minor down from one that cannot, by steps", with(runs("3.7.1"), goal("3.6.16"), stepwise), "3.7.3 3.6.16"},
		{"14: the same in the middle of the first stop", with(mixed("3.7.1", "3.7.3", 2), goal("3.6.16"), stepwise), "3.7.3 3.6.16"},
		{"14: Strict goes straight, and is refused elsewhere", with(runs("3.7.1"), goal("3.6.16")), "3.6.16"},
		{"53: two minors down are tried straight", with(runs("3.7.3"), goal("3.5.35"), stepwise), "3.5.35"},
		{"62: an upgrade that is given up in the middle", with(mixed("3.6.16", "3.7.1", 2), goal("3.6.16"), stepwise), "3.6.16"},
		{"65: a downgrade in the middle", with(mixed("3.7.3", "3.6.16", 2), descends, goal("3.6.16"), stepwise), "3.6.16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(3)
			c.change(s)
			if got := stopTexts(situation.Waypoints(s.Desired.Spec, s.Observed)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// notClosed is a roll from a version that the StatefulSet has not closed.
func notClosed(from string) mutation {
	return func(s *situation.Situation) {
		s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = "before", from
	}
}

// stopTexts are stops on one line.
func stopTexts(stops []state.Waypoint) string {
	var texts []string
	for _, s := range stops {
		text := s.Version
		if s.Flush {
			text += "+flush"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// Whatever the members run and Git asks for, the last stop is what Git says, and
// no stop is a step to 3.7 by members that may still have to save their state.
func TestStopsEndWhereGitSays(t *testing.T) {
	lines := []string{"3.4.34", "3.4.45", "3.5.12", "3.5.35", "3.6.10", "3.6.16", "3.7.1", "3.7.3"}
	for _, from := range lines {
		for _, to := range lines {
			for _, path := range []mutation{func(*situation.Situation) {}, stepwise} {
				s := healthy(3)
				with(runs(from), exposedTo35, path)(s)
				s.Desired.Spec.Version = to
				checkStops(t, from, s)
			}
		}
	}
}

func checkStops(t *testing.T, from string, s *situation.Situation) {
	t.Helper()
	stops := situation.Waypoints(s.Desired.Spec, s.Observed)
	if last := stops[len(stops)-1]; last.Version != s.Desired.Spec.Version || last.Flush {
		t.Fatalf("%s → %s: %s", from, s.Desired.Spec.Version, stopTexts(stops))
	}
	at, flushed := from, false
	for _, stop := range stops {
		if state.Minor(at) == "3.6" && state.Minor(stop.Version) == "3.7" && !flushed {
			t.Errorf("%s → %s goes from %s to %s without saving the state before: %s", from, s.Desired.Spec.Version, at, stop.Version, stopTexts(stops))
		}
		at, flushed = stop.Version, stop.Flush
	}
}

func TestOlderLines(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"3.5", "3.6", true}, {"3.6", "3.6", false}, {"3.6", "3.5", false}, {"3.9", "3.10", true}, {"", "3.6", false}, {"3.5", "", false}, {"3.5.1", "3.6", false}} {
		if got := state.Older(c.a, c.b); got != c.want {
			t.Errorf("older(%q, %q) = %t", c.a, c.b, got)
		}
	}
}

func TestLogsAfterADowngrade(t *testing.T) {
	all := map[string]string{"orders-0": "m0"}
	for _, c := range []struct{ bornOn, from, to, wantBorn, wantFlushed string }{
		{"3.7", "3.7", "3.6", "3.6", "map[orders-0:m0]"},
		{"3.5", "3.7", "3.6", "3.5", "map[orders-0:m0]"},
		{"", "3.7", "3.6", "", "map[orders-0:m0]"},
		{"3.6", "3.6", "3.5", "3.5", "map[]"},
		{"3.4", "3.6", "3.5", "3.4", "map[]"},
		{"", "3.6", "3.5", "", "map[]"},
	} {
		born, flushed := action.LogsAfter(c.bornOn, all, c.from, c.to)
		if born != c.wantBorn || fmt.Sprint(flushed) != c.wantFlushed {
			t.Errorf("%+v: born on %q, flushed %v", c, born, flushed)
		}
	}
}

// A stop that nobody has rendered is never begun: the plan says which.
func TestAStopThatNobodyHasRendered(t *testing.T) {
	s := healthy(3)
	with(runs("3.4.34"), commit("3.6.16"), stepwise)(s)
	p := Make(s.Desired, s.Observed, noon)
	if p.Hold == nil || p.Hold.Kind != decision.Refused || !strings.Contains(p.Hold.Message, "3.5.35") {
		t.Errorf("%s", p.Text())
	}
}

// Files that cannot be rendered have no stops: what they say may be half of it.
func TestBadFilesHaveNoStops(t *testing.T) {
	s := healthy(3)
	with(runs("3.4.34"), commit("3.6.16"), stepwise)(s)
	s.Desired.Problems = []string{"orders.yaml: no such field"}
	s = situation.Of(s.Desired, s.Observed, noon)
	if stop := s.Waypoint(); len(s.Waypoints) != 0 || s.Intermediate() || stop.Version != "3.6.16" || stop.Template != s.Git.Template {
		t.Errorf("%+v, the stops are %+v", stop, s.Waypoints)
	}
}
