package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// rolling is a roll that has restarted one of three members.
var rolling = with(commit(newVersion), begun, rolled(newVersion, 2))

// 390 393 400: nobody else stops a member from the start of a roll to its end.
func TestExclusive(t *testing.T) {
	lowered := func(s *situation.Situation) { s.Observed.Set.Partition = 0 }
	ended := func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = s.Observed.Set.Template }
	outside := only(windowOf("0 2 * * 6", "1h", "UTC"))
	sized := func(replicas, partition int32) mutation {
		return func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Set.Partition = replicas, partition }
	}
	for name, c := range map[string]struct {
		change mutation
		want   bool
	}{
		"at rest":                                           {func(*situation.Situation) {}, false},
		"a roll that has not begun":                         {commit(newVersion), false},
		"one that has restarted none":                       {with(commit(newVersion), begun), true},
		"one in its midst":                                  {rolling, true},
		"one that is not closed":                            {with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2)), true},
		"one whose partition is down":                       {with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), ended, lowered), true},
		"one that is over":                                  {with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), ended), false},
		"a pod of an older template":                        {with(commit(newVersion), begun, rolled(newVersion, 1, 2), ended), true},
		"one that is over, and scaled up by hand":           {with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), ended, sized(5, 3)), false},
		"and scaled down":                                   {with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), ended, sized(1, 1)), false},
		"one that waits for its window":                     {with(rolling, outside), false},
		"one that waits for none":                           {with(rolling, outside, alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"})), true},
		"another alarm":                                     {with(rolling, outside, alarmed(state.Alarm{Kind: state.Corrupt})), false},
		"one whose next member has no node to come back to": {with(rolling, shut(1)), false},
		"one that comes to such a member later":             {with(rolling, shut(0)), true},
		"one that is done with such a member":               {with(rolling, shut(2)), true},
		"one beside a pod that is no member":                {with(rolling, func(s *situation.Situation) { delete(s.Observed.Record.Members, "orders-1") }, shut(1)), true},
		"the last one has no node to come back to":          {with(commit(newVersion), begun, rolled(newVersion, 1, 2), shut(0)), false},
		"no member was asked":                               {with(rolling, outside, func(s *situation.Situation) { s.Observed.Rounds = nil }), false},
		"no StatefulSet":                                    {with(rolling, func(s *situation.Situation) { s.Observed.Set = nil }), false},
		"a cluster that is not formed":                      {with(rolling, unformed), false},
	} {
		s := healthy(3)
		c.change(s)
		if got := situation.Exclusive(s.Desired.Spec, s.Observed, s.Now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// 26: a forecast has the budget differ where a step changes who may stop members, and else leaves
// what was seen of it.
func TestAForecastSharesEvictions(t *testing.T) {
	for name, c := range map[string]struct {
		size   int32
		before mutation
		is     state.ObjectState
		want   state.ObjectState
	}{
		"a roll begins":                    {3, commit(newVersion), state.ObjectInSync, state.ObjectDrifted},
		"it is under way":                  {3, with(commit(newVersion), begun), state.ObjectInSync, state.ObjectInSync},
		"one of a member that is alone":    {1, commit(newVersion), state.ObjectInSync, state.ObjectInSync},
		"a budget that is gone":            {3, commit(newVersion), state.ObjectMissing, state.ObjectMissing},
		"a budget that is somebody else's": {3, commit(newVersion), state.ObjectForeign, state.ObjectForeign},
		"the budget of a cluster of three": {3, commit(newVersion), state.ObjectDrifted, state.ObjectDrifted},
	} {
		before, after := healthy(c.size), healthy(c.size)
		c.before(before)
		with(commit(newVersion), begun, budgetIs(c.is))(after)
		outlook.ShareEvictions(before, after)
		if got := after.Observed.Objects[len(after.Observed.Objects)-1].State; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// budgetIs has the budget differ, or be missing.
func budgetIs(is state.ObjectState, changes ...func(*state.Object)) mutation {
	return func(s *situation.Situation) {
		o := state.Object{Kind: "PodDisruptionBudget", Name: "orders", State: is, Detail: ".spec.minAvailable (2, wanted 3)", Weight: state.WeightMembers}
		for _, change := range changes {
			change(&o)
		}
		s.Observed.Objects = append(s.Observed.Objects, o)
	}
}

// 390 392: the budget is closed before anything else in a roll, and while it is not, no member is
// restarted but one that is down anyhow.
func TestNoRestartWhileEvictionsMayTakeAnother(t *testing.T) {
	refused := func(o *state.Object) {
		o.Refused = &state.Refusal{Problem: "no budget may keep every pod", Since: noon.Add(-time.Hour), Until: noon.Add(time.Minute)}
	}
	contested := func(o *state.Object) {
		o.Fight = &state.Fight{Manager: "meddler", Fields: ".spec.minAvailable", Times: 4, Until: noon.Add(time.Minute)}
	}
	labels := func(o *state.Object) { o.Weight = state.WeightLight }
	const refuses = "Refused: PodDisruptionBudget orders is not taken as quorate applies it: no budget may keep every pod"
	outside := only(windowOf("0 2 * * 6", "1h", "UTC"))
	checkRule(t, objects.Drift, []ruleCase{
		{name: "390: in a roll", change: with(rolling, budgetIs(state.ObjectDrifted)), want: "apply PodDisruptionBudget orders: no eviction takes a member beside the one that the rollout restarts: .spec.minAvailable (2, wanted 3)"},
		{name: "390: after it", change: budgetIs(state.ObjectDrifted), want: "apply PodDisruptionBudget orders: it differs from what Git says: .spec.minAvailable (2, wanted 3)"},
		{name: "390: another object", change: with(rolling, fought("Service", 0)), want: "apply Service orders: it differs from what Git says"},
	})
	checkRule(t, objects.Fight, []ruleCase{
		{name: "392: a budget that is refused in a roll", change: with(rolling, budgetIs(state.ObjectDrifted, refused)), want: refuses},
		{name: "392: one that is gone", change: with(rolling, budgetIs(state.ObjectMissing, refused, labels)), want: refuses},
		{name: "392: one that another writer changes", change: with(rolling, budgetIs(state.ObjectDrifted, contested)), want: "Waiting: PodDisruptionBudget orders: .spec.minAvailable was put back again and again"},
		{name: "392: one that Git leaves", change: with(rolling, budgetIs(state.ObjectDrifted, func(o *state.Object) { o.Left = true })), want: "Refused: PodDisruptionBudget orders is drifted"},
		{name: "392: labels that are refused keep every pod, too", change: with(rolling, budgetIs(state.ObjectDrifted, refused, labels))},
		{name: "392: a budget that is as it should be", change: with(rolling, budgetIs(state.ObjectInSync, refused))},
		{name: "392: what a roll has broken is mended", change: with(rolling, func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(2), budgetIs(state.ObjectDrifted, refused))},
		{name: "392: a revert restarts none", change: with(commit(newVersion), begun, func(s *situation.Situation) { s.Desired.Template = "a" }, budgetIs(state.ObjectDrifted, refused))},
		{name: "392: so is a database without space", change: with(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), holds(90, 90, 100), raised(200), begun, budgetIs(state.ObjectDrifted, refused))},
		{name: "393: outside of the window none is restarted", change: with(rolling, outside, budgetIs(state.ObjectDrifted, refused))},
		{name: "392: a Service holds no roll", change: with(rolling, denied("Service", state.ObjectMissing, 0, time.Minute))},
	})
}
