package plan

import (
	"fmt"
	"strings"
)

// immutable refuses changes that have no safe way yet.
func immutable(s *situation) verdict {
	if s.o.Set == nil {
		return pass()
	}
	if n := s.memberCount(); int(s.d.Spec.Replicas) != n {
		return refuse(
			fmt.Sprintf("spec.replicas is %d, but the cluster was made with %s, and changing that is not supported yet",
				s.d.Spec.Replicas, members(n)),
			fmt.Sprintf("set spec.replicas back to %d", n))
	}
	if len(s.o.Set.Immutable) > 0 {
		return refuse(
			strings.Join(s.o.Set.Immutable, " and ")+" cannot be changed on a live cluster yet",
			"revert that part of the file")
	}
	return pass()
}

// memberCount is how many members the cluster was made with: what the record
// says, because somebody may have scaled the StatefulSet by hand.
func (s *situation) memberCount() int {
	if s.formed() {
		return len(s.o.Record.Members)
	}
	return int(s.o.Set.Replicas)
}
