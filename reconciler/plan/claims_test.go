package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// claimed gives each member a claim, and changes some of them.
func claimed(change func(*state.Volume), members ...string) mutation {
	return func(s *situation.Situation) {
		s.Observed.Volumes = memberVolumes(int32(len(s.Observed.Record.Members)))
		for _, m := range members {
			change(s.Observed.Volume(m))
		}
	}
}

func deletedClaim(v *state.Volume) { v.Terminating = true }

func TestClaims(t *testing.T) {
	hibernated := func(s *situation.Situation) { s.Desired.Spec.State = schema.StateHibernated }
	replicas := func(n int32) mutation { return func(s *situation.Situation) { s.Desired.Spec.Replicas = n } }
	checkRule(t, volumes.Claims, []ruleCase{
		{name: "claims that stay", change: claimed(nil)},
		{name: "an unformed one has nothing to lose", change: unformed},
		{name: "no StatefulSet", change: with(claimed(deletedClaim, "orders-1"), func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "277: told at rest", change: claimed(deletedClaim, "orders-1"), want: "Unhealthy: volume claim data-orders-1 is being deleted: the data of orders-1 goes with its pod; nothing that stops a member is begun; take a backup now; then delete the pod of orders-1"},
		{name: "277: before a roll", change: with(claimed(deletedClaim, "orders-1"), commit(newVersion)), want: "data-orders-1"},
		{name: "278: all of them", change: with(claimed(deletedClaim, "orders-0", "orders-1", "orders-2"), hibernated), want: "data-orders-0 is being deleted: the data of orders-0 goes with its pod, and 2 members more; nothing"},
		{name: "278: one after the other", change: claimed(deletedClaim, "orders-0", "orders-2"), want: "go on with the next one only when all members are healthy again"},
		{name: "399: not while the others have no quorum", change: with(claimed(deletedClaim, "orders-1"), down(2), leads(0)), want: "nothing that stops a member is begun; keep that pod, and bring orders-2 back first: without orders-2 there is no quorum but with the data of orders-1"},
		{name: "399: nor while one of them has no pod", change: with(claimed(deletedClaim, "orders-1"), down(2), leads(0), withoutPod(2)), want: "keep that pod, and bring orders-2 back first"},
		{name: "399: nor while it is not known how they are", change: with(claimed(deletedClaim, "orders-1"), unready(2), func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "keep that pod, and bring orders-2 back first"},
		{name: "399: of five the others have one", size: 5, change: with(claimed(deletedClaim, "orders-1"), down(2), leads(0)), want: "take a backup now; then delete the pod of orders-1"},
		{name: "277: of one or two, others get the data first", size: 1, change: claimed(deletedClaim, "orders-0"), want: "then commit spec.replicas: 3"},
		{name: "277: which is done", size: 1, change: with(claimed(deletedClaim, "orders-0"), replicas(3))},
		{name: "277: but not in a roll", size: 1, change: with(claimed(deletedClaim, "orders-0"), replicas(3), commit(newVersion)), want: "data-orders-0"},
		{name: "279: another one leaves", change: with(claimed(deletedClaim, "orders-0"), replicas(1)), want: "data-orders-0"},
		{name: "279: the one whose claim goes", change: with(claimed(deletedClaim, "orders-2"), replicas(2))},
		{name: "279: also in a roll, before which it leaves", change: with(claimed(deletedClaim, "orders-2"), replicas(2), commit(newVersion), begun)},
		{name: "279: not while a roll mends another one first", change: with(claimed(deletedClaim, "orders-2"), commit(newVersion), begun, rolled(newVersion, 1), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(1), leads(0), replicas(2)), want: "data-orders-2"},
		{name: "279: not to sleep", change: with(claimed(deletedClaim, "orders-2"), replicas(2), hibernated), want: "data-orders-2"},
		{name: "280: a volume that is lost", change: claimed(func(v *state.Volume) { v.Bound, v.Trouble = false, "the volume behind the claim is lost" }, "orders-1"), want: "has lost its volume (the volume behind the claim is lost)"},
		{name: "280: one that cannot grow is not", change: claimed(func(v *state.Volume) { v.Trouble = "ControllerResizeInfeasible" }, "orders-1")},
		{name: "280: one that is not bound yet is not", change: claimed(func(v *state.Volume) { v.Bound = false }, "orders-1")},
		{name: "280: a claim that is gone", change: func(s *situation.Situation) { podAt(s, 1).Unclaimed = true }, want: "volume claim data-orders-1 does not exist any more"},
		{name: "a pod that never ran has no data", change: with(claimed(deletedClaim, "orders-1"), func(s *situation.Situation) { podAt(s, 1).Ran = false })},
		{name: "no pod", change: with(claimed(deletedClaim, "orders-1"), withoutPod(1))},
		{name: "a claim of no member", change: with(claimed(deletedClaim, "orders-2"), func(s *situation.Situation) {
			delete(s.Observed.Record.Members, "orders-2")
			s.Desired.Spec.Replicas = 2
		})},
	})
}

// 279, 281: the rules above that one that stop members heed claims, too.
func TestWhatStopsMembersHeedsClaims(t *testing.T) {
	record := func(f func(*state.Record)) mutation { return func(s *situation.Situation) { f(s.Observed.Record) } }
	leaving := record(func(r *state.Record) {
		r.Leaving = &state.Leaving{Member: "orders-2", ID: "m2", Why: "Git wants fewer"}
	})
	fewer := func(s *situation.Situation) { s.Desired.Spec.Replicas = 2 }
	checkRule(t, membership, []ruleCase{
		{name: "279: a removal that has begun", change: with(claimed(deletedClaim, "orders-0"), leaving, fewer), want: "Unhealthy: volume claim data-orders-0 is being deleted"},
		{name: "279: of the very member", change: with(claimed(deletedClaim, "orders-2"), leaving, fewer), want: "move the leader orders-2"},
	})
	asleep := record(func(r *state.Record) { r.Hibernated = true })
	wanted := func(s *situation.Situation) { s.Desired.Spec.State = schema.StateHibernated }
	checkRule(t, hibernated, []ruleCase{
		{name: "278: a hibernation that has begun", change: with(claimed(deletedClaim, "orders-0"), asleep, wanted), want: "set spec.state to Running again"},
		{name: "278: claims that stay", change: with(claimed(nil), asleep, wanted), want: "resize the StatefulSet 3 → 0"},
		{name: "278: and it wakes", change: with(claimed(deletedClaim, "orders-0"), asleep), want: "wake"},
	})
	recovered := func(v func(*state.Volume)) mutation {
		return with(leftAlone(0), record(func(r *state.Record) {
			r.Recovering = &state.Recovering{OneShot: "x", ClusterID: "c1", NewClusterID: "c2", Member: "orders-0", Since: noon}
		}), func(s *situation.Situation) { v(s.Observed.Volume("orders-0")) })
	}
	checkRule(t, recovery.Run, []ruleCase{
		{name: "281: what a recovery continues from", change: recovered(deletedClaim), want: "Unhealthy: the volume claim of orders-0, which the cluster is recovered from, is gone or being deleted, and its data goes with its pod"},
		{name: "281: a claim that stays", change: recovered(func(*state.Volume) {}), want: "resize the StatefulSet 3 → 0"},
	})
	asked := func(s *situation.Situation) { s.Desired.Spec.State = schema.StateDeleted }
	wipe := func(s *situation.Situation) { s.Desired.Spec.Deletion.Volumes = schema.VolumesDelete }
	checkRule(t, deletion, []ruleCase{
		{name: "278: volumes that are to be kept", change: with(claimed(deletedClaim, "orders-0"), asked), want: "Unhealthy: volume claim data-orders-0 is being deleted"},
		{name: "278: volumes that go anyhow", change: with(claimed(deletedClaim, "orders-0"), asked, wipe), want: "back up"},
	})
}
