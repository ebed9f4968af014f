package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/schema"
)

// holding changes what stands on the claim of an ordinal.
func holding(ordinal int32, holds string) mutation {
	return func(s *situation) {
		if s.o.Volumes == nil {
			s.o.Volumes = memberVolumes(s.o.Set.Replicas)
		}
		s.o.volume(podName("orders", ordinal)).Holds = holds
	}
}

func TestHoldings(t *testing.T) {
	unseen := holding(1, "")
	volume := func(change func(*Volume)) mutation {
		return func(s *situation) { change(s.o.volume("orders-1")) }
	}
	pod := func(change func(*Pod)) mutation { return func(s *situation) { change(s.pod(1)) } }
	const one = "record whose data volume claim data-orders-1 holds"
	checkRule(t, holdings, []ruleCase{
		{name: "17: a quiet cluster passes", change: func(s *situation) { s.o.Volumes = memberVolumes(3) }},
		{name: "who does not know its members knows nobody's data", change: with(unformed, func(s *situation) { s.o.Volumes = memberVolumes(3); s.o.Volumes[1].Holds = "" })},
		{name: "without a StatefulSet nobody says whose pods they are", change: with(unseen, func(s *situation) { s.o.Set = nil })},
		{name: "84: without a quorum nothing is noted", change: with(unseen, damaged(1, DamageEmpty, time.Minute), func(s *situation) { s.o.round().Problem = "timeout" })},
		{name: "nobody was asked yet", change: with(unseen, damaged(1, DamageEmpty, time.Minute), func(s *situation) { s.o.Rounds = nil })},
		{name: "a member runs on it", change: unseen, want: one},
		{name: "all of them at once", change: with(unseen, holding(2, "")), want: "record whose data 2 volume claims hold"},
		{name: "another ID than the one before", change: holding(1, "m9"), want: one},
		{name: "right after all", change: holding(1, HoldsForeign), want: one},
		{name: "one that does not answer", change: with(unseen, down(1))},
		{name: "one whose etcd has not run in this pod", change: with(unseen, pod(func(p *Pod) { p.Ran = false }))},
		{name: "one that the list has under another name", change: with(unseen, func(s *situation) { s.member(1).Name = "orders-7" })},
		{name: "the claim may be another one when the pod is gone", change: with(unseen, pod(func(p *Pod) { p.Terminating = true }))},
		{name: "a claim on its way out", change: with(unseen, volume(func(v *Volume) { v.Terminating = true }))},
		{name: "nothing is behind the claim", change: with(unseen, volume(func(v *Volume) { v.Bound = false }))},
		{name: "no pod", change: with(unseen, withoutPod(1))},
		{name: "a pod of nobody", change: with(unseen, gone(1))},
		{name: "empty", change: with(unseen, damaged(1, DamageEmpty, time.Minute)), want: one},
		{name: "what an earlier member has left", change: with(unseen, damaged(1, DamageOutdated, time.Minute)), want: one},
		{name: "80: somebody else's", change: with(holding(1, "m1"), damaged(1, DamageForeign, time.Minute)), want: one},
		{name: "80: the pod has told, and goes", change: with(holding(1, "m1"), damaged(1, DamageForeign, time.Minute), pod(func(p *Pod) { p.Terminating = true })), want: one},
		{name: "79: what cannot be read may be anybody's", change: with(unseen, damaged(1, DamageCorrupt, time.Minute))},
	})
	s := healthy(3)
	with(unseen, holding(2, "m2"), damaged(1, DamageForeign, time.Minute))(s)
	want := RecordHoldings{Volumes: []Holding{{Claim: "data-orders-1", UID: "uid-data-orders-1", Member: "orders-1", PodUID: "pod-m1", Holds: HoldsForeign}}}
	if a := holdings(s).step.Action; !reflect.DeepEqual(a, want) {
		t.Errorf("%+v", a)
	}
	s = healthy(3)
	with(wanting(4), joining("m3", 0), withPod, func(s *situation) {
		s.o.Volumes = append(memberVolumes(3), memberVolume("data-orders-3", 8<<30))
		s.o.Volumes[3].Holds = ""
	})(s)
	if v := holdings(s); v.step == nil || v.step.Action.(RecordHoldings).Volumes[0].Holds != "m3" {
		t.Errorf("a learner's is not written down: %+v", v)
	}
}

// I6, I7: whatever would delete a volume leaves one alone that no member was seen on.
func TestOnlyAKnownVolumeIsDeleted(t *testing.T) {
	for _, holds := range []string{"", HoldsForeign} {
		retired := func(s *situation) {
			s.o.Record.Retired = map[string]string{"orders-3": "m3"}
			s.o.Volumes = []Volume{memberVolume(claimOf("orders-3"), 8<<30)}
			s.o.Volumes[0].Holds = holds
		}
		deleted := with(state(schema.StateDeleted), stopped, func(s *situation) {
			s.o.Set, s.o.Objects, s.o.Record.Deleted, s.d.Spec.Deletion.Volumes = nil, nil, true, schema.VolumesDelete
		})
		for name, c := range map[string]struct {
			rule   func(*situation) verdict
			change mutation
		}{
			"its place is taken again": {grow, wanting(5)},
			"Git wants none kept":      {remove, func(s *situation) { s.d.Spec.Storage.RemovedVolumes = schema.VolumesDelete }},
			"the cluster goes":         {deletion, deleted},
		} {
			s := healthy(3)
			with(retired, c.change)(s)
			if v := c.rule(s); v.step != nil && reflect.TypeOf(v.step.Action) == reflect.TypeFor[DeleteVolume]() {
				t.Errorf("%s, %q: %s", name, holds, v.step.Action)
			}
			s.o.Volumes[0].Holds = "m3"
			if v := c.rule(s); v.step == nil || reflect.TypeOf(v.step.Action) != reflect.TypeFor[DeleteVolume]() {
				t.Errorf("%s: what is known is kept: %+v", name, v)
			}
		}
	}
}

// 43: a learner that was never seen to run has another try on its volume, and after
// three of them a person has a look at that.
func TestAnUnknownVolumeGetsThreeTries(t *testing.T) {
	tries := func(times int) mutation {
		return with(wanting(4), func(s *situation) {
			s.o.Record.Retired = map[string]string{"orders-3": "m3"}
			s.o.Record.FailedJoin = &FailedJoin{Member: "orders-3", At: noon.Add(-24 * time.Hour), Times: times}
			s.o.Volumes = []Volume{memberVolume(claimOf("orders-3"), 8<<30)}
			s.o.Volumes[0].Holds = ""
		})
	}
	checkRule(t, grow, []ruleCase{
		{name: "the second", change: tries(1), want: "write down that orders-3 joins"},
		{name: "the third", change: tries(2), want: "write down that orders-3 joins"},
		{name: "no fourth", change: tries(3), want: "Refused: volume claim data-orders-3 exists, but nobody has seen a member of this cluster on it: it may be somebody's only copy; delete the claim if its data is not needed"},
		{name: "another one's tries do not count", change: with(tries(3), func(s *situation) { s.o.Record.FailedJoin.Member = "orders-4" }), want: "write down that orders-3 joins"},
		{name: "nothing is behind the claim", change: with(tries(3), func(s *situation) { s.o.Volumes[0].Bound = false }), want: "delete the volume claim data-orders-3"},
	})
}
