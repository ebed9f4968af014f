package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// outOfReach is a cluster that serves, and of which no member answers quorate.
func outOfReach(s *situation.Situation) {
	for i := range s.Observed.Rounds {
		unseen(&s.Observed.Rounds[i])
	}
}

// unready takes the kubelets' word for some members away.
func unready(ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		for _, i := range ordinals {
			podAt(s, i).Ready = false
		}
	}
}

func TestReachable(t *testing.T) {
	asked := asksFor("c1", "", backupURL)
	record := func(f func(*state.Record)) mutation { return func(s *situation.Situation) { f(s.Observed.Record) } }
	each := func(f func(*state.Member)) mutation { return func(s *situation.Situation) { everyMember(f)(s) } }
	checkRule(t, recovery.Reachable, []ruleCase{
		{name: "a healthy cluster passes"},
		{name: "no member was asked", change: func(s *situation.Situation) { s.Observed.Rounds = nil }},
		{name: "an unformed one is the bootstrap's", change: unformed},
		{name: "a StatefulSet that is gone comes back first", change: with(outOfReach, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "a list is an answer", change: down(1)},
		{name: "270: silence is not death", change: outOfReach, want: "Unreachable: quorate cannot reach the members, and the cluster has a quorum: 3 of 3 pods are ready"},
		{name: "270: nor for one", size: 1, change: outOfReach, want: "1 of 1 pods are ready"},
		{name: "270: one may be down beside that", change: with(outOfReach, unready(0)), want: "2 of 3 pods are ready"},
		{name: "363: a container beside etcd takes no member away", change: with(outOfReach, unready(0, 1, 2), func(s *situation.Situation) { podAt(s, 0).EtcdReady, podAt(s, 2).EtcdReady = true, true }), want: "2 of 3 pods are ready"},
		{name: "270: three of five", size: 5, change: with(outOfReach, unready(0, 4)), want: "3 of 5 pods are ready"},
		{name: "272: two of five are no quorum", size: 5, change: with(outOfReach, unready(0, 1, 4))},
		{name: "272: two unready are two witnesses", change: with(outOfReach, unready(0, 1))},
		{name: "272: a node that is silent, too, is one", change: with(outOfReach, unready(0), func(s *situation.Situation) { podAt(s, 1).NodeSilent = true })},
		{name: "272: a pod that stops is not ready", change: with(outOfReach, unready(0), func(s *situation.Situation) { podAt(s, 1).Terminating = true })},
		{name: "272: a pod without a member is no voter", change: with(outOfReach, unready(0), record(func(r *state.Record) {
			delete(r.Members, "orders-2")
			r.Members["orders-9"] = "m9"
		}))},
		{name: "274: members that answer, each for itself, are reached", change: func(s *situation.Situation) {
			s.Observed.Round().Problem = "context deadline exceeded"
			each(func(m *state.Member) { m.Leader, m.Problem = "", "linearizable read: context deadline exceeded" })(s)
		}},
		{name: "274: one of three is not enough to say how it is", change: with(outOfReach, func(s *situation.Situation) {
			*memberAt(s, 0) = state.Member{Name: "orders-0", ID: "m0", Problem: "linearizable read: context deadline exceeded"}
		}), want: "Unreachable: "},
		{name: "273: an answer that is for users only", change: func(s *situation.Situation) {
			s.Observed.Round().Problem = "user name is empty"
			each(func(m *state.Member) { m.Denied, m.Problem = true, "user name is empty" })(s)
		}, want: "Unreachable: the members answer quorate only as a user of etcd"},
		{name: "271, I18: a recovery is refused, and that is noted", change: with(outOfReach, asked), want: "refuse the recovery of c1 from backup s3://backups/1.db: 3 of 3 members are ready"},
		{name: "271: and told", change: with(outOfReach, asked, record(func(r *state.Record) { r.RefusedRecovery = "c1 from backup " + backupURL })), want: "spec.recovery is refused, because it would stop them (context deadline exceeded); take spec.recovery out of the file"},
		{name: "271: one that has begun is brought to its end", change: with(outOfReach, record(func(r *state.Record) { r.Recovering = &state.Recovering{} }))},
	})
}
