package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
)

// Changes of the members that the tables are made of.

// leaving lets the record say that a member leaves.
func leaving(ordinal int32, replace bool) mutation {
	return func(s *situation.Situation) {
		name := naming.Member("orders", ordinal)
		s.Observed.Record.Leaving = &state.Leaving{Member: name, ID: s.Observed.Record.Members[name], Why: "Git wants fewer", Replace: replace, Since: noon}
	}
}

// joining lets the record say that orders-3 joins, since some time. With an ID it
// is a learner in the list.
func joining(id string, age time.Duration) mutation {
	return func(s *situation.Situation) {
		name := naming.Member("orders", 3)
		s.Observed.Record.Joining = &state.Joining{Member: name, ID: id, Since: noon.Add(-age)}
		if id == "" {
			return
		}
		for r := range s.Observed.Rounds {
			leads := s.Observed.Rounds[r].Leader()
			s.Observed.Rounds[r].Members = append(s.Observed.Rounds[r].Members, state.Member{
				ID: id, Name: name, Version: oldVersion, Learner: true, Leader: leads.ID, Term: 7, CommitIndex: 5000, AppliedIndex: 5000,
			})
		}
	}
}

// withPod gives orders-3 its pod, and the StatefulSet room for it.
func withPod(s *situation.Situation) {
	s.Observed.Set.Replicas = 4
	s.Observed.Pods = append(s.Observed.Pods, state.Pod{
		Name: "orders-3", Ordinal: 3, UID: "pod-orders-3", Template: s.Observed.Set.Template, Version: s.Observed.Set.Version, Ran: true, Created: noon.Add(-time.Minute),
	})
}

// gone takes a member out of every list and out of the record, as one that has
// left; its pod and its volume stay.
func gone(ordinal int32) mutation {
	return func(s *situation.Situation) {
		name := naming.Member("orders", ordinal)
		id := s.Observed.Record.Members[name]
		outlook.Unlist(s, id)
		s.Observed.Record.Retired = map[string]string{name: id}
		delete(s.Observed.Record.Members, name)
		s.Observed.Volumes = append(s.Observed.Volumes, memberVolume(naming.Claim("", name), 8<<30))
	}
}

// unlisted takes a member out of the member list only.
func unlisted(ordinal int32) mutation {
	return func(s *situation.Situation) {
		outlook.Unlist(s, s.Observed.Record.Members[naming.Member("orders", ordinal)])
	}
}

// wanting lets Git want a number of members.
func wanting(n int32) mutation { return func(s *situation.Situation) { s.Desired.Spec.Replicas = n } }

// serving says that the member that leaves served when that was decided.
func serving(s *situation.Situation) { s.Observed.Record.Leaving.Serving = true }

// oneLook forgets the first look.
func oneLook(s *situation.Situation) { s.Observed.Rounds = s.Observed.Rounds[1:] }

