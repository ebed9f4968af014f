package plan

import (
	"cmp"
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/bundles"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/logs"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
)

// start gives the StatefulSet the new template and touches no pod.
func start(s *situation.Situation) verdict.Verdict {
	if !s.Rolling() || s.Started() {
		return verdict.Pass()
	}
	if v := agreed(s); !v.Silent() {
		return v
	}
	if v := volumes.Places(s, s.Outdated()...); !v.Silent() && !s.Surging() {
		return v // by way of a second member it may come to any node
	}
	if s.Waypoint().Flush {
		return verdict.Do(action.NewStartRoll(s), logs.Reason(s))
	}
	return verdict.Do(action.NewStartRoll(s), certificates.WhyTransport(s)+certificates.WhyIssuer(s)+certificates.WhyRoll(s)+"the StatefulSet gets the new template; its partition is above every pod, so none restarts yet"+bundles.TakesUp(s))
}

// leader moves the leadership off the member that is about to stop, so that the
// cluster need not wait for an election. First of all that member can come back.
func leader(s *situation.Situation) verdict.Verdict {
	t := s.NextRestart()
	if !s.Rolling() || t == nil {
		return verdict.Pass()
	}
	if v := volumes.Places(s, *t); !v.Silent() {
		return v
	}
	l := s.Observed.Round().Leader()
	if l == nil || l.Name != t.Name || len(s.Observed.Pods) == 1 {
		return verdict.Pass()
	}
	transferee := s.Transferee(t.Name)
	if transferee == nil {
		return verdict.Unhealthy(t.Name+" is the leader and no other member can take over", "").At(t.Name)
	}
	return verdict.Do(action.MoveLeader{From: l.Name, FromID: l.ID, To: transferee.Name, ToID: transferee.ID},
		fmt.Sprintf("%s restarts next, and moving the leader first avoids an election", l.Name))
}

// restart takes one member, from the highest ordinal down, by lowering the
// partition to it.
func restart(s *situation.Situation) verdict.Verdict {
	t := s.NextRestart()
	if !s.Rolling() || t == nil {
		return verdict.Pass()
	}
	a := action.RestartMember{
		SetUID: s.Observed.Set.UID, Member: t.Name, Ordinal: t.Ordinal, PodUID: t.UID,
		MemberID: s.Observed.Record.Members[t.Name], Partition: t.Ordinal,
		From: t.Version, To: s.Desired.Spec.Version,
	}
	if t.Ordinal != s.Outdated()[0].Ordinal {
		return restartBroken(s, a)
	}
	return verdict.Do(a, s.RestartReason(t))
}

// restartBroken restarts a broken member that the partition cannot reach without
// taking a healthy one first: its pod is deleted and comes back with the
// template of the last roll that ended.
func restartBroken(s *situation.Situation, a action.RestartMember) verdict.Verdict {
	if p := s.Observed.Pod(a.Member); p.Template == s.Observed.Set.CurrentTemplate {
		return verdict.Refuse(
			fmt.Sprintf("%s cannot start (%s), and a new pod for it would be the same; the roll would have to take a healthy member first", a.Member, p.Trouble),
			"fix what keeps that pod from starting").At(a.Member)
	}
	if version := s.ClusterVersion(); !s.Alone() && state.Minor(s.Observed.Set.CurrentVersion) != state.Minor(version) {
		return verdict.Refuse(
			fmt.Sprintf("%s is broken and would come back with etcd %s, while the cluster version is %s",
				a.Member, s.Observed.Set.CurrentVersion, cmp.Or(version, "unknown")),
			"restore that member manually").At(a.Member)
	}
	a.ByDeletion, a.Partition, a.To = true, s.Observed.Set.Partition, s.Observed.Set.CurrentVersion
	return verdict.Do(a, "an abandoned rollout left it broken; it comes back as it was before that rollout, while the others keep the quorum")
}

// checkLeader is what a person can do where etcd does not agree by itself on what its
// members run: that is the leader's to do.
const checkLeader = "check the log of the leader, which decides that: `etcdctl endpoint status --cluster` shows who it is and what each member runs"

// end closes a roll: it is over when the cluster's own version says so, not
// when the pods do. Between two rolls the partition is above every pod, so
// that an edit of the StatefulSet by hand restarts nothing.
func end(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Rolling() {
		return verdict.Pass()
	}
	if r := s.Observed.Round(); s.Unfinished() && state.Minor(r.ClusterVersion) != s.WantedVersion().Line() {
		return verdict.Wait(s, fmt.Sprintf("every member runs etcd %s; the cluster version is still %s and follows within seconds",
			s.Desired.Spec.Version, r.ClusterVersion), s.NewestPod(), checkLeader).Again(verdict.Quickly)
	}
	if r := s.Observed.Round(); s.Unfinished() && r.Downgrading {
		return verdict.Wait(s, fmt.Sprintf("every member runs etcd %s; etcd ends the downgrade within seconds", s.Desired.Spec.Version), s.NewestPod(), checkLeader).Again(verdict.Quickly)
	}
	if s.Observed.Set.CurrentTemplate != s.Desired.Template {
		return verdict.Wait(s, "every pod has the template; the StatefulSet controller closes the roll", s.NewestPod(), s.AskController())
	}
	if s.Observed.Set.Partition != s.Observed.Set.Replicas {
		return verdict.Do(action.EndRoll{SetUID: s.Observed.Set.UID, Template: s.Desired.Template, Replicas: s.Observed.Set.Replicas},
			"every pod has the template; the partition goes back above them all, so that no manual edit restarts one")
	}
	return verdict.Pass()
}

// applied records what was applied: another release only when all members still hold the
// same data under it.
func applied(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Intermediate() || (s.Observed.Record.Applied != nil && s.Observed.Record.Applied.SpecHash == s.Desired.SpecHash) {
		return verdict.Pass()
	}
	record := verdict.Do(action.NewRecordApplied(s, s.Desired.Spec.Version),
		fmt.Sprintf("every member runs etcd %s and is healthy, and so is the cluster version", s.Desired.Spec.Version))
	if was := s.Observed.Record.Applied; s.MemberCount() < 2 || was == nil || was.Version == s.Desired.Spec.Version {
		return record
	}
	return onCompared(s, record)
}
