package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// surging has the only member replaced by way of a second one.
func surging(s *situation.Situation) {
	s.Desired.Spec.Replicas, s.Desired.Spec.Upgrade.MaxSurge = 1, 1
}

// drains has somebody cordon the node of member 0.
func drains(s *situation.Situation) {
	podAt(s, 0).Drained, podAt(s, 0).DrainedBy = "n1", "is cordoned"
}

// second has the only member of two that Git wants be orders-0, where orders-1 is as Git says.
func second(changes ...mutation) mutation {
	return with(append([]mutation{surging, commit(newVersion), begun, rolled(newVersion, 1), leads(0)}, changes...)...)
}

// comparedNow has the members' data compared in this pass.
func comparedNow(s *situation.Situation) { s.Observed.Round().Deep = true }

// 552: a cluster that is not recorded yet has no second member.
func TestNothingSurgesBeforeThereIsARecord(t *testing.T) {
	spec := schema.ClusterSpec{Replicas: 1, Upgrade: schema.UpgradeSpec{MaxSurge: 1}}
	if surge.Begun(spec, nil) || surge.Begun(spec, &state.Record{}) || !surge.Begun(spec, &state.Record{ClusterID: "c", Members: map[string]string{"orders-0": "a", "orders-1": "b"}}) {
		t.Error("begun without a record, or not with two members")
	}
}