func TestMembershipLeaving(t *testing.T) {
	shrinking := with(wanting(2), leaving(2, false))
	foreign := func(s *situation.Situation) { podAt(s, 2).Damage = state.DamageForeign }
	checkRule(t, membership, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "20: an unformed cluster is the bootstrap's", change: unformed},
		{name: "39: the leader hands over first", change: shrinking, want: "move the leader orders-2 → orders-0"},
		{name: "20: also one whose members answer", change: with(shrinking, func(s *situation.Situation) { s.Observed.Record.ClusterID, s.Observed.Record.Members = "", nil })},
		{name: "85: a StatefulSet that is gone comes back first", change: with(shrinking, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "no member was asked", change: with(shrinking, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Confirm: the members have not been asked"},
		{name: "37: then it is removed", change: with(shrinking, leads(0)), want: "remove orders-2 from the members: Git wants fewer"},
		{name: "45: a removal whose answer was lost is found in the list", change: with(shrinking, leads(0), unlisted(2)), want: "record that orders-2 has left: the member list no longer has it"},
		{name: "I1: a look alone removes no member", change: with(shrinking, leads(0), oneLook), want: "Confirm: that the others can do without"},
		{name: "I1: nor does a list that is old", change: with(shrinking, leads(0), func(s *situation.Situation) { s.Observed.Round().At = noon.Add(-time.Minute) }), want: "Confirm: the members have not been asked"},
		{name: "42: another one that is down", change: with(shrinking, leads(0), down(1)), want: "Unhealthy: orders-2 will be removed (Git wants fewer), but only 1 of the 2 others are healthy, and their quorum is 2"},
		{name: "80: no member leaves whose volume holds foreign data", change: with(shrinking, foreign), want: "Unhealthy: volume claim data-orders-2 holds what is not the data of orders-2"},
		{name: "80: nor is it recorded that it has left: its volume would go", change: with(shrinking, foreign, unlisted(2)), want: "Unhealthy: volume claim data-orders-2"},
		{name: "80: another member leaves all the same", change: with(shrinking, leads(0), func(s *situation.Situation) { podAt(s, 2).Damage = state.DamageOutdated }), want: "remove orders-2"},
		{name: "I16: no member leaves before the others have caught up", change: with(shrinking, leads(0), func(s *situation.Situation) { s.Observed.Round().Member("orders-1").AppliedIndex = 4000 }), want: "Confirm: orders-1 has not applied yet what the leader had committed (4000 of 5000 entries)"},
		{name: "I16: who leaves need not", change: with(shrinking, leads(0), func(s *situation.Situation) { s.Observed.Round().Member("orders-2").AppliedIndex = 4000 }), want: "remove orders-2"},
		{name: "42: another one that is about to stop", change: with(shrinking, leads(0), func(s *situation.Situation) { podAt(s, 1).Terminating = true }), want: "but only 1 of the 2 others are healthy"},
		{name: "42: another one that is not ready", change: with(shrinking, leads(0), func(s *situation.Situation) { podAt(s, 1).Ready = false }), want: "but only 1 of the 2 others are healthy"},
		{name: "42: another one without a pod", change: with(shrinking, leads(0), func(s *situation.Situation) { s.Observed.Pods = slices.Delete(s.Observed.Pods, 1, 2) }), want: "but only 1 of the 2 others are healthy"},
		{name: "39: no member is fit to lead", size: 2, change: with(wanting(1), leaving(1, false), func(s *situation.Situation) {
			podAt(s, 0).Template = "a"
			memberAt(s, 0).Learner = false
			s.Observed.Pods[1].Terminating = true
		}), want: "Unhealthy: orders-1 will be removed (Git wants fewer), but only 0 of the 1 others"},
		{name: "42: it was down a moment ago", change: with(shrinking, leads(0), func(s *situation.Situation) { s.Observed.Rounds[0].Member("orders-1").Problem = "timeout" }), want: "Confirm: healthy now, but a moment ago: only 1 of the 2 others"},
		{name: "41: one that is down itself goes", change: with(wanting(2), leads(0), down(2), leaving(2, false)), want: "remove orders-2"},
		{name: "I1: two members, one of them down: etcd would refuse", size: 2, change: with(wanting(1), leads(0), down(1), leaving(1, false)), want: "Unhealthy: orders-1 will be removed (Git wants fewer), but only 1 of 2 members are healthy, and a quorum is 2"},
		{name: "I1: two members that are well", size: 2, change: with(wanting(1), leads(0), leaving(1, false)), want: "remove orders-1"},
		{name: "I1: the only member", size: 1, change: with(leaving(0, true), down(0)), want: "but it is the only member"},
		{name: "I19: not while a learner is there", change: with(shrinking, leads(0), func(s *situation.Situation) { s.Observed.Round().Members[1].Learner = true }), want: "orders-1 is a learner, and one change at a time"},
		{name: "no leader", change: with(shrinking, func(s *situation.Situation) { s.Observed.Round().Members[2].Leader = "" }), want: "but there is no leader"},
		{name: "20: Git has changed its mind", change: with(leaving(2, false)), want: "keep orders-2 after all"},
		{name: "303: one that was taken for lost and answers is kept", change: with(leaving(2, true), leads(0)), want: "keep orders-2 after all: it was taken for lost, but it answers"},
		{name: "303: also one that the leader hears", change: with(leaving(2, true), leads(0), down(2), seen(2, state.PeersLinked)), want: "keep orders-2 after all: it was taken for lost, but the leader hears it"},
		{name: "303: one of which the leader says nothing stays", change: with(leaving(2, true), leads(0), down(2), seen(2, state.PeersUnknown)), want: "Unhealthy: Git wants fewer; but the leader does not say whether it hears orders-2"},
		{name: "303: also one that Git wants again and that is on a node that does not report", change: with(leaving(2, false), leads(0), cutOff(2)), want: "keep orders-2 after all: it was taken for lost, but it answers"},
		{name: "79: one that nobody has seen is replaced", change: with(leaving(2, true), leads(0), down(2)), want: "remove orders-2"},
		{name: "79: one that holds other data is replaced, whether it answers or not", change: with(leaving(2, true), serving, leads(0)), want: "remove orders-2"},
		{name: "41: so is one that Git no longer wants", change: with(wanting(2), leaving(2, true), leads(0)), want: "remove orders-2"},
		{name: "20: also while its pod restarts", change: with(leaving(2, false), leads(0), down(2)), want: "keep orders-2 after all"},
		{name: "20: also before its pod is back", change: with(leaving(2, false), leads(0), func(s *situation.Situation) { s.Observed.Pods = slices.Delete(s.Observed.Pods, 0, 1) }), want: "keep orders-2 after all"},
		{name: "20: but not one whose data is lost", change: with(leaving(2, false), leads(0), damaged(2, state.DamageEmpty, time.Minute)), want: "remove orders-2"},
		{name: "no member goes while it is not known whose data is right", change: with(shrinking, leads(0), func(s *situation.Situation) {
			s.Observed.Rounds[0].Member("orders-2").Hash = 7
		}), want: "Unhealthy: orders-2 will be removed (Git wants fewer), but orders-2 and orders-0 hold different data, and it is not known yet which is right (compared at revision 0); find out whose data is wrong"},
		{name: "41: another one that is lost goes first", change: with(shrinking, leads(0), damaged(1, state.DamageEmpty, time.Hour)), want: "keep orders-2 after all: orders-1 has lost its data: its volume is empty, and that comes first"},
		{name: "41: not where this one is lost itself, and another one is only down", change: with(shrinking, leads(0), damaged(2, state.DamageEmpty, time.Hour), down(1)), want: "Unhealthy: orders-2 will be removed"},
		{name: "79: one that is replaced is not kept for another one that is lost", change: with(leaving(2, true), serving, leads(0), damaged(1, state.DamageEmpty, time.Hour)), want: "Unhealthy: orders-2 will be removed"},
		{name: "20: too late", change: with(leaving(2, false), unlisted(2)), want: "record that orders-2 has left"},
		{name: "a list that cannot be had", change: with(shrinking, func(s *situation.Situation) { s.Observed.Round().Problem = "timeout" }), want: "Unhealthy: the members cannot be listed (timeout)"},
		{name: "I5: another cluster answers", change: with(shrinking, func(s *situation.Situation) { s.Observed.Round().ClusterID = "c2" }), want: "Refused: the members say that they are cluster c2, the record says c1"},
	})
}

func TestMembershipJoining(t *testing.T) {
	grows := func(id string, age time.Duration) mutation {
		return with(wanting(4), joining(id, age))
	}
	learner := func(edit func(*state.Member)) mutation {
		return func(s *situation.Situation) {
			for r := range s.Observed.Rounds {
				edit(s.Observed.Rounds[r].Member("orders-3"))
			}
		}
	}
	// extra is a learner that the record knows no ID of.
	extra := func(name string) mutation {
		return func(s *situation.Situation) {
			s.Observed.Round().Members = append(s.Observed.Round().Members, state.Member{ID: "m9", Name: name, Learner: true})
		}
	}
	ready := with(grows("m3", time.Minute), withPod)
	gone := func(s *situation.Situation) { outlook.Unlist(s, "m3") }
	checkRule(t, membership, []ruleCase{
		{name: "37: the learner is added first", change: grows("", 0), want: "add orders-3 as a learner"},
		{name: "I19: not beside another learner", change: with(grows("", 0), func(s *situation.Situation) { s.Observed.Round().Members[1].Learner = true }), want: "Unhealthy: orders-3 is about to join, but orders-1 is a learner, and one change at a time is enough"},
		{name: "44: a learner that has not started may be the one: etcd was asked, and its answer got lost", change: with(grows("", 0), extra("")), want: "add orders-3 as a learner"},
		{name: "44: and so may one of its name", change: with(grows("", 0), extra("orders-3")), want: "add orders-3 as a learner"},
		{name: "I1: not by a list that is old", change: with(grows("", 0), func(s *situation.Situation) { s.Observed.Round().At = noon.Add(-time.Minute) }), want: "Confirm: the members have not been asked"},
		{name: "I5: nor by that of another cluster", change: with(grows("", 0), func(s *situation.Situation) { s.Observed.Round().ClusterID = "c2" }), want: "Refused: the members say that they are cluster c2"},
		{name: "42: nor without a leader", change: with(grows("", 0), of(2, func(m *state.Member) { m.Leader = "" })), want: "Unhealthy: orders-3 is about to join, but there is no leader"},
		{name: "42: not without a quorum", change: with(grows("", 0), down(0), down(1)), want: "Unhealthy: orders-3 is about to join, but only 1 of 3 members are healthy"},
		{name: "46: a learner without a pod", change: grows("m3", 0), want: "Waiting: orders-3 joins: its pod does not exist yet"},
		{name: "37: one that has caught up is promoted", change: ready, want: "promote orders-3"},
		{name: "I16: caught up is seen twice", change: with(ready, oneLook), want: "Confirm: that a learner has caught up is seen in two checks"},
		{name: "I16: two looks at once are one", change: with(ready, func(s *situation.Situation) { s.Observed.Rounds[0].At = noon.Add(-state.Between / 2) }), want: "Confirm: the two checks of the members were too close"},
		{name: "I16: what there was to catch up with is unknown", change: with(ready, func(s *situation.Situation) { s.Observed.Rounds[0].Member("orders-2").Leader = "" }), want: "Waiting: orders-3 joins: it has not applied yet"},
		{name: "42: not without a quorum of voters", change: with(ready, down(0), down(1)), want: "Waiting: orders-3 joins: only 1 of 3 members are healthy"},
		{name: "I19: what has begun is ended first, whoever else learns", change: with(ready, func(s *situation.Situation) { s.Observed.Round().Members[1].Learner = true }), want: "promote orders-3"},
		{name: "I16: one that lags behind waits", change: with(ready, learner(func(m *state.Member) { m.AppliedIndex = 4999 })), want: "Waiting: orders-3 joins: it has not applied yet what the leader had committed"},
		{name: "a learner that has not started", change: with(ready, learner(func(m *state.Member) { m.Name = "" })), want: "Waiting: orders-3 joins: it has not started yet"},
		{name: "a learner that does not answer", change: with(ready, learner(func(m *state.Member) { m.Problem = "connection refused" })), want: "Waiting: orders-3 joins: it does not answer yet (connection refused)"},
		{name: "a learner whose pod has trouble", change: with(ready, func(s *situation.Situation) { podAt(s, 3).Trouble = "Unschedulable" }), want: "Waiting: orders-3 joins: Unschedulable"},
		{name: "a learner whose pod stops", change: with(ready, func(s *situation.Situation) { podAt(s, 3).Terminating = true }), want: "its pod is shutting down"},
		{name: "43: one that never catches up is removed again", change: with(grows("m3", 11*time.Minute), withPod, learner(func(m *state.Member) { m.AppliedIndex = 1 })), want: "remove the learner orders-3: it did not become a member in time: it has not applied yet what the leader had committed (after 10m0s)"},
		{name: "43: more data, more time", change: with(grows("m3", 11*time.Minute), withPod, learner(func(m *state.Member) { m.AppliedIndex, m.DBSize = 1, 1<<30 })), want: "Waiting: orders-3 joins"},
		{name: "43: the list, and not the intent to promote, says what it is", change: with(grows("m3", 11*time.Minute), withPod, learner(func(m *state.Member) { m.AppliedIndex = 1 }), func(s *situation.Situation) { s.Observed.Record.Joining.Promoting = true }), want: "remove the learner orders-3: it did not become a member"},
		{name: "78: one that loses its volume on the way is removed at once", change: with(ready, learner(func(m *state.Member) { m.Problem = "connection refused" }), func(s *situation.Situation) {
			podAt(s, 3).Damage, s.Observed.Record.Joining.Promoting = state.DamageEmpty, true
		}), want: "remove the learner orders-3: its volume is not what it was (empty)"},
		{name: "44: a promotion whose answer was lost is found in the list", change: with(ready, learner(func(m *state.Member) { m.Learner = false })), want: "record orders-3 as a member: etcd counts it as a voter"},
		{name: "a learner that was removed manually", change: with(ready, gone), want: "remove the learner orders-3: the member list no longer has it"},
		{name: "324: not by one list, which may be older than the learner", change: with(ready, gone, oneLook), want: "Confirm: that the member list no longer has orders-3 counts when it was seen twice"},
		{name: "324: nor after one that has it", change: with(ready, func(s *situation.Situation) {
			before := s.Observed.Rounds[0]
			outlook.Unlist(s, "m3")
			s.Observed.Rounds[0] = before
		}), want: "Confirm: that the member list no longer has orders-3"},
		{name: "324: nor after one from before it joined", change: with(ready, gone, func(s *situation.Situation) { s.Observed.Record.Joining.Since = s.Observed.Rounds[0].At }), want: "Confirm: that the member list no longer has orders-3"},
		{name: "324: nor after one that could not be had", change: with(ready, gone, func(s *situation.Situation) { s.Observed.Rounds[0].Problem = "deadline exceeded" }), want: "Confirm: that the member list no longer has orders-3"},
		{name: "324: two lists at once are one", change: with(ready, gone, func(s *situation.Situation) { s.Observed.Rounds[0].At = noon.Add(-state.Between / 2) }), want: "Confirm: that the member list no longer has orders-3"},
		{name: "20: Git has changed its mind", change: with(ready, wanting(3)), want: "remove the learner orders-3: Git wants 3 members, so orders-3 is not to join any more"},
		{name: "20: before etcd was asked", change: with(grows("", 0), wanting(3)), want: "remove the learner orders-3"},
		{name: "I24: a voter that Git no longer wants is recorded first", change: with(ready, wanting(3), learner(func(m *state.Member) { m.Learner = false })), want: "record orders-3 as a member"},
	})
	late := with(ready, func(s *situation.Situation) { s.Observed.Record.Joining.Since = noon.Add(-time.Hour) }, learner(func(m *state.Member) { m.AppliedIndex = 1 }))
	volume := func(s *situation.Situation) {
		s.Observed.Volumes = []state.Volume{memberVolume(naming.Claim("", "orders-3"), 8<<30)}
	}
	replaces := func(s *situation.Situation) { s.Observed.Record.Joining.Replace = true }
	found := func(damage string) mutation { return func(s *situation.Situation) { podAt(s, 3).Damage = damage } }
	podless := func(s *situation.Situation) { s.Observed.Pods = s.Observed.Pods[:3] }
	claim := func(edit func(*state.Volume)) mutation {
		return func(s *situation.Situation) { edit(&s.Observed.Volumes[0]) }
	}
	made := func(at time.Time) mutation { return claim(func(v *state.Volume) { v.Created = at }) }
	says := func(lost string) mutation { return claim(func(v *state.Volume) { v.Keeps = lost }) }
	holding := func(id string) mutation { return claim(func(v *state.Volume) { v.Holds = id }) }
	unbound, going := claim(func(v *state.Volume) { v.Bound = false }), claim(func(v *state.Volume) { v.Terminating = true })
	// unseen is a learner whose pod did not come as far as to run.
	unseen := with(holding("a3"), func(s *situation.Situation) { podAt(s, 3).Ran = false })
	ended := func(at time.Time) mutation {
		return func(s *situation.Situation) { s.Observed.Record.Recovered[0].At = at }
	}
	twice := func(s *situation.Situation) {
		s.Observed.Record.Recovered = append(s.Observed.Record.Recovered, state.Recovered{ClusterID: "c9", At: over.Add(time.Hour)})
	}
	for name, c := range map[string]struct {
		change mutation
		want   action.DropLearner
	}{
		"its volume is worth nothing without it":                                    {with(late, volume), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Failed: true}},
		"I7: what the guard found is somebody's":                                    {with(late, volume, func(s *situation.Situation) { podAt(s, 3).Damage = state.DamageForeign }), action.DropLearner{Member: "orders-3", ID: "m3", Failed: true}},
		"389: a person is asked for what a recovery has put aside":                  {with(late, volume, recoveredBefore, says("c0")), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Failed: true}},
		"389: which is noted where the claim does not say it":                       {with(late, volume, recoveredBefore), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c0", Failed: true}},
		"389: also where it is unknown when the claim was made":                     {with(late, volume, recoveredBefore, made(time.Time{})), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c0", Failed: true}},
		"389: or when the recovery was over":                                        {with(late, volume, recoveredBefore, made(noon), ended(time.Time{})), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c0", Failed: true}},
		"389: on a claim from the very moment":                                      {with(late, volume, recoveredBefore, made(over)), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c0", Failed: true}},
		"389: the last of two recoveries counts":                                    {with(late, volume, recoveredBefore, twice, made(over.Add(time.Minute))), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c9", Failed: true}},
		"389: a claim made since keeps nothing":                                     {with(late, volume, recoveredBefore, made(over.Add(time.Second))), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Failed: true}},
		"389: but for what it says":                                                 {with(late, volume, recoveredBefore, made(noon), says("c0"), unseen), action.DropLearner{Member: "orders-3", ID: "m3", Failed: true}},
		"389: without a volume there is nothing":                                    {with(late, volume, recoveredBefore, unseen, unbound), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Failed: true}},
		"389: nor on one that goes":                                                 {with(late, volume, recoveredBefore, unseen, going), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Failed: true}},
		"389: nor without a claim":                                                  {with(late, recoveredBefore), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Failed: true}},
		"389: no person is asked for a volume that the learner was not seen to use": {with(late, volume, recoveredBefore, unseen), action.DropLearner{Member: "orders-3", ID: "m3", Failed: true}},
		"389: nor where it never had a pod":                                         {with(late, volume, recoveredBefore, unseen, podless), action.DropLearner{Member: "orders-3", ID: "m3", Failed: true}},
		"389: it was seen there before its pod went":                                {with(late, volume, recoveredBefore, podless), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c0", Failed: true}},
		"389: it runs, and was not seen yet":                                        {with(late, volume, recoveredBefore, holding("a3")), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c0", Failed: true}},
		"389: the guard has found what another learner has left":                    {with(late, volume, recoveredBefore, unseen, found(state.DamageOutdated)), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Keeps: "c0", Failed: true}},
		"I7: nor is somebody's retired after a recovery":                            {with(late, volume, recoveredBefore, found(state.DamageForeign)), action.DropLearner{Member: "orders-3", ID: "m3", Failed: true}},
		"389: what etcd has not added has written nothing, also after a recovery":   {with(grows("", 0), volume, recoveredBefore, wanting(3)), action.DropLearner{Member: "orders-3"}},
		"its volume may come yet":                                                   {late, action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Failed: true}},
		"another one takes its place":                                               {with(late, replaces), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true, Replace: true, Failed: true}},
		"unless Git wants none":                                                     {with(ready, replaces, wanting(3)), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true}},
		"what etcd has not added has no volume":                                     {with(grows("", 0), volume, wanting(3)), action.DropLearner{Member: "orders-3"}},
		"Git's word is no failure":                                                  {with(ready, volume, wanting(3)), action.DropLearner{Member: "orders-3", ID: "m3", Retire: true}},
	} {
		s := healthy(3)
		c.change(s)
		if a := membership(s).Step.Action; a != c.want {
			t.Errorf("%s: %+v, want %+v", name, a, c.want)
		}
	}
}

