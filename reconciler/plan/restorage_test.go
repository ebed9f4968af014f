package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// unboundVolumes are claims that have got no volumes.
func unboundVolumes(s *situation.Situation) {
	for i := range s.Observed.Volumes {
		s.Observed.Volumes[i].Bound, s.Observed.Volumes[i].Capacity, s.Observed.Volumes[i].Holds = false, 0, ""
	}
}

func TestRestorage(t *testing.T) {
	// unbound is a new cluster whose claims, of class "fast", have no volumes.
	unbound := with(unformed, stored, newPods(time.Minute, "not scheduled: unbound claims"), unboundVolumes)
	noSet := func(s *situation.Situation) { s.Observed.Set, s.Observed.Pods = nil, nil }
	other := with(unbound, wantsClass(""))
	const anew = "delete StatefulSet orders: the cluster has never formed, no volume was ever made for it"
	checkRule(t, bootstrap, []ruleCase{
		{name: "354: as Git says, it forms", change: unbound, want: "Waiting: the cluster is forming"},
		{name: "354: another class", change: other, want: anew},
		{name: "354: another class, by replacement", change: with(unbound, wantsClass(schema.ClassChangeReplace)), want: anew},
		{name: "354: another size", change: with(unbound, wants("4Gi")), want: anew},
		{name: "354: which nobody names", change: with(unbound, func(s *situation.Situation) { s.Desired.Spec.Storage.StorageClassName = nil }), want: anew},
		{name: "354: not where a volume exists", change: with(other, ofVolume(1, func(v *state.Volume) { v.Bound = true })), want: "Waiting: the cluster is forming"},
		{name: "354: nor where a claim is nobody's", change: with(other, ofVolume(1, func(v *state.Volume) { v.Member = "" })), want: "Waiting: the cluster is forming"},
		{name: "354: nor where a member has run", change: with(other, func(s *situation.Situation) { podAt(s, 0).Ran = true }), want: "Waiting: the cluster is forming"},
		{name: "354: nor before a claim exists", change: with(other, func(s *situation.Situation) { s.Observed.Volumes = nil }), want: "Waiting: the cluster is forming"},
		{name: "354: until it is gone", change: with(other, func(s *situation.Situation) { s.Observed.Set.Terminating = true }), want: "Waiting: the StatefulSet is being deleted"},
		{name: "354: then its claims", change: with(other, noSet), want: "delete the volume claim data-orders-0: there is no volume behind it, and Git now asks for another one"},
		{name: "354: until they are gone", change: with(other, noSet, ofVolume(0, func(v *state.Volume) { v.Terminating = true })), want: "Waiting: volume claim data-orders-0, behind which there is no volume, is being deleted"},
		{name: "354: then it begins anew", change: with(other, noSet, func(s *situation.Situation) { s.Observed.Volumes = nil }), want: "create 3 members"},
		{name: "354: also on claims that Git asks for", change: with(unbound, noSet), want: "create 3 members"},
	})
	restoring := on(func(r *state.Record) { r.Recovering = &state.Recovering{Member: "orders-0"} })
	checkRule(t, bootstrap, []ruleCase{
		{name: "a restore whose volume never came", change: with(other, restoring), want: anew},
		{name: "then its claim", change: with(other, restoring, noSet), want: "delete the volume claim data-orders-0"},
		{name: "then it is made again, while the Job waits for it", change: with(other, restoring, noSet, func(s *situation.Situation) {
			s.Observed.Volumes, s.Observed.Restore.State = nil, state.RestoreRunning
			s.Observed.Set = &state.Set{Template: "a", ClaimSize: 8 << 30, ClaimClass: "slow", Settled: true}
		}), want: "create the volume claim of orders-0"},
	})
}