func TestSurge(t *testing.T) {
	const joins, leaves = "write down that orders-1 joins: orders-0 gets etcd 3.6.16; orders-1 serves meanwhile", "write down that orders-0 leaves: orders-0 gets etcd 3.6.16; orders-1 serves by now"
	started := with(surging, commit(newVersion), begun)
	checkRule(t, surges, []ruleCase{
		{name: "552: what Git says passes", size: 1, change: surging},
		{name: "552: without the field it restarts in place", size: 1, change: with(commit(newVersion), begun)},
		{name: "552: of three members one restarts in place", change: with(started, wanting(3))},
		{name: "552: a second one joins", size: 1, change: started, want: joins},
		{name: "552: for another template of the same release", size: 1, change: with(surging, commit(oldVersion), begun), want: "write down that orders-1 joins: orders-0 gets another template; orders-1 serves meanwhile"},
		{name: "552: what is left of the last one goes first", size: 1, change: with(started, func(s *situation.Situation) {
			v := memberVolume("data-orders-1", 8<<30)
			s.Observed.Volumes, s.Observed.Record.Retired = []state.Volume{v}, map[string]string{"orders-1": "m1"}
		}), want: "delete the volume claim data-orders-1"},
		{name: "552: and then the first one leaves", size: 2, change: second(comparedNow), want: leaves},
		{name: "558: not before their data was compared", size: 2, change: second(func(s *situation.Situation) { s.Observed.Rounds[0].Deep, s.Observed.Rounds[1].Deep = false, false }), want: "Confirm: the members' data has not been compared yet"},
		{name: "558: nor while the second one has just crashed", size: 2, change: second(comparedNow, func(s *situation.Situation) {
			podAt(s, 1).Crashed, podAt(s, 1).ReadySince = true, noon.Add(-time.Second)
		}), want: "Waiting: orders-1 is back after a crash and soaks for 1m0s"},
		{name: "558: one whose pod is not there has not", size: 2, change: second(comparedNow, func(s *situation.Situation) {
			s.Observed.Pods = slices.DeleteFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Ordinal == 1 })
		}), want: leaves},
		{name: "554: another commit meanwhile begins again", size: 2, change: with(second(comparedNow), func(s *situation.Situation) { s.Desired.Template = "c" })},
		{name: "555: its node is drained", size: 1, change: with(surging, drains), want: "write down that orders-1 joins: orders-0 is to leave node n1, which is cordoned; orders-1 serves meanwhile"},
		{name: "555: and another one is there", size: 2, change: with(surging, drains, comparedNow), want: "write down that orders-0 leaves: orders-0 is to leave node n1"},
		{name: "555: without the field it stays", size: 1, change: drains},
		{name: "554: it is to have another volume", size: 1, change: with(surging, misplacedAt0), want: "write down that orders-1 joins: orders-0 is to have a volume of class fast"},
		{name: "554: one that goes has it no more", size: 1, change: with(surging, misplacedAt0, func(s *situation.Situation) { s.Observed.Volumes[0].Terminating = true })},
		{name: "554: nor one that is not there yet", size: 1, change: with(surging, misplacedAt0, func(s *situation.Situation) { s.Observed.Volumes[0].Bound = false })},
		{name: "554: nor one of that class", size: 1, change: with(surging, misplacedAt0, func(s *situation.Situation) { s.Observed.Volumes[0].Class = "fast" })},
		{name: "554: nor where Git refuses that", size: 1, change: with(surging, misplacedAt0, func(s *situation.Situation) { s.Desired.Spec.Storage.ClassChange = "" })},
		{name: "554: nor before the StatefulSet asks for it", size: 1, change: with(surging, misplacedAt0, func(s *situation.Situation) { s.Observed.Set.ClaimClass = "" })},
		{name: "I15: one that does not serve restarts in place", size: 1, change: with(started, down(0))},
		{name: "I15: one that is not ready", size: 1, change: with(started, unready(0))},
		{name: "I15: one that shuts down", size: 1, change: with(started, func(s *situation.Situation) { podAt(s, 0).Terminating = true })},
		{name: "I15: one that does not answer", size: 1, change: with(started, func(s *situation.Situation) { memberAt(s, 0).Problem = "timeout" })},
		{name: "one without a pod", size: 1, change: with(started, func(s *situation.Situation) { s.Observed.Pods = nil })},
		{name: "a cluster that is to sleep", size: 1, change: with(started, drains, func(s *situation.Situation) { s.Desired.Spec.State = schema.StateHibernated })},
		{name: "one that is to run says so", size: 1, change: with(started, func(s *situation.Situation) { s.Desired.Spec.State = schema.StateRunning }), want: joins},
		{name: "one that sleeps", size: 1, change: with(started, func(s *situation.Situation) { s.Observed.Record.Hibernated = true })},
		{name: "one that is deleted", size: 1, change: with(started, func(s *situation.Situation) { s.Observed.Record.Deleted = true })},
		{name: "one that is recovered", size: 1, change: with(started, func(s *situation.Situation) { s.Observed.Record.Recovering = &state.Recovering{} })},
		{name: "one of three that shrinks to one", size: 3, change: started},
		{name: "I14: down a minor it goes in place", size: 1, change: with(runs("3.6.16"), surging, commit(oldVersion), begun)},
		{name: "I14: while etcd goes down, too", size: 1, change: with(started, looks(func(r *state.Round) { r.Downgrading = true }))},
		{name: "I14: to 3.7 where 3.5 has run it goes in place", size: 1, change: with(runs("3.6.16"), bornOn("3.5"), flushedAll, surging, commit("3.7.3"), begun)},
		{name: "I14: where it is unknown what has run, too", size: 1, change: with(runs("3.6.16"), bornOn(""), flushedAll, surging, commit("3.7.3"), begun)},
		{name: "I14: the stop before that, too", size: 1, change: with(runs("3.6.16"), bornOn("3.5"), surging, commit("3.7.3"), begun)},
		{name: "I14: where nothing below 3.6 has run there is nothing to fear", size: 1, change: with(runs("3.6.16"), bornOn("3.6"), surging, commit("3.7.3"), begun), want: "orders-0 gets etcd 3.7.3"},
		{name: "I14: on 3.7 there is not either", size: 1, change: with(runs("3.7.2"), bornOn("3.5"), surging, commit("3.7.3"), begun), want: "orders-0 gets etcd 3.7.3"},
		{name: "I22: members that listen to both go in place", size: 1, change: with(started, func(s *situation.Situation) {
			s.Observed.Transport = state.Transport{Own: schema.TLSDisabled, Also: schema.TLSManaged}
		})},
		{name: "I22: those that change the mode, too", size: 1, change: with(started, func(s *situation.Situation) {
			s.Observed.Transport.Own, s.Desired.Spec.TLS.Mode = schema.TLSDisabled, schema.TLSManaged
		})},
		{name: "I22: those that were moved, too", size: 1, change: with(started, func(s *situation.Situation) { s.Observed.Record.PeerURLs = map[string][]string{"m0": {"https://x"}} })},
	})
}