// over is when the cluster had been recovered, where it was.
var over = noon.Add(-24 * time.Hour)

// recoveredBefore is a cluster that was recovered from another one, c0, and has claims from
// before that.
func recoveredBefore(s *situation.Situation) {
	s.Observed.Record.Recovered = []state.Recovered{{ClusterID: "c0", At: over}}
	s.Observed.Record.Kept = map[string]bool{"orders-3": true}
	for i := range s.Observed.Volumes {
		s.Observed.Volumes[i].Created = over.Add(-time.Hour)
	}
}

// 389: a learner of a cluster that was recovered has failed. The next one of its name does not
// begin on what that one has left, which it could never leave: a person is asked once for what
// the recovery has put aside there, and no more for the claim that comes then.
func TestAFailedLearnerIsFollowedAfterARecovery(t *testing.T) {
	for name, marked := range map[string]string{"marked by the recovery": "c0", "from before there was that mark": ""} {
		t.Run(name, func(t *testing.T) {
			s := healthy(3)
			with(wanting(4), joining("m3", time.Hour), withPod, func(s *situation.Situation) {
				v := memberVolume(naming.Claim("", "orders-3"), 8<<30)
				v.Keeps = marked
				s.Observed.Volumes = []state.Volume{v}
				podAt(s, 3).Damage, podAt(s, 3).Trouble = state.DamageOutdated, "guard: exit 7"
			}, recoveredBefore)(s)
			expect := func(what, want string, rule func(*situation.Situation) verdict.Verdict) {
				t.Helper()
				got := said(rule, s)
				if !strings.Contains(got, want) {
					t.Fatalf("%s: got %q, want %q", what, got, want)
				}
				if v := rule(s); v.Step != nil {
					v.Step.Action.After(s)
				}
			}
			clears := func(s *situation.Situation) verdict.Verdict { return volumes.Clear(s, "orders-3") }
			expect("the learner fails", "remove the learner orders-3", membership)
			s.Observed.Pods = s.Observed.Pods[:3]
			expect("the next one", "annotate pvc data-orders-3 quorate.dev/keeps-", clears)
			s.Observed.Volumes[0].Keeps = ""
			expect("a person lets it go", "delete the volume claim data-orders-3", clears)
			s.Observed.Record.Retired, s.Observed.Volumes = nil, nil
			if v := clears(s); !v.Silent() {
				t.Fatalf("the place is empty: %s", words(v))
			}
			with(joining("m4", time.Hour), withPod, func(s *situation.Situation) {
				v := memberVolume(naming.Claim("", "orders-3"), 8<<30)
				v.Holds, v.Created = "m4", noon.Add(-time.Hour)
				s.Observed.Volumes = []state.Volume{v}
				podAt(s, 3).Trouble = "CrashLoopBackOff"
			})(s)
			expect("one more fails", "remove the learner orders-3", membership)
			expect("no person is asked again", "delete the volume claim data-orders-3", clears)
		})
	}
}

