package recovery

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// needlessRecovery answers a recovery that is in Git while the cluster has a
// quorum. It is recorded as refused: what was left in a file must never
// be what a later loss finds there, as that would be automatic.
func needlessRecovery(s *situation.Situation, oneShot string) verdict.Verdict {
	r := s.Observed.Round()
	switch {
	case oneShot == "" || r == nil:
		return verdict.Pass()
	case r.Problem != "":
		return verdict.Wait(s, "it is not certain yet that the quorum is lost, so the recovery is not begun", s.NewestPod(),
			"check the pods of the members: those that may still start count as members that come back").Measured("%s", r.Problem)
	case s.Observed.Record.RefusedRecovery != oneShot:
		return verdict.Do(action.RefuseRecovery{OneShot: oneShot}, "the cluster has a quorum: there is nothing to recover from")
	}
	return verdict.Refuse("spec.recovery is refused: the cluster has a quorum, and a recovery would lose what was written",
		"take spec.recovery out of the file; should the quorum be lost one day, write it then")
}

// begin begins the recovery that Git asks for, if it is one of this cluster, in
// its present state, and can go well.
func begin(s *situation.Situation, oneShot string) verdict.Verdict {
	spec := s.Desired.Spec.Recovery
	switch id := s.Observed.Record.ClusterID; {
	case spec.ClusterID != id:
		return refuseRecovery(s, fmt.Sprintf("it names cluster %s, and this is cluster %s", spec.ClusterID, id), "name this cluster, if it is the one that you mean")
	case s.Observed.Record.RefusedRecovery == oneShot:
		return refuseRecovery(s, "it was in Git before the quorum was lost, so it was not decided for this loss",
			"take it out in one commit, and write it again in the next one if you still want it")
	case spec.ObjectURL != "":
		return beginFromBackup(s, oneShot)
	}
	return beginFromMember(s, oneShot)
}

// refuseRecovery refuses a recovery, with what is left for another choice.
func refuseRecovery(s *situation.Situation, why, do string) verdict.Verdict {
	left := s.Inventory()
	return verdict.Refuse(fmt.Sprintf("spec.recovery is refused: %s; %s", why, left.Text), do).About(left).Again(verdict.Soon)
}

// beginFromMember begins with the data of a survivor: one that answers, so that it
// is known how far it is, and that no other one is ahead of.
func beginFromMember(s *situation.Situation, oneShot string) verdict.Verdict {
	name := s.Desired.Spec.Recovery.Member
	id, recorded := s.Observed.Record.Members[name]
	if !recorded {
		return refuseRecovery(s, name+" is no recorded member", "name one of the members listed here")
	}
	chosen := s.Remnant(name, id)
	if chosen.Member == nil {
		why := name + " does not answer, so its data is unknown"
		if !chosen.Why.None() {
			why += ": " + chosen.Why.Text
		}
		return refuseRecovery(s, why, "name a member that answers, or a backup")
	}
	for _, other := range s.Remnants() {
		if other.Member != nil && situation.Ahead(other.Member, chosen.Member) {
			return refuseRecovery(s, fmt.Sprintf("%s is further than %s", other.Name, name), "name "+other.Name+", so that nothing more than need be is lost")
		}
	}
	if v := startable(s, chosen.Member.Version); !v.Silent() {
		return v
	}
	if v := usable(s, name); !v.Silent() {
		return v
	}
	return verdict.Do(action.BeginRecovery{
		OneShot: oneShot, ClusterID: s.Observed.Record.ClusterID, Member: name, MemberID: id,
		Revision: chosen.Member.Revision, Version: s.Observed.Set.Version,
	}, fmt.Sprintf("as Git says: the cluster continues from what %s has; what only the others had is lost", name)).
		Measured("revision %d", chosen.Member.Revision)
}

// startable refuses data that the release in the pods' template cannot take.
func startable(s *situation.Situation, version string) verdict.Verdict {
	from, errFrom := release.Parse(version)
	to, errTo := release.Parse(s.Observed.Set.Version)
	if errFrom != nil || errTo != nil {
		return refuseRecovery(s, fmt.Sprintf("it is unknown whether etcd %s can start on data of %s", s.Observed.Set.Version, version), "name a backup of a known release")
	}
	if !to.StartsOn(from) {
		return refuseRecovery(s, fmt.Sprintf("the pods are made for etcd %s, which cannot start on data of %s", to, from),
			"name a member of the other release, or a backup")
	}
	return verdict.Pass()
}

// usable reports whether the member's volume can be the first one of the recovered
// cluster.
func usable(s *situation.Situation, name string) verdict.Verdict {
	switch v := s.Observed.Volume(name); {
	case v == nil:
		return refuseRecovery(s, "the volume claim of "+name+" does not exist", "name a member whose volume is there, or a backup")
	case v.Terminating:
		return refuseRecovery(s, "the volume claim of "+name+" is being deleted", "name a member whose volume stays, or a backup")
	}
	return verdict.Pass()
}

// beginFromBackup begins with a backup, on the first volume that can be used. A
// member that still answers is not asked: a person that names a backup does not want
// what the members have.
func beginFromBackup(s *situation.Situation, oneShot string) verdict.Verdict {
	for _, m := range s.Remnants() {
		p, v := s.Observed.Pod(m.Name), s.Observed.Volume(m.Name)
		if naming.Ordinal(m.Name) >= s.Desired.Spec.Replicas || p == nil || p.Terminating || p.Damage == state.DamageForeign || v == nil || v.Terminating || v.Trouble != "" {
			continue
		}
		return verdict.Do(action.BeginRecovery{
			OneShot: oneShot, ClusterID: s.Observed.Record.ClusterID, Member: m.Name, MemberID: s.Observed.Record.Members[m.Name],
			ObjectURL: s.Desired.Spec.Recovery.ObjectURL, Version: s.Observed.Set.Version,
		}, "as Git says: the cluster continues from the backup; what was written after it is lost")
	}
	return refuseRecovery(s, "no member has a pod and a volume that the backup could be put on",
		"bring back a node, or delete the pods and claims that are lost permanently, so that the StatefulSet creates new ones")
}
