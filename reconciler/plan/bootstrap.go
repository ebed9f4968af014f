package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// bootstrap makes a new cluster: what a member needs before it starts, then
// all members at once, then the record of their identities.
func bootstrap(s *situation.Situation) verdict.Verdict {
	if s.Formed() {
		return verdict.Pass()
	}
	if refused := situation.Messages(release.Bad(s.WantedVersion()), release.Refuse); len(refused) > 0 {
		return verdict.Refuse(refused[0], "name another release in spec.version")
	}
	if s.Observed.Record == nil {
		return verdict.Do(action.CreateRecord{Owner: s.NextOwner(), Founders: s.Desired.Spec.Replicas}, "no cluster of this name exists: its record, with its own token, comes before anything else")
	}
	if v := objects.Forming(s); !v.Silent() {
		return v
	}
	for _, obj := range s.Observed.Objects {
		if obj.State == state.ObjectMissing && !s.Withheld(obj) {
			return verdict.Do(action.ApplyObject{ObjectKind: obj.Kind, Name: obj.Name}, "members find each other, and clients find them, through it")
		}
	}
	if v := restorage(s); !v.Silent() {
		return v
	}
	restoring := s.Observed.Record.Recovering
	switch {
	case restoring != nil && s.Observed.Set == nil:
		return verdict.Do(action.CreateSet{Replicas: 0}, "it defines where and as which member the first one will run; no pod starts before its volume is restored")
	case restoring != nil && !s.Started():
		a := action.NewStartRoll(s)
		a.Partition = 0
		return verdict.Do(a, "no member has started yet, and Git now says otherwise")
	case restoring != nil:
		return recovery.FillVolume(s, *restoring)
	}
	if s.Observed.Set == nil {
		if v := begunOtherwise(s); !v.Silent() {
			return v
		}
		return verdict.Do(action.CreateSet{Replicas: s.Founders()},
			fmt.Sprintf("everything that %s of etcd %s needs is in place", state.Plural(int(s.Founders()), "member"), s.Desired.Spec.Version))
	}
	if v := resizeTo(s); !v.Silent() {
		return v
	}
	return forming(s)
}

// begunOtherwise refuses to start other members than those that had begun the
// cluster, when it was deleted before it had formed: what they have written is on
// the volumes, and only they are sure to read it.
func begunOtherwise(s *situation.Situation) verdict.Verdict {
	was := s.Observed.Record.Applied
	if was == nil || len(s.Observed.Volumes) == 0 || s.SameSettings(was) {
		return verdict.Pass()
	}
	return verdict.Refuse(
		fmt.Sprintf("volume claim %s is of members of etcd %s that had begun this cluster when it was deleted, and the file has changed since", s.Observed.Volumes[0].Claim, was.Version),
		"revert the file to what it was before the deletion, or delete the volume claims if nothing on them is needed")
}

// forming waits until every member has joined, and then has their IDs recorded.
func forming(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Round()
	if v := refusedFounders(s); !v.Silent() {
		return v
	}
	if problem := s.Unformed(r); !problem.None() {
		if p := s.NeverStarted(); p != nil {
			return recovery.Reform(s, p)
		}
		if ready := readyPods(s); r != nil && r.Problem != "" && ready >= state.Quorum(int(s.Founders())) {
			v := recovery.Unreachable(s, ready, int(s.Founders()), false)
			v.Hold.Message, v.Hold.Since = v.Hold.Message+"; until the IDs of its members are recorded, clients are not led to it", s.OldestPod()
			return v
		}
		began := s.OldestPod()
		if began.IsZero() {
			began = s.Observed.Set.ChangedAt
		}
		return verdict.Wait(s, "the cluster is forming: "+problem.Text, began,
			"a cluster that never held data can be started over: delete its StatefulSet, its volume claims and ConfigMap "+naming.Record(s.Desired.Name)).About(problem)
	}
	members := map[string]string{}
	for _, m := range r.Members {
		members[m.Name] = m.ID
	}
	oldest, _, _ := s.VersionSpan()
	return verdict.Do(action.RecordFormed{ClusterID: r.ClusterID, Members: members, BornOn: oldest.Line()},
		"every member has joined; from now on an empty volume is a loss, not a beginning")
}

// refusedFounders tells of first members whose pods Kubernetes refuses, and gives them
// what Git asks for now. Pods that exist are left alone: where those have a quorum, the
// cluster forms with pods of two templates, and the others follow in a roll.
func refusedFounders(s *situation.Situation) verdict.Verdict {
	m := situation.MissingOf(s)
	if m.Refusal == nil {
		return verdict.Pass()
	}
	name, refusal := m.Refused[0], m.Refusal
	lowest := naming.Ordinal(name)
	if !s.Started() && s.OthersHave(lowest, s.Desired.Template) && (len(s.Observed.Pods) == 0 || s.Observed.Set.Version == s.Desired.Spec.Version) {
		a := action.NewStartRoll(s)
		a.Partition = lowest
		return verdict.Do(a, fmt.Sprintf("the cluster has never formed, because Kubernetes refuses the pod of %s: %s; Git now says otherwise", name, refusal.Why))
	}
	v := verdict.Unhealthy(fmt.Sprintf("the cluster cannot form: the pod of %s cannot be created: %s", name, refusal.Why),
		"let Kubernetes admit it (quota, Pod Security, policies, priority class), or commit what it admits").At(name)
	v.Hold.Since = refusal.Since
	return v
}

// readyPods is how many of the first members' pods are ready.
func readyPods(s *situation.Situation) int {
	var names []string
	for ordinal := range s.Founders() {
		names = append(names, naming.Member(s.Desired.Name, ordinal))
	}
	return recovery.Ready(s, names)
}