// Somebody scales all members to 0 and back in the midst of a roll: with no pods the controller calls it complete, and its
// partition alone tells that the lowest members were never let go.
func TestHowFarARollCameIsNotForgottenWithoutPods(t *testing.T) {
	for partition, want := range map[int32]int32{1: 1, 2: 2, 3: 3, 0: 3} {
		s := healthy(3)
		commit(newVersion)(s)
		begun(s)
		set := s.Observed.Set
		set.Replicas, set.Partition, set.CurrentTemplate, set.CurrentVersion = 0, partition, set.Template, set.Version
		s.Observed.Pods, s.Observed.Rounds = nil, nil
		if a, ok := resize(s).Step.Action.(action.ResizeSet); !ok || a.To != 3 || a.Partition != want {
			t.Errorf("with the partition at %d: %+v, want it at %d", partition, a, want)
		}
	}
}

func TestResize(t *testing.T) {
	scaled := func(n int32, by string) mutation {
		return func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Set.ScaledBy = n, by }
	}
	// older is a record from before the last member joined.
	older := func(s *situation.Situation) {
		delete(s.Observed.Record.Members, "orders-2")
		s.Observed.Volumes = memberVolumes(3)
	}
	noList := looks(func(r *state.Round) { r.Problem = "context deadline exceeded" })
	checkRule(t, resize, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "an unformed cluster is the bootstrap's", change: with(unformed, scaled(5, ""))},
		{name: "46: a learner gets its pod", change: with(wanting(4), joining("m3", 0)), want: "resize the StatefulSet 3 → 4: orders-3 is a learner now and gets its pod"},
		{name: "a StatefulSet that is gone comes back first", change: func(s *situation.Situation) { s.Observed.Set = nil }},
		{name: "who sleeps has no pod", change: with(asleep, stopped)},
		{name: "nor has who is being deleted", change: with(stopped, func(s *situation.Situation) { s.Observed.Record.Deleted = true })},
		{name: "50: scaled to nothing while a member leaves", change: with(wanting(2), leaving(2, false), scaled(0, "kubectl-scale"), func(s *situation.Situation) { s.Observed.Pods, s.Observed.Rounds = nil, nil }), want: "resize the StatefulSet 0 → 3"},
		{name: "47: a pod that is no member's goes", change: with(gone(2), wanting(2)), want: "resize the StatefulSet 3 → 2: its pods are those of 2 members"},
		{name: "306: not that of a voter whom an older record does not know", change: older, want: "Refused: etcd lists orders-2 (member m2), which the record does not know: the record is older than the cluster, or the member was added manually; restore ConfigMap orders-record as it was last"},
		{name: "306: nor by what its volume holds, where there is no list", change: with(older, noList), want: "Refused: volume claim data-orders-2 holds the data of member m2, which is not in the record: it may be the only copy; where the record was restored from a backup, restore ConfigMap orders-record as it was last; or set the reclaim policy"},
		{name: "306: one that is known to have left may go", change: with(older, noList, on(func(r *state.Record) { r.Retired = map[string]string{"orders-2": "m2"} })), want: "resize the StatefulSet 3 → 2"},
		{name: "306: nor is what a recovery has kept a member's", change: with(older, noList, on(func(r *state.Record) { r.Kept = map[string]bool{"orders-2": true} })), want: "resize the StatefulSet 3 → 2"},
		{name: "306: a volume that nobody was seen on says nothing", change: with(older, noList, func(s *situation.Situation) { s.Observed.Volumes[2].Holds = "" }), want: "resize the StatefulSet 3 → 2"},
		{name: "306: also where another one has left its place", change: with(older, noList, on(func(r *state.Record) { r.Retired = map[string]string{"orders-2": "m9"} }), func(s *situation.Situation) { s.Observed.Volumes[2].Holds = "" }), want: "resize the StatefulSet 3 → 2"},
		{name: "306: nor does one of a member that the record knows", change: with(older, noList, func(s *situation.Situation) { s.Observed.Volumes[2].Holds = "m0" }), want: "resize the StatefulSet 3 → 2"},
		{name: "306: nor one of somebody else", change: with(older, noList, func(s *situation.Situation) { s.Observed.Volumes[2].Holds = state.HoldsForeign }), want: "resize the StatefulSet 3 → 2"},
		{name: "306: below the last member nothing goes", change: with(older, noList, func(s *situation.Situation) { s.Observed.Volumes[2].Ordinal = 1 }), want: "resize the StatefulSet 3 → 2"},
		{name: "306: a learner has no vote", change: with(older, looks(func(r *state.Round) { r.Members[2].Learner = true })), want: "resize the StatefulSet 3 → 2"},
		{name: "306: nor that of a voter of another cluster, which answers there", change: with(older, looks(func(r *state.Round) { r.ClusterID = "c2" })), want: "Refused: the members say that they are cluster c2, the record says c1"},
		{name: "306: nor that of a voter by another name", change: with(scaled(5, "kubectl-scale"), looks(func(r *state.Round) { r.Members[0].Name = "orders-4" })), want: "Refused: etcd lists orders-4 (member m0), which the record does not know"},
		{name: "306: more pods take nothing from anybody", change: with(older, scaled(1, "kubectl-scale")), want: "resize the StatefulSet 1 → 2"},
		{name: "a hole is none", change: gone(1)},
		{name: "50: kubectl scale up", change: scaled(5, "kubectl-scale at noon"), want: "resize the StatefulSet 5 → 3: another writer has set it to 5 (kubectl-scale at noon)"},
		{name: "50: kubectl scale down", change: scaled(1, "kubectl-scale at noon"), want: "resize the StatefulSet 1 → 3"},
		{name: "unless Git wants that member no more", change: with(gone(2), wanting(2), func(s *situation.Situation) { s.Observed.Record.Replacing = "orders-2" }), want: "resize the StatefulSet 3 → 2"},
		{name: "the pod of a member that is replaced stays", change: with(gone(2), func(s *situation.Situation) { s.Observed.Record.Replacing = "orders-2" })},
	})
	checkRule(t, resizeTo, []ruleCase{
		{name: "306: a record from before the cluster had formed", change: func(s *situation.Situation) {
			s.Observed.Record = &state.Record{Founders: 2}
		}, want: "Refused: etcd lists orders-2 (member m2), which the record does not know"},
		{name: "50: a pod beyond those that form", change: func(s *situation.Situation) {
			s.Observed.Record, s.Observed.Set.Replicas = &state.Record{Founders: 3}, 4
		}, want: "resize the StatefulSet 4 → 3"},
		{name: "306: a voter that has no place here", change: with(func(s *situation.Situation) {
			s.Observed.Record, s.Observed.Set.Replicas = &state.Record{Founders: 3}, 4
		}, looks(func(r *state.Round) { r.Members[2].Name = "elsewhere" })), want: "resize the StatefulSet 4 → 3"},
	})
	// interrupted is a roll from one release to another that somebody scales to 0 in its
	// midst, and the commit that is there then.
	interrupted := func(was, to string, partition int32, now string) mutation {
		return func(s *situation.Situation) {
			stopped(s)
			s.Observed.Rounds, s.Observed.Record.Applied.Version = nil, was
			set := s.Observed.Set
			set.Replicas, set.Partition, set.Template, set.CurrentTemplate, set.Version, set.CurrentVersion = 0, partition, "t"+to, "t"+to, to, to
			s.Desired.Template, s.Desired.Spec.Version, s.Desired.SpecHash = "t"+now, now, "other"
		}
	}
	goesDown := func(minor string) mutation {
		return func(s *situation.Situation) { s.Observed.Record.Downgrade = &state.Downgrade{Minor: minor} }
	}
	const held = "Refused: the StatefulSet was scaled to 0 in the midst of a change of version: its members ran etcd "
	checkRule(t, resize, []ruleCase{
		{name: "321: as Git still says", change: interrupted("3.5.35", "3.6.16", 1, "3.6.16"), want: "resize the StatefulSet 0 → 3"},
		{name: "321: a revert counts first", change: interrupted("3.5.35", "3.6.16", 1, "3.5.35"), want: "start the roll 3.6.16 → 3.5.35: no member runs, and Git no longer wants what they would all come back with"},
		{name: "321: but not where every member may have the newer minor", change: interrupted("3.5.35", "3.6.16", 0, "3.5.35"), want: "resize the StatefulSet 0 → 3"},
		{name: "321: as after a roll that has ended", change: interrupted("3.5.35", "3.6.16", 3, "3.5.35"), want: "resize the StatefulSet 0 → 3"},
		{name: "321: of a patch it does", change: interrupted("3.5.34", "3.5.35", 0, "3.5.34"), want: "start the roll 3.5.35 → 3.5.34"},
		{name: "321: so do other settings of the release that they come back with", change: with(interrupted("3.5.35", "3.6.16", 0, "3.6.16"), func(s *situation.Situation) { s.Desired.Template = "mended" }), want: "start the roll"},
		{name: "321: a third release waits until they run", change: interrupted("3.5.35", "3.6.16", 1, "3.7.3"), want: "resize the StatefulSet 0 → 3"},
		{name: "321: a downgrade that was cancelled", change: interrupted("3.7.3", "3.6.16", 1, "3.6.15"), want: held + "3.7.3 before, and may not all start with the 3.6.16 that it has now; set spec.version back to 3.7.3, so that they come back as what they were; or, where each of them ran 3.6.16 or the minor below, `kubectl -n db scale statefulset orders --replicas=3`"},
		{name: "321: and what Git can say to it", change: interrupted("3.7.3", "3.6.16", 1, "3.7.3"), want: "start the roll 3.6.16 → 3.7.3"},
		{name: "321: one that continues", change: with(interrupted("3.7.3", "3.6.16", 1, "3.6.16"), goesDown("3.6")), want: "resize the StatefulSet 0 → 3"},
		{name: "321: one that has only begun", change: with(interrupted("3.7.3", "3.7.3", 3, "3.6.16"), goesDown("3.6")), want: "resize the StatefulSet 0 → 3"},
		{name: "321: a minor must not be skipped on the way back from one", change: with(interrupted("3.6.16", "3.7.3", 3, "3.5.35"), goesDown("3.5")), want: held + "3.6.16 before"},
		{name: "321: two minors at once", change: interrupted("3.4.45", "3.6.16", 1, "3.6.16"), want: held + "3.4.45 before"},
		{name: "321: nor one that a roll would refuse", change: interrupted("3.5.20", "3.6.16", 1, "3.6.16"), want: held + "3.5.20 before"},
		{name: "321: also where other settings ask for it", change: with(interrupted("3.4.45", "3.6.16", 1, "3.6.16"), func(s *situation.Situation) { s.Desired.Template = "mended" }), want: held + "3.4.45 before"},
		{name: "321: a downgrade to what was before an upgrade, and that was given up", change: with(interrupted("3.6.16", "3.7.3", 1, "3.7.3"), goesDown("3.6")), want: "resize the StatefulSet 0 → 3"},
		{name: "321: nobody comes back with what cannot be rendered", change: with(interrupted("3.5.35", "3.6.16", 1, "3.6.16"), func(s *situation.Situation) { s.Desired.Template = "" }), want: "resize the StatefulSet 0 → 3"},
		{name: "321: pods that only do not exist are another rule's", change: with(tuned, func(s *situation.Situation) { s.Observed.Pods = nil })},
		{name: "321: those that sleep stay asleep", change: with(interrupted("3.7.3", "3.6.16", 1, "3.6.15"), asleep)},
		{name: "321: what was never applied is not known to have been another release", change: with(interrupted("3.7.3", "3.6.16", 1, "3.6.15"), func(s *situation.Situation) { s.Observed.Record.Applied = nil }), want: "resize the StatefulSet 0 → 3"},
	})
	s := healthy(1)
	with(commit(newVersion), begun, rolled(newVersion, 0), func(s *situation.Situation) {
		s.Observed.Set.Replicas, s.Observed.Set.Partition, s.Observed.Pods = 0, 0, nil
	})(s)
	if a := resize(s).Step.Action.(action.ResizeSet); a.Partition != 0 {
		t.Errorf("I14: after an open roll the member comes back as what it was before it: partition %d", a.Partition)
	}
	s = healthy(3)
	with(scaled(5, "kubectl-scale"), func(s *situation.Situation) { s.Observed.Set.Partition = 1 })(s)
	if a := resize(s).Step.Action.(action.ResizeSet); a.Partition != 1 {
		t.Errorf("I25: without a roll a partition moved from 1 to %d", a.Partition)
	}
	s = healthy(3)
	with(commit(newVersion), begun, rolled(newVersion, 2), scaled(5, "kubectl-scale"), func(s *situation.Situation) { s.Observed.Set.Partition = 2 })(s)
	if a := resize(s).Step.Action.(action.ResizeSet); a.Partition != 2 {
		t.Errorf("I2: the cursor of a roll moved from 2 to %d", a.Partition)
	}
	s = healthy(3)
	with(commit(newVersion), begun, wanting(4), joining("m3", 0), func(s *situation.Situation) { s.Observed.Set.Partition = 3 })(s)
	if a := resize(s).Step.Action.(action.ResizeSet); a.Partition != 3 {
		t.Errorf("I2: a new member moved the cursor of a roll that Git wants from 3 to %d", a.Partition)
	}
	s = healthy(3)
	with(commit(newVersion), begun, joining("", 0), scaled(2, "kubectl-scale"), func(s *situation.Situation) { s.Observed.Set.Partition, s.Desired.Template = 2, "c" })(s)
	if a := resize(s).Step.Action.(action.ResizeSet); a.Partition != 2 {
		t.Errorf("61: no learner is there yet, and the cursor of a given-up roll moved from 2 to %d", a.Partition)
	}
	s = healthy(3)
	with(wanting(4), joining("m3", 0), func(s *situation.Situation) { s.Observed.Set.Template, s.Observed.Set.Version = "b", newVersion })(s)
	if a := resize(s).Step.Action.(action.ResizeSet); a.Partition != 4 {
		t.Errorf("61: a new member comes as what a given-up roll would make of it: partition %d", a.Partition)
	}
}

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		change mutation
		want   bool
	}{
		"17: what Git says":        {func(*situation.Situation) {}, true},
		"37: fewer than Git wants": {wanting(4), false},
		"37: more than Git wants":  {wanting(2), false},
		"89: as many, but others": {with(gone(1), joining("", 0), func(s *situation.Situation) {
			s.Observed.Record.Members["orders-3"], s.Observed.Record.Joining = "m3", nil
		}), false},
		"I19: one joins":                {joining("m3", 0), false},
		"I19: one leaves that may stay": {leaving(2, false), false},
	} {
		s := healthy(3)
		c.change(s)
		if got := s.Complete(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestOrdinalOf(t *testing.T) {
	for name, want := range map[string]int32{"orders-0": 0, "orders-10": 10, "a-1-2": 2, "orders": 1<<31 - 2, "orders-x": 1<<31 - 2} {
		if got := naming.Ordinal(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
