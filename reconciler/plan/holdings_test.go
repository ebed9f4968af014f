package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// holding changes what stands on the claim of an ordinal.
func holding(ordinal int32, holds string) mutation {
	return func(s *situation.Situation) {
		if s.Observed.Volumes == nil {
			s.Observed.Volumes = memberVolumes(s.Observed.Set.Replicas)
		}
		s.Observed.Volume(naming.Member("orders", ordinal)).Holds = holds
	}
}

func TestHoldings(t *testing.T) {
	unseen := holding(1, "")
	volume := func(change func(*state.Volume)) mutation {
		return func(s *situation.Situation) { change(s.Observed.Volume("orders-1")) }
	}
	pod := func(change func(*state.Pod)) mutation { return func(s *situation.Situation) { change(podAt(s, 1)) } }
	const one = "record whose data volume claim data-orders-1 holds"
	checkRule(t, volumes.Holdings, []ruleCase{
		{name: "17: a quiet cluster passes", change: func(s *situation.Situation) { s.Observed.Volumes = memberVolumes(3) }},
		{name: "who does not know its members knows nobody's data", change: with(unformed, func(s *situation.Situation) { s.Observed.Volumes = memberVolumes(3); s.Observed.Volumes[1].Holds = "" })},
		{name: "without a StatefulSet nobody says whose pods they are", change: with(unseen, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "84: without a quorum nothing is noted", change: with(unseen, damaged(1, state.DamageEmpty, time.Minute), func(s *situation.Situation) { s.Observed.Round().Problem = "timeout" })},
		{name: "no member was asked yet", change: with(unseen, damaged(1, state.DamageEmpty, time.Minute), func(s *situation.Situation) { s.Observed.Rounds = nil })},
		{name: "a member runs on it", change: unseen, want: one},
		{name: "all of them at once", change: with(unseen, holding(2, "")), want: "record whose data 2 volume claims hold"},
		{name: "another ID than the one before", change: holding(1, "m9"), want: one},
		{name: "right after all", change: holding(1, state.HoldsForeign), want: one},
		{name: "one that does not answer", change: with(unseen, down(1))},
		{name: "one whose etcd has not run in this pod", change: with(unseen, pod(func(p *state.Pod) { p.Ran = false }))},
		{name: "one that the list has under another name", change: with(unseen, func(s *situation.Situation) { memberAt(s, 1).Name = "orders-7" })},
		{name: "the claim may be another one when the pod is gone", change: with(unseen, pod(func(p *state.Pod) { p.Terminating = true }))},
		{name: "a claim being deleted", change: with(unseen, volume(func(v *state.Volume) { v.Terminating = true }))},
		{name: "nothing is behind the claim", change: with(unseen, volume(func(v *state.Volume) { v.Bound = false }))},
		{name: "no pod", change: with(unseen, withoutPod(1))},
		{name: "a pod without a member", change: with(unseen, gone(1))},
		{name: "empty", change: with(unseen, damaged(1, state.DamageEmpty, time.Minute)), want: one},
		{name: "what an earlier member has left", change: with(unseen, damaged(1, state.DamageOutdated, time.Minute)), want: one},
		{name: "411: its own of an earlier time", change: with(unseen, damaged(1, state.DamageOlder, time.Minute)), want: one},
		{name: "80: somebody else's", change: with(holding(1, "m1"), damaged(1, state.DamageForeign, time.Minute)), want: one},
		{name: "80: the pod has told, and goes", change: with(holding(1, "m1"), damaged(1, state.DamageForeign, time.Minute), pod(func(p *state.Pod) { p.Terminating = true })), want: one},
		{name: "79: what cannot be read may be anybody's", change: with(unseen, damaged(1, state.DamageCorrupt, time.Minute))},
	})
	s := healthy(3)
	with(unseen, holding(2, "m2"), damaged(1, state.DamageForeign, time.Minute))(s)
	want := action.RecordHoldings{Volumes: []action.Holding{{Claim: "data-orders-1", UID: "uid-data-orders-1", Member: "orders-1", PodUID: "pod-m1", Holds: state.HoldsForeign}}}
	if a := volumes.Holdings(s).Step.Action; !reflect.DeepEqual(a, want) {
		t.Errorf("%+v", a)
	}
	s = healthy(3)
	with(wanting(4), joining("m3", 0), withPod, func(s *situation.Situation) {
		s.Observed.Volumes = append(memberVolumes(3), memberVolume("data-orders-3", 8<<30))
		s.Observed.Volumes[3].Holds = ""
	})(s)
	if v := volumes.Holdings(s); v.Step == nil || v.Step.Action.(action.RecordHoldings).Volumes[0].Holds != "m3" {
		t.Errorf("a learner's is not written down: %+v", v)
	}
}

// I6, I7: whatever would delete a volume leaves one alone that no member was seen on.
func TestOnlyAKnownVolumeIsDeleted(t *testing.T) {
	for _, holds := range []string{"", state.HoldsForeign} {
		retired := func(s *situation.Situation) {
			s.Observed.Record.Retired = map[string]string{"orders-3": "m3"}
			s.Observed.Volumes = []state.Volume{memberVolume(naming.Claim("", "orders-3"), 8<<30)}
			s.Observed.Volumes[0].Holds = holds
		}
		deleted := with(asksState(schema.StateDeleted), stopped, func(s *situation.Situation) {
			s.Observed.Set, s.Observed.Objects, s.Observed.Record.Deleted, s.Desired.Spec.Deletion.Volumes = nil, nil, true, schema.VolumesDelete
		})
		for name, c := range map[string]struct {
			rule   func(*situation.Situation) verdict.Verdict
			change mutation
		}{
			"its place is taken again": {grow, wanting(5)},
			"Git wants none kept":      {remove, func(s *situation.Situation) { s.Desired.Spec.Storage.RemovedVolumes = schema.VolumesDelete }},
			"the cluster goes":         {deletion, deleted},
		} {
			s := healthy(3)
			with(retired, c.change)(s)
			if v := c.rule(s); v.Step != nil && reflect.TypeOf(v.Step.Action) == reflect.TypeFor[action.DeleteVolume]() {
				t.Errorf("%s, %q: %s", name, holds, v.Step.Action)
			}
			s.Observed.Volumes[0].Holds = "m3"
			if v := c.rule(s); v.Step == nil || reflect.TypeOf(v.Step.Action) != reflect.TypeFor[action.DeleteVolume]() {
				t.Errorf("%s: what is known is kept: %+v", name, v)
			}
		}
	}
}

// 43: a learner that was never seen to run has another try on its volume, and after
// three of them a person has a look at that.
func TestAnUnknownVolumeGetsThreeTries(t *testing.T) {
	tries := func(times int) mutation {
		return with(wanting(4), func(s *situation.Situation) {
			s.Observed.Record.Retired = map[string]string{"orders-3": "m3"}
			s.Observed.Record.FailedJoin = &state.FailedJoin{Member: "orders-3", At: noon.Add(-24 * time.Hour), Times: times}
			s.Observed.Volumes = []state.Volume{memberVolume(naming.Claim("", "orders-3"), 8<<30)}
			s.Observed.Volumes[0].Holds = ""
		})
	}
	checkRule(t, grow, []ruleCase{
		{name: "the second", change: tries(1), want: "write down that orders-3 joins"},
		{name: "the third", change: tries(2), want: "write down that orders-3 joins"},
		{name: "no fourth", change: tries(3), want: "Refused: volume claim data-orders-3 exists, but no member of this cluster was seen on it: it may be the only copy; set the reclaim policy of its PersistentVolume to Retain, so that the data stays, and delete the claim"},
		{name: "383: what was made since the last try is new", change: with(tries(3), func(s *situation.Situation) { s.Observed.Volumes[0].Created = noon.Add(-time.Hour) }), want: "write down that orders-3 joins"},
		{name: "another one's tries do not count", change: with(tries(3), func(s *situation.Situation) { s.Observed.Record.FailedJoin.Member = "orders-4" }), want: "write down that orders-3 joins"},
		{name: "nothing is behind the claim", change: with(tries(3), func(s *situation.Situation) { s.Observed.Volumes[0].Bound = false }), want: "delete the volume claim data-orders-3"},
	})
}