// misplacedAt0 has the volume of member 0 be of another class than Git asks for.
func misplacedAt0(s *situation.Situation) {
	class := "fast"
	s.Desired.Spec.Storage.StorageClassName, s.Desired.Spec.Storage.ClassChange = &class, schema.ClassChangeReplace
	s.Observed.Set.ClaimClass = class
	v := memberVolume("data-orders-0", 8<<30)
	v.Class, v.Bound = "standard", true
	s.Observed.Volumes = []state.Volume{v}
}

// flushedAll has every member's log flushed.
func flushedAll(s *situation.Situation) {
	s.Observed.Record.Flushed = map[string]string{}
	for name, id := range s.Observed.Record.Members {
		s.Observed.Record.Flushed[name] = id
	}
}

// joinsSecond has orders-1 be a learner that has run for a while, under the template that Git wants.
func joinsSecond(ran time.Duration) mutation {
	return with(surging, commit(newVersion), begun, rolled(newVersion, 1), func(s *situation.Situation) {
		s.Desired.Spec.Upgrade.Soak = seconds(30)
		delete(s.Observed.Record.Members, "orders-1")
		s.Observed.Record.Joining = &state.Joining{Member: "orders-1", ID: "m1", Since: noon.Add(-time.Minute)}
		podAt(s, 1).RunsSince = noon.Add(-ran)
		for i := range s.Observed.Rounds {
			s.Observed.Rounds[i].Member("orders-1").Learner = true
		}
	}, leads(0))
}

func TestTheSecondMemberProvesItselfAsALearner(t *testing.T) {
	checkRule(t, membership, []ruleCase{
		{name: "558: one that has run for the soak time votes", size: 2, change: joinsSecond(time.Minute), want: "promote orders-1"},
		{name: "558: one that has not does not", size: 2, change: joinsSecond(time.Second), want: "Waiting: orders-1 joins: it soaks for 30s"},
		{name: "558: nor one that does not run", size: 2, change: with(joinsSecond(time.Minute), func(s *situation.Situation) { podAt(s, 1).RunsSince = time.Time{} }), want: "it soaks for 30s"},
		{name: "558: nor for a minute after a crash", size: 2, change: with(joinsSecond(45*time.Second), func(s *situation.Situation) { podAt(s, 1).Crashed = true }), want: "it soaks for 1m0s"},
		{name: "558: the time for that comes on top of that to catch up", size: 2, change: with(joinsSecond(time.Second), func(s *situation.Situation) {
			s.Observed.Record.Joining.Since = noon.Add(-10*time.Minute - 10*time.Second)
		}), want: "it soaks for 30s"},
		{name: "558: and ends", size: 2, change: with(joinsSecond(time.Second), func(s *situation.Situation) {
			s.Observed.Record.Joining.Since = noon.Add(-10*time.Minute - 30*time.Second)
		}), want: "remove the learner orders-1"},
		{name: "554: a commit that is taken back takes it back", size: 2, change: with(joinsSecond(time.Minute), func(s *situation.Situation) { s.Desired.Template, s.Desired.Spec.Version = "a", oldVersion }), want: "remove the learner orders-1: Git wants 1 member"},
	})
}

