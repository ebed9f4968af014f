package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/schema/release"
)

// wishedRecovery is the recovery that Git asks for and that has not been done, in
// words; "" for none. It is once and for all: the words name the lost cluster.
func (s *situation) wishedRecovery() string {
	r := s.d.Spec.Recovery
	if r.Source() == "" {
		return ""
	}
	oneShot := r.ClusterID + " from " + r.Source()
	if slices.ContainsFunc(s.o.Record.Recovered, func(done Recovered) bool { return done.OneShot == oneShot }) {
		return ""
	}
	return oneShot
}

// needlessRecovery answers a recovery that stands in Git while the cluster has a
// quorum. It is written down as refused: what somebody left in a file must never
// be what a later loss finds there, as that would be automatic.
func (s *situation) needlessRecovery(oneShot string) verdict {
	r := s.o.round()
	switch {
	case oneShot == "" || r == nil:
		return pass()
	case r.Problem != "":
		return wait("it is not certain yet that the quorum is lost, so the recovery is not begun: "+r.Problem, s.newestPod())
	case s.o.Record.RefusedRecovery != oneShot:
		return do(RefuseRecovery{OneShot: oneShot}, "the cluster has a quorum: there is nothing to recover from")
	}
	return refuse("spec.recovery is refused: the cluster has a quorum, and a recovery would lose what was written",
		"take spec.recovery out of the file; should the quorum be lost one day, write it then")
}

// begin begins the recovery that Git asks for, if it is one of this cluster, in
// its present state, and can go well.
func (s *situation) begin(oneShot string) verdict {
	wish := s.d.Spec.Recovery
	switch id := s.o.Record.ClusterID; {
	case wish.ClusterID != id:
		return s.refuseRecovery(fmt.Sprintf("it names cluster %s, and this is cluster %s", wish.ClusterID, id), "name this cluster, if it is the one that you mean")
	case s.o.Record.RefusedRecovery == oneShot:
		return s.refuseRecovery("it stood in Git before the quorum was lost, so nobody has decided it for this loss",
			"take it out in one commit, and write it again in the next one if you still want it")
	case wish.ObjectURL != "":
		return s.beginFromBackup(oneShot)
	}
	return s.beginFromMember(oneShot)
}

// refuseRecovery refuses a recovery, with what is left for another choice.
func (s *situation) refuseRecovery(why, do string) verdict {
	v := refuse(fmt.Sprintf("spec.recovery is refused: %s; %s", why, s.inventory()), do)
	v.hold.Again = soon
	return v
}

// beginFromMember begins with the data of a survivor: one that answers, so that it
// is known how far it is, and that no other one is ahead of.
func (s *situation) beginFromMember(oneShot string) verdict {
	name := s.d.Spec.Recovery.Member
	id, recorded := s.o.Record.Members[name]
	if !recorded {
		return s.refuseRecovery(name+" is no recorded member", "name one of the members listed here")
	}
	chosen := s.remnant(name, id)
	if chosen.member == nil {
		return s.refuseRecovery(name+" does not answer, so nobody knows what it has: "+chosen.why, "name a member that answers, or a backup")
	}
	for _, other := range s.remnants() {
		if other.member != nil && ahead(other.member, chosen.member) {
			return s.refuseRecovery(fmt.Sprintf("%s is further than %s", other.name, name), "name "+other.name+", so that nothing more than need be is lost")
		}
	}
	if v := s.startable(chosen.member.Version); !v.silent() {
		return v
	}
	if v := s.usable(name); !v.silent() {
		return v
	}
	return do(BeginRecovery{
		OneShot: oneShot, ClusterID: s.o.Record.ClusterID, Member: name, MemberID: id,
		Revision: chosen.member.Revision, Version: s.o.Set.Version,
	}, fmt.Sprintf("Git says so: the cluster goes on from what %s has, revision %d; what only the others had is lost", name, chosen.member.Revision))
}

// ahead says whether a has something that b lacks.
func ahead(a, b *Member) bool {
	return a.Revision > b.Revision || (a.Revision == b.Revision && a.Applied > b.Applied)
}

// startable refuses data that the release in the pods' template cannot take.
func (s *situation) startable(version string) verdict {
	from, errFrom := release.Parse(version)
	to, errTo := release.Parse(s.o.Set.Version)
	if errFrom != nil || errTo != nil {
		return s.refuseRecovery(fmt.Sprintf("it is unknown whether etcd %s can start on data of %s", s.o.Set.Version, version), "name a backup of a known release")
	}
	if from.Major != to.Major || to.Minor < from.Minor || to.Minor > from.Minor+1 {
		return s.refuseRecovery(fmt.Sprintf("the pods are made for etcd %s, which cannot start on data of %s", to, from),
			"name a member of the other release, or a backup")
	}
	return pass()
}

// usable says whether the member's volume can be the first one of the recovered
// cluster.
func (s *situation) usable(name string) verdict {
	switch v := s.o.volume(name); {
	case v == nil:
		return s.refuseRecovery("the volume claim of "+name+" does not exist", "name a member whose volume is there, or a backup")
	case v.Terminating:
		return s.refuseRecovery("the volume claim of "+name+" is being deleted", "name a member whose volume stays, or a backup")
	}
	return pass()
}

// beginFromBackup begins with a backup, on the first volume that can be used. A
// member that still answers is not asked: whoever names a backup does not want
// what the members have.
func (s *situation) beginFromBackup(oneShot string) verdict {
	for _, m := range s.remnants() {
		p, v := s.o.pod(m.name), s.o.volume(m.name)
		if ordinalOf(m.name) >= s.d.Spec.Replicas || p == nil || p.Terminating || p.Damage == DamageForeign || v == nil || v.Terminating || v.Trouble != "" {
			continue
		}
		return do(BeginRecovery{
			OneShot: oneShot, ClusterID: s.o.Record.ClusterID, Member: m.name, MemberID: s.o.Record.Members[m.name],
			ObjectURL: s.d.Spec.Recovery.ObjectURL, Version: s.o.Set.Version,
		}, "Git says so: the cluster goes on from the backup; what was written after it is lost")
	}
	return s.refuseRecovery("no member has a pod and a volume that the backup could be put on",
		"bring back a node, or delete the pods and claims that are lost for good, so that the StatefulSet makes new ones")
}
