package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// podless is a cluster whose StatefulSet has lacked the pod of an ordinal for a time.
func podless(ordinal int32, since time.Duration) mutation {
	return with(down(ordinal), withoutPod(ordinal), func(s *situation.Situation) { s.Observed.Set.StatusAt = s.Now.Add(-since) })
}

// forbidden is what Kubernetes said of the pod when the StatefulSet controller tried last.
func forbidden(last time.Duration) mutation {
	return func(s *situation.Situation) {
		s.Observed.Set.Refusal = &state.PodRefusal{Why: `pods "orders-2" is forbidden: exceeded quota: db`, Since: s.Now.Add(-time.Hour), At: s.Now.Add(-last)}
	}
}

// refusedAre are the pods that it spoke of.
func refusedAre(names ...string) mutation {
	return func(s *situation.Situation) { s.Observed.Set.Refusal.Pods = names }
}

// tuned is a commit that changes settings, and no version.
func tuned(s *situation.Situation) { s.Desired.Template, s.Desired.SpecHash = "c", "c" }

func TestMissing(t *testing.T) {
	// letGo is a roll of settings whose partition has reached a member.
	letGo := func(ordinal int32) mutation {
		return func(s *situation.Situation) {
			s.Desired.Template, s.Desired.SpecHash, s.Observed.Set.Template, s.Observed.Set.Partition = "b", "b", "b", ordinal
		}
	}
	checkRule(t, missing, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "an unformed cluster is the bootstrap's", change: with(unformed, func(s *situation.Situation) { s.Observed.Pods = nil })},
		{name: "75: a pod that does not exist", change: func(s *situation.Situation) { s.Observed.Pods = s.Observed.Pods[:2] }, want: "Waiting: the pod of orders-0 does not exist; the StatefulSet creates it"},
		{name: "43: but a member's is awaited beside it", change: with(joining("m3", 0), func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Pods = 4, s.Observed.Pods[:2] }), want: "Waiting: the pod of orders-0 does not exist"},
		{name: "43: also where the learner has been promoted", change: with(joining("m3", 0), func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Record.Members["orders-3"] = 4, "m3" }), want: "Waiting: the pod of orders-3 does not exist"},
		{name: "75: a pod without a member makes up for none of a member", change: func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods[:2:2], state.Pod{Name: "orders-3", Ordinal: 3})
		}, want: "does not exist; the StatefulSet creates it"},
		{name: "208: that waits with a since", change: podless(1, 10*time.Second), want: "Waiting: the pod of orders-1 does not exist; the StatefulSet creates it"},
		{name: "208: and not for ever", change: podless(1, 6*time.Minute), want: "Unhealthy: the pod of orders-1 does not exist; the StatefulSet creates it; find out why: `kubectl -n db describe statefulset orders`; check as well that kube-controller-manager runs"},
		{name: "208: nor where the controller has told nothing yet", change: with(podless(1, 0), func(s *situation.Situation) {
			s.Observed.Set.StatusAt, s.Observed.Set.ChangedAt = time.Time{}, noon.Add(-time.Hour)
		}), want: "Unhealthy: the pod of orders-1 does not exist"},
		{name: "291: one that Kubernetes refuses", change: with(podless(2, time.Minute), forbidden(time.Minute)), want: `Unhealthy: the pod of orders-2 cannot be created: pods "orders-2" is forbidden: exceeded quota: db; let Kubernetes admit it`},
		{name: "291: what it refused an hour ago is no reason now", change: with(podless(2, time.Minute), forbidden(time.Hour)), want: "Waiting: the pod of orders-2 does not exist"},
		{name: "291: a pod that is only just missing was not refused yet", change: with(podless(2, time.Second), forbidden(time.Minute)), want: "Waiting: the pod of orders-2 does not exist"},
		{name: "291: also where it is not known since when it is missing", change: with(podless(2, time.Minute), forbidden(time.Minute), func(s *situation.Situation) { s.Observed.Set.StatusAt = time.Time{} }), want: "Unhealthy: the pod of orders-2 cannot be created"},
		{name: "291: or nobody has asked the members yet", change: with(podless(2, time.Minute), forbidden(time.Minute), func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Unhealthy: the pod of orders-2 cannot be created"},
		{name: "291: the one that it speaks of is named", change: with(podless(0, time.Minute), podless(2, time.Minute), forbidden(time.Minute), refusedAre("orders-2")), want: "Unhealthy: the pod of orders-2 cannot be created"},
		{name: "291: another one is only about to be created", change: with(podless(0, time.Minute), forbidden(time.Minute), refusedAre("orders-2")), want: "Waiting: the pod of orders-0 does not exist"},
		{name: "291: after a rollout it stops none", change: with(podless(2, time.Minute), forbidden(time.Minute), at(0)), want: "Unhealthy: the pod of orders-2 cannot be created"},
		{name: "291: nor one that has not reached it", change: with(letGo(2), podless(1, time.Minute), forbidden(time.Minute)), want: "Unhealthy: the pod of orders-1 cannot be created"},
		{name: "75: nothing waits for the pod of a place without a member", change: with(gone(1), withoutPod(1))},
		{name: "291: in a rollout it stops that", change: with(letGo(2), podless(2, time.Minute), forbidden(time.Minute)), want: `Stopped: the roll stopped at orders-2: the pod of orders-2 cannot be created: pods "orders-2" is forbidden: exceeded quota: db; revert the commit to go back`},
		{name: "292: a commit of settings at rest", change: with(tuned, podless(2, time.Minute), forbidden(time.Minute)), want: "start the roll on 3.5.35: orders-2 does not run as it was, and Git asks for something else"},
		{name: "292: reaches the pod, as no other one stops", change: with(tuned, podless(2, time.Minute), forbidden(time.Minute), func(s *situation.Situation) { s.Observed.Set.Template = "c" }), want: "set the StatefulSet's partition to 2: orders-2 does not run, so its pod is created as Git asks for, and no other one restarts"},
		{name: "292: not where others would be reached first", change: with(tuned, podless(0, time.Minute), forbidden(time.Minute)), want: "Unhealthy: the pod of orders-0 cannot be created: pods \"orders-2\" is forbidden: exceeded quota: db; let Kubernetes admit it as it was"},
		{name: "292: nor while another one is down", change: with(tuned, podless(2, time.Minute), forbidden(time.Minute), down(1)), want: "Unhealthy: the pod of orders-2 cannot be created", lacks: "would reach"},
		{name: "292: nor with another version", change: with(commit(newVersion), podless(2, time.Minute), forbidden(time.Minute)), want: "Unhealthy: the pod of orders-2 cannot be created"},
		{name: "I14: nor back to one, where that is another commit", change: with(commit(newVersion), begun, at(2), podless(2, time.Minute), forbidden(time.Minute), tuned, func(s *situation.Situation) { s.Desired.Spec.Version = oldVersion }), want: "Stopped: the roll stopped at orders-2"},
		{name: "I14: nor as what was before a rollout that is not closed", change: with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), at(0), podless(2, time.Minute), forbidden(time.Minute), tuned), want: "Stopped: the roll stopped at orders-2"},
		{name: "292: nor where nobody refuses it", change: with(tuned, podless(2, time.Minute)), want: "Waiting: the pod of orders-2 does not exist"},
	})
	checkRule(t, settled, []ruleCase{
		{name: "291: that is told below what heals", change: with(podless(2, time.Minute), forbidden(time.Minute))},
		{name: "292: a revert", change: with(letGo(2), podless(2, time.Minute), forbidden(time.Minute), func(s *situation.Situation) { s.Desired.Template = "a" }), want: "set the StatefulSet's partition to 3: Git no longer wants what orders-2 was let go for, and its pod does not exist"},
		{name: "292: also while nobody has asked the members", change: with(letGo(2), podless(2, time.Minute), reverts, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "set the StatefulSet's partition to 3"},
		{name: "292: or another commit", change: with(letGo(2), podless(2, time.Minute), forbidden(time.Minute), tuned), want: "set the StatefulSet's partition to 3"},
		{name: "292: which is no reason for a pod that comes as what it was", change: with(letGo(2), podless(1, time.Minute), forbidden(time.Minute), tuned)},
		{name: "I14: nor to go back from a minor that nobody else runs", change: with(commit(newVersion), begun, at(2), podless(2, time.Minute), forbidden(time.Minute), unseenBy(0, 1), func(s *situation.Situation) {
			s.Desired.Template, s.Desired.Spec.Version = "a", s.Observed.Set.CurrentVersion
		})},
		{name: "I14: nor to one that others ran when they last answered", change: with(commit(newVersion), begun, at(2), podless(2, time.Minute), forbidden(time.Minute), unseenBy(0, 1), of(0, func(m *state.Member) { m.Version = oldVersion }), reverts)},
		{name: "I14: but to one that others run", change: with(commit(newVersion), begun, at(2), podless(2, time.Minute), reverts), want: "set the StatefulSet's partition to 3"},
		{name: "I14: nor up from a downgrade that etcd has carried out", change: with(runs("3.7.3"), commit("3.6.16"), begun, at(2), podless(2, time.Minute), reverts, looks(func(r *state.Round) { r.ClusterVersion = "3.6.0" }))},
		{name: "I14: nor where it is unknown what it was", change: with(letGo(2), podless(2, time.Minute), func(s *situation.Situation) {
			s.Desired.Template, s.Observed.Set.Version, s.Observed.Set.CurrentVersion = "a", "", ""
		})},
		{name: "292: what Git wants stays let go", change: with(letGo(2), podless(2, time.Minute))},
		{name: "I14: nor while the waypoint is unknown", change: with(commit("3.7.3"), begun, at(2), podless(2, time.Minute), func(s *situation.Situation) {
			s.Desired.Template, s.Observed.Set.Version = "far", newVersion
		})},
	})
}

// reverts is a commit that goes back to what the StatefulSet had before its roll.
func reverts(s *situation.Situation) {
	s.Desired.Template, s.Desired.Spec.Version = s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion
}

// at is a partition that has reached a member.
func at(ordinal int32) mutation {
	return func(s *situation.Situation) { s.Observed.Set.Partition = ordinal }
}

// unrecorded is a cluster whose pods exist, and that has not formed yet.
func unrecorded(s *situation.Situation) { s.Observed.Record = &state.Record{} }

// unseenBy lets members not answer.
func unseenBy(ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		for _, i := range ordinals {
			down(i)(s)
		}
	}
}
