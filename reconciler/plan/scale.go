package plan

import (
	"fmt"

	"github.com/quorate/quorate/schema"
)

// scale changes the number of members, one at a time: the highest ordinal leaves
// first, as a number, and the lowest free one joins first. It waits for the end
// of a roll, and every step for the health gate.
func scale(s *situation) verdict {
	if !s.formed() || s.rolling() || s.complete() {
		return pass()
	}
	names := s.byOrdinal()
	if last := names[len(names)-1]; !s.wants(last) {
		return do(BeginLeave{
			Member: last, ID: s.o.Record.Members[last], Why: fmt.Sprintf("Git wants %s", members(int(s.d.Spec.Replicas))),
		}, fmt.Sprintf("Git wants %s; the highest ordinal goes first", members(int(s.d.Spec.Replicas))))
	}
	for ordinal := range s.d.Spec.Replicas {
		if name := podName(s.d.Name, ordinal); !s.isMember(name) {
			return s.rejoin(name, fmt.Sprintf("Git wants %s, and there are %d", members(int(s.d.Spec.Replicas)), len(names)), false)
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
		if _, retired := s.o.Record.Retired[v.Member]; !retired || v.Ordinal < s.size() || v.Terminating {
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
