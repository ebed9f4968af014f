package plan

import (
	"fmt"

	"github.com/quorate/quorate/schema"
)

// shrink removes the members that Git no longer wants, one at a time, the highest
// ordinal first, as a number. It comes before a roll, which then has fewer to
// restart, and is not stopped by a pod that belongs to no member.
func shrink(s *situation) verdict {
	if !s.formed() || s.complete() || s.rollVictim() != nil {
		return pass() // whom a given-up roll has broken is mended first
	}
	if !s.tooMany() {
		return pass()
	}
	names := s.byOrdinal()
	last := names[len(names)-1]
	why := "Git wants " + members(int(s.d.Spec.Replicas))
	return do(BeginLeave{Member: last, ID: s.o.Record.Members[last], Why: why}, why+"; the highest ordinal goes first")
}

// grow adds the members that Git wants, one at a time, the lowest free ordinal
// first. It waits for the end of a roll: a member that joins has nothing to roll.
func grow(s *situation) verdict {
	if !s.formed() || s.rolling() || s.complete() {
		return pass()
	}
	for ordinal := range s.d.Spec.Replicas {
		if name := podName(s.d.Name, ordinal); !s.isMember(name) {
			return s.rejoin(name, fmt.Sprintf("Git wants %s, and there are %d", members(int(s.d.Spec.Replicas)), s.memberCount()), false)
		}
	}
	return pass()
}

// remove deletes the volumes of members that were removed for good, where Git
// says so. Without that word they are kept until their ordinal is used again.
func remove(s *situation) verdict {
	if !s.formed() || s.d.Spec.Storage.RemovedVolumes != schema.VolumesDelete {
		return pass()
	}
	for _, v := range s.o.Volumes {
		if _, retired := s.o.Record.Retired[v.Member]; !retired || v.Ordinal < s.size() || v.Terminating || !v.Own() {
			continue
		}
		if s.o.pod(v.Member) != nil {
			return wait("the pod of the former "+v.Member+" shuts down", s.now)
		}
		return do(DeleteVolume{Claim: v.Claim, UID: v.UID, Member: v.Member},
			v.Member+" was removed, and spec.storage.removedVolumes is Delete")
	}
	return pass()
}
