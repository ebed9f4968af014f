package plan

import (
	"maps"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// newPods are pods of an unformed cluster, started age ago with the first
// template.
func newPods(age time.Duration, trouble string) mutation {
	return func(s *situation.Situation) {
		for i := s.Desired.Spec.Replicas - 1; i >= 0; i-- {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{
				Name: naming.Member("orders", i), Ordinal: i, UID: "pod", Template: "a", Version: oldVersion,
				Created: noon.Add(-age), Trouble: trouble, Ran: trouble == "",
			})
		}
	}
}

// joined is a look at members who have all joined.
func joined(s *situation.Situation) {
	s.Observed.Rounds = healthy(s.Desired.Spec.Replicas).Observed.Rounds
}

func TestBootstrap(t *testing.T) {
	forming := with(unformed, newPods(time.Minute, ""))
	pulling := with(unformed, newPods(time.Minute, "ImagePullBackOff"))
	look := func(f func(*state.Round)) mutation {
		return with(forming, joined, func(s *situation.Situation) { f(s.Observed.Round()) })
	}
	checkRule(t, bootstrap, []ruleCase{
		{name: "294: a pod that Kubernetes refuses", change: with(podless(2, time.Minute), forbidden(time.Minute), unrecorded), want: `Unhealthy: the cluster cannot form: the pod of orders-2 cannot be created: pods "orders-2" is forbidden: exceeded quota: db; let Kubernetes admit it`},
		{name: "294: a commit reaches it, and no pod that exists", change: with(tuned, podless(2, time.Minute), forbidden(time.Minute), unrecorded), want: "start the roll on 3.5.35: the cluster has never formed, because Kubernetes refuses the pod of orders-2"},
		{name: "294: not where it would reach one that exists first", change: with(tuned, podless(0, time.Minute), forbidden(time.Minute), unrecorded), want: "Unhealthy: the cluster cannot form: the pod of orders-0"},
		{name: "I14: nor with another version beside pods that may have run", change: with(commit(newVersion), podless(2, time.Minute), forbidden(time.Minute), unrecorded), want: "Unhealthy: the cluster cannot form"},
		{name: "I14: with none it may be another version", change: with(commit(newVersion), unformed, forbidden(time.Minute)), want: "start the roll 3.5.35 → 3.6.16: the cluster has never formed, because Kubernetes refuses the pod of orders-0"},
		{name: "294: what was refused and exists by now is not", change: with(forbidden(time.Minute), unrecorded), want: "record cluster c1: every member has joined"},
		{name: "298: none is formed with what admission makes of it", change: with(unformed, admitted("StatefulSet", state.WeightMembers, time.Minute)), want: "Refused: StatefulSet orders: the API server changes"},
		{name: "33: a formed cluster is never made again"},
		{name: "28: the record comes first", change: func(s *situation.Situation) { s.Observed.Record, s.Observed.Set = nil, nil }, want: "create the record: "},
		{name: "30: then the objects", change: with(unformed, func(s *situation.Situation) { s.Observed.Objects[0].State, s.Observed.Set = state.ObjectMissing, nil }), want: "apply Service orders: "},
		{name: "30: then the members", change: with(unformed, func(s *situation.Situation) { s.Observed.Set = nil }), want: "create 3 members: everything that 3 members of etcd 3.5.35 needs is in place"},
		{name: "I14: the volumes of members that had begun otherwise", change: with(unformed, func(s *situation.Situation) {
			s.Observed.Set, s.Observed.Volumes = nil, memberVolumes(3)
			s.Observed.Record.Applied = &state.Applied{Version: "3.5.35", Settings: "others"}
		}), want: "Refused: volume claim data-orders-0 is of members of etcd 3.5.35 that had begun this cluster when it was deleted, and the file has changed since; revert the file"},
		{name: "130: of members that had begun like this", change: with(unformed, func(s *situation.Situation) {
			s.Observed.Set, s.Observed.Volumes = nil, memberVolumes(3)
			s.Observed.Record.Applied = &state.Applied{Version: "3.5.35", Settings: s.Settings()}
		}), want: "create 3 members: "},
		{name: "130: without volumes nothing is left of them", change: with(unformed, func(s *situation.Situation) {
			s.Observed.Set, s.Observed.Record.Applied = nil, &state.Applied{Version: "3.5.35", Settings: "others"}
		}), want: "create 3 members: "},
		{name: "27: one member", size: 1, change: with(unformed, func(s *situation.Situation) { s.Observed.Set = nil }), want: "create 1 member: "},
		{name: "a release that must not be run is refused", change: with(unformed, func(s *situation.Situation) { s.Desired.Spec.Version = "3.5.1" }), want: "Refused: 3.5.1 "},
		{name: "30: no member was asked", change: forming, want: "Waiting: the cluster is forming: no member was asked yet"},
		{name: "50: pods that another writer has scaled away", change: with(forming, func(s *situation.Situation) { s.Observed.Set.Replicas = 1 }), want: "resize the StatefulSet 1 → 3"},
		{name: "142: the record of nobody's plan names nobody", change: with(asks(us()), func(s *situation.Situation) { s.Observed.Record, s.Observed.Set = nil, nil }), want: "create the record"},
		{name: "31: a pod that is not scheduled is named", change: with(unformed, newPods(time.Minute, "not scheduled: no node")), want: "Waiting: the cluster is forming: orders-2: not scheduled: no node"},
		{name: "32: no answer", change: look(func(r *state.Round) { r.Problem = "no such host" }), want: "Waiting: the cluster is forming: the members cannot be listed (no such host)"},
		{name: "two of three have joined", change: look(func(r *state.Round) { r.Members = r.Members[:2] }), want: "2 of 3 members have joined"},
		{name: "no leader", change: look(func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].Leader = ""
			}
		}), want: "no leader yet"},
		{name: "a member does not answer", change: look(func(r *state.Round) { r.Members[0].Problem = "timeout" }), want: "member orders-0 does not answer (timeout)"},
		{name: "a member that has not started has no name", change: look(func(r *state.Round) { r.Members[0].Name = "" }), want: "member m0"},
		{name: "28: all have joined", change: with(forming, joined), want: "record cluster c1: every member has joined"},
		{name: "after five minutes a person is told what to do", change: with(unformed, newPods(6*time.Minute, "")), want: "can be started over: delete its StatefulSet, its volume claims and ConfigMap orders-record"},
		{name: "before five minutes nobody is", change: forming, want: "no member was asked yet"},
		{name: "61: a bad image and no new commit waits", change: pulling, want: "Waiting: the cluster is forming: orders-2: ImagePullBackOff"},
		{name: "61: a bad image and a new commit gets the new template", change: with(pulling, commit(newVersion)), want: "start the roll 3.5.35 → 3.6.16: the cluster has never formed, because of orders-2: ImagePullBackOff"},
		{name: "61: then the broken pods make way", change: with(pulling, commit(newVersion), begun), want: "restart orders-2 3.5.35 → 3.6.16: the cluster has never formed"},
		{name: "61: one that only starts has no trouble yet", change: with(pulling, commit(newVersion), func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Trouble = ""
			}
		}), want: "Waiting: the cluster is forming"},
		{name: "one that is being deleted is not deleted twice", change: with(pulling, commit(newVersion), begun, func(s *situation.Situation) { s.Observed.Pods[0].Terminating = true }), want: "restart orders-1 "},
		{name: "33: etcd that ran once may hold data, so nothing is started over", change: with(pulling, commit(newVersion), func(s *situation.Situation) { s.Observed.Pods[2].Ran = true }), want: "Waiting: the cluster is forming"},
	})
}