func TestTheFirstMemberLeavesForTheSecond(t *testing.T) {
	leaving0 := second(func(s *situation.Situation) {
		s.Observed.Record.Leaving = &state.Leaving{Member: "orders-0", ID: "m0", Why: "surge", Replace: true, Serving: true, Since: noon.Add(-time.Minute)}
	})
	back := func(s *situation.Situation) { s.Desired.Template, s.Desired.Spec.Version = "a", oldVersion }
	checkRule(t, membership, []ruleCase{
		{name: "552: the leadership first", size: 2, change: leaving0, want: "move the leader orders-0 → orders-1"},
		{name: "552: and then it goes", size: 2, change: with(leaving0, leads(1)), want: "remove orders-0 from the members: surge"},
		{name: "558: clients are led away before", size: 2, change: with(leaving0, leads(1), func(s *situation.Situation) { s.Observed.Record.Leaving.Since = noon.Add(-time.Second) }), want: "Waiting: clients are led to the member that stays, and orders-0 leaves then"},
		{name: "558: without the field nobody leads them", size: 2, change: with(leaving0, leads(1), func(s *situation.Situation) {
			s.Desired.Spec.Upgrade.MaxSurge, s.Observed.Record.Leaving.Since = 0, noon.Add(-time.Second)
		}), want: "remove orders-0"},
		{name: "554: a commit that is taken back keeps it", size: 2, change: with(leaving0, back), want: "keep orders-0 after all"},
		{name: "554: with the field, too", size: 2, change: with(leaving0, back, func(s *situation.Situation) { s.Desired.Spec.Upgrade.MaxSurge = 0 }), want: "keep orders-0 after all"},
		{name: "554: so does one that goes back to another release of the old minor, which the second one would end", size: 2, change: with(leaving0, leads(1), func(s *situation.Situation) {
			s.Desired.Template, s.Desired.Spec.Version = "c", "3.5.34"
		}), want: "keep orders-0 after all"},
		{name: "554: not one of more members", size: 3, change: with(leaving0, back, wanting(3)), want: "move the leader"},
		{name: "554: nor one that is lost", size: 2, change: with(leaving0, back, func(s *situation.Situation) { s.Observed.Record.Leaving.Serving = false }), want: "it was taken for lost"},
		{name: "554: nor one that Git does not want", size: 2, change: with(leaving0, back, func(s *situation.Situation) {
			s.Observed.Record.Leaving.Member, s.Observed.Record.Leaving.ID = "orders-1", "m1"
		}), want: "remove orders-1"},
	})
}

// 277: the first member stays while the claim of the second one is being deleted, which would have
// the only copy of the data go with a pod; the second one leaves instead, and it begins again.
func TestTheFirstMemberStaysWhileTheClaimOfTheSecondGoes(t *testing.T) {
	going := claimed(deletedClaim, "orders-1")
	leaves := func(s *situation.Situation) {
		s.Observed.Record.Leaving = &state.Leaving{Member: "orders-0", ID: "m0", Why: "surge", Replace: true, Serving: true, Asked: true, Since: noon.Add(-time.Minute)}
	}
	all := func(s *situation.Situation) verdict.Verdict { return first(table(), s) }
	skips := func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }
	checkRule(t, all, []ruleCase{
		{name: "it stays", size: 2, change: second(going, leaves, skips, leads(1)), want: "keep orders-0 after all"},
		{name: "so it does where that is gone by force", size: 2, change: second(leaves, skips, leads(1), func(s *situation.Situation) { podAt(s, 1).Unclaimed = true }), want: "keep orders-0 after all"},
		{name: "the second one leaves", size: 2, change: second(going, skips), want: "write down that orders-1 leaves: Git wants 1 member"},
		{name: "also where a node is drained", size: 2, change: with(surging, drains, going, skips), want: "write down that orders-1 leaves: Git wants 1 member"},
		{name: "not where that of the first one goes, too", size: 2, change: second(claimed(deletedClaim, "orders-0", "orders-1"), skips), want: "Unhealthy: volume claim data-orders-0 is being deleted"},
	})
}

func TestAFirstMemberComesBackAsGitWantsIt(t *testing.T) {
	left := second(leads(1), gone(0), func(s *situation.Situation) {
		s.Observed.Record.Replacing, s.Observed.Volumes = "orders-0", nil
		s.Observed.Set.Partition = 1
	})
	checkRule(t, repair, []ruleCase{
		{name: "552: the partition lets its pod have the template", size: 2, change: left, want: "set the StatefulSet's partition to 0: no member is there"},
		{name: "552: once", size: 2, change: with(left, func(s *situation.Situation) { s.Observed.Set.Partition = 0 }), want: "delete the pod of orders-0: an earlier rollout has left it"},
		{name: "554: not the template that Git wants no more", size: 2, change: with(left, func(s *situation.Situation) { s.Desired.Template, s.Desired.Spec.Version = "a", oldVersion }), want: "nothing is left of the former member", lacks: "partition"},
	})
}

// leftItsNode has the first of two members have left, whose pod is on a node that is drained.
func leftItsNode() mutation {
	return second(leads(1), gone(0), drains, func(s *situation.Situation) {
		s.Observed.Record.Replacing, s.Observed.Set.Partition = "orders-0", 0
	})
}

// ledTo has a Service lead to other members than it should.
func ledTo(service string) mutation {
	return func(s *situation.Situation) {
		s.Observed.Objects[0] = state.Object{Kind: "Service", Name: service, State: state.ObjectDrifted, Detail: ".spec.selector"}
	}
}

