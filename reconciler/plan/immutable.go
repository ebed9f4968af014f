package plan

import "strings"

// immutable refuses changes that have no safe way yet.
func immutable(s *situation) verdict {
	if s.o.Set == nil {
		return pass()
	}
	if len(s.o.Set.Immutable) > 0 {
		return refuse(
			strings.Join(s.o.Set.Immutable, " and ")+" cannot be changed on a live cluster yet",
			"revert that part of the file")
	}
	return pass()
}
