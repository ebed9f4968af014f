package preview

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
)

func TestDisruption(t *testing.T) {
	steps := func(names ...string) []decision.Step {
		list := []decision.Step{{Action: action.StartRoll{}}}
		for _, name := range names {
			list = append(list, decision.Step{Action: action.RestartMember{Member: name}})
		}
		return list
	}
	for _, c := range []struct {
		name        string
		replicas    int32
		steps       []decision.Step
		least, most int
		want        string
	}{
		{"no restart", 3, steps(), 0, 0, "no member stops"},
		{"three members", 3, steps("a-2", "a-1", "a-0"), 1, 2, "3 restarts, one at a time, quorum kept; 1 to 2 leader moves"},
		{"a known leader", 5, steps("a-2"), 1, 1, "1 restart, one at a time, quorum kept; 1 leader move"},
		{"one member", 1, steps("a-0"), 0, 0, "1 restart; clients are cut off while a-0 restarts"},
		{"two members", 2, steps("a-1", "a-0"), 1, 1, "2 restarts, one at a time; clients are cut off while each of a-0 and a-1 restarts; 1 leader move"},
	} {
		if got := disruption(c.replicas, c.steps, c.least, c.most); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	some := func(a action.Action, n int) []decision.Step { return slices.Repeat([]decision.Step{{Action: a}}, n) }
	for _, c := range []struct {
		steps []decision.Step
		want  string
	}{
		{some(action.BeginJoin{}, 1), "1 member added, one at a time"},
		{some(action.BeginLeave{}, 2), "2 members removed, one at a time"},
		{append(some(action.BeginJoin{}, 2), some(action.BeginLeave{}, 1)...), "1 member removed, one at a time; 2 members added, one at a time"},
		{some(action.Hibernate{}, 1), "every member stops, and clients are cut off"},
	} {
		if got := disruption(3, c.steps, 0, 0); got != c.want {
			t.Errorf("%v: %q, want %q", c.steps, got, c.want)
		}
	}
	if got := decision.Restarts(steps("a-1", "a-0")); !slices.Equal(got, []string{"a-1", "a-0"}) {
		t.Errorf("restarts %v", got)
	}
}