// The StatefulSet is a moment old when it has no pods: that is no time to tell
// a person to delete volumes.
func TestAClusterWithoutPodsHasJustBegun(t *testing.T) {
	s := healthy(3)
	unformed(s)
	if h := bootstrap(s).Hold; h == nil || h.Do != "" {
		t.Errorf("hold %+v, want one with nothing to do", h)
	}
}

func TestRecordFormedCarriesEveryID(t *testing.T) {
	s := healthy(3)
	want := s.Observed.Record.Members
	with(unformed, newPods(time.Minute, ""), joined)(s)
	v := bootstrap(s)
	if v.Step == nil {
		t.Fatalf("no step: %s", words(v))
	}
	a, ok := v.Step.Action.(action.RecordFormed)
	if !ok || a.ClusterID != "c1" || !maps.Equal(a.Members, want) {
		t.Errorf("got %+v, want cluster c1 with %v", v.Step.Action, want)
	}
}

// A reform lowers the partition to 0, which is safe only because nothing ran.
func TestOnlyAReformStartsBelowThePods(t *testing.T) {
	reform := healthy(3)
	with(unformed, newPods(time.Minute, "ImagePullBackOff"), commit(newVersion))(reform)
	roll := healthy(3)
	commit(newVersion)(roll)
	for _, c := range []struct {
		name string
		v    verdict.Verdict
		want int32
	}{{"reform", bootstrap(reform), 0}, {"roll", start(roll), 3}} {
		a, ok := c.v.Step.Action.(action.StartRoll)
		if !ok || a.Partition != c.want {
			t.Errorf("%s: got %+v, want partition %d", c.name, c.v.Step.Action, c.want)
		}
	}
}