// leavesItsVolume is leftItsNode whose volume was deleted a while ago.
func leavesItsVolume(ago time.Duration) mutation {
	return with(leftItsNode(), func(s *situation.Situation) {
		s.Observed.Volumes[0].Terminating, s.Observed.Volumes[0].GoingSince = true, noon.Add(-ago)
	})
}

func TestADrainMayTakeThePodOfAFirstMemberThatHasLeft(t *testing.T) {
	left, going := leftItsNode(), leavesItsVolume
	const waits, deletes = "Waiting: node n1 is cordoned, and whatever drains it may evict orders-0, which is no member any more", "delete the pod of orders-0: the old volume goes when no pod uses it"
	const atOnce = "delete the pod of orders-0: an earlier rollout has left it"
	unretired := func(s *situation.Situation) { s.Observed.Record.Retired = nil }
	checkRule(t, repair, []ruleCase{
		{name: "555: its volume goes first", size: 2, change: left, want: "delete the volume claim data-orders-0"},
		{name: "555: then the drain has time", size: 2, change: going(9 * time.Second), want: waits},
		{name: "555: for so long", size: 2, change: going(10 * time.Second), want: deletes},
		{name: "555: also when nothing is known to be left on the volume", size: 2, change: with(going(0), unretired), want: waits},
		{name: "555: without a volume it goes at once", size: 2, change: with(left, func(s *situation.Situation) { s.Observed.Volumes = nil }), want: atOnce},
		{name: "555: with the volume of the next one, too", size: 2, change: with(left, unretired), want: atOnce},
		{
			name: "555: one that is as Git wants it does not stay on that node", size: 2, change: with(left, func(s *situation.Situation) { podAt(s, 0).Template, s.Observed.Volumes = "b", nil }),
			want: "delete the pod of orders-0: node n1 is cordoned, and the next member is to be on another one",
		},
		{name: "555: where it is deleted already", size: 2, change: with(going(0), func(s *situation.Situation) { podAt(s, 0).Terminating = true }), want: "Waiting: the volume of the former orders-0 is being deleted"},
	})
	checkRule(t, objects.Drift, []ruleCase{
		{name: "555: the budget lets it go, and says why", size: 2, change: with(left, budgetIs(state.ObjectDrifted)), want: "apply PodDisruptionBudget orders: it keeps the members, and orders-0 is none any more"},
		{name: "558: clients are led to the member that stays, and why is said", size: 2, change: with(left, ledTo(naming.ClientService("orders"))), want: "apply Service orders-client: clients are led to orders-1 alone while the other member comes or leaves: .spec.selector"},
		{name: "558: that is said of no other Service", size: 2, change: with(left, ledTo("orders")), want: "apply Service orders: it differs from what Git says: .spec.selector"},
		{name: "558: nor where each member serves", size: 2, change: with(second(), ledTo(naming.ClientService("orders"))), want: "apply Service orders-client: it differs from what Git says: .spec.selector"},
		{name: "555: it says that of no other object", size: 2, change: with(left, fought("Service", 0)), want: "apply Service orders: it differs from what Git says"},
	})
	for name, c := range map[string]struct {
		change mutation
		want   string
	}{
		"a member that has left a drained node":        {left, "orders-0"},
		"not without the field":                        {with(left, func(s *situation.Situation) { s.Desired.Spec.Upgrade.MaxSurge = 0 }), ""},
		"nor without a record":                         {with(left, func(s *situation.Situation) { s.Observed.Record = nil }), ""},
		"nor another member":                           {with(left, func(s *situation.Situation) { s.Observed.Record.Replacing = "orders-1" }), ""},
		"nor one without a pod":                        {with(left, func(s *situation.Situation) { s.Observed.Pods = nil }), ""},
		"nor on a node that takes pods":                {with(left, func(s *situation.Situation) { podAt(s, 0).Drained = "" }), ""},
		"nor where the members were not asked":         {with(left, func(s *situation.Situation) { s.Observed.Rounds = nil }), ""},
		"nor where they did not answer":                {with(left, func(s *situation.Situation) { s.Observed.Round().Problem = "timeout" }), ""},
		"nor one that votes, whatever the record says": {with(second(drains), func(s *situation.Situation) { s.Observed.Record.Replacing = "orders-0" }), ""},
	} {
		s := healthy(2)
		c.change(s)
		if got := surge.Evictable("orders", s.Desired.Spec, s.Observed); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestASurgeThatHasBegunWaitsForNothing(t *testing.T) {
	closed := func(s *situation.Situation) {
		s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("0 0 1 9 *", "1h", "UTC")}
	}
	full := atMost(1, neighbour("db/baskets", "it is being rolled"))
	checkRule(t, window, []ruleCase{
		{name: "559: it begins inside of a window", size: 1, change: with(surging, commit(newVersion), closed, backedUp(time.Minute)), want: "outside the maintenance window"},
		{name: "559: for a volume, too", size: 1, change: with(surging, misplacedAt0, closed), want: "outside the maintenance window"},
		{name: "559: a node is emptied at any time", size: 1, change: with(surging, drains, closed)},
		{name: "559: but not with another template", size: 1, change: with(surging, drains, commit(newVersion), closed, backedUp(time.Minute)), want: "outside the maintenance window"},
		{name: "559: with two voters it goes on", size: 2, change: second(closed)},
		{name: "559: a second member that is too many leaves at any time", size: 2, change: with(surging, closed)},
		{name: "559: without the field it does not", size: 2, change: with(wanting(1), closed), want: "outside the maintenance window"},
	})
	checkRule(t, fleet, []ruleCase{
		{name: "559: it begins in its turn", size: 1, change: with(surging, commit(newVersion), full), want: "at most 1 cluster"},
		{name: "559: for a node, too", size: 1, change: with(surging, drains, full), want: "at most 1 cluster"},
		{name: "559: with two voters it goes on", size: 2, change: with(surging, full)},
	})
	checkRule(t, start, []ruleCase{
		{name: "555: it comes back to any node", size: 1, change: with(surging, commit(newVersion), shut(0)), want: "start the roll"},
		{name: "555: without the field to its own alone", size: 1, change: with(commit(newVersion), shut(0)), want: "could not come back"},
	})
}

func TestServes(t *testing.T) {
	spec := schema.ClusterSpec{Replicas: 1, Upgrade: schema.UpgradeSpec{MaxSurge: 1}}
	record := func(members string, change func(*state.Record)) *state.Record {
		r := &state.Record{ClusterID: "c1", Members: map[string]string{}}
		for _, c := range members {
			r.Members["orders-"+string(c)] = "m" + string(c)
		}
		if change != nil {
			change(r)
		}
		return r
	}
	joins := func(r *state.Record) { r.Joining = &state.Joining{Member: "orders-1"} }
	leaves := func(name string) func(*state.Record) {
		return func(r *state.Record) { r.Leaving = &state.Leaving{Member: name} }
	}
	for name, c := range map[string]struct {
		spec   schema.ClusterSpec
		record *state.Record
		want   string
	}{
		"at rest all that are ready":              {spec, record("0", nil), ""},
		"a learner refuses clients":               {spec, record("0", joins), "orders-0"},
		"two voters serve":                        {spec, record("01", nil), ""},
		"the one that stays":                      {spec, record("01", leaves("orders-0")), "orders-1"},
		"the other one that stays":                {spec, record("01", leaves("orders-1")), "orders-0"},
		"the only one":                            {spec, record("1", func(r *state.Record) { r.Replacing = "orders-0" }), "orders-1"},
		"not of more members":                     {spec, record("012", leaves("orders-2")), ""},
		"nor of a cluster that has not formed":    {spec, record("0", func(r *state.Record) { r.ClusterID, r.Joining = "", &state.Joining{Member: "orders-1"} }), ""},
		"nor without the field":                   {schema.ClusterSpec{Replicas: 1}, record("01", leaves("orders-0")), ""},
		"nor of a cluster that is to sleep":       {schema.ClusterSpec{Replicas: 1, State: schema.StateHibernated, Upgrade: spec.Upgrade}, record("01", leaves("orders-0")), ""},
		"nor of one that is to have more members": {schema.ClusterSpec{Replicas: 3, Upgrade: spec.Upgrade}, record("0", joins), ""},
	} {
		if got := surge.Serves(c.spec, c.record); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// bornOn says which minor the cluster has run first.
func bornOn(minor string) mutation {
	return func(s *situation.Situation) { s.Observed.Record.BornOn = minor }
}
