package plan

import "github.com/quorate/quorate/reconciler/plan/situation"

// immutable refuses changes that have no safe way, and tells which way there is.
func immutable(s *situation.Situation) verdict {
	if s.Observed.Set == nil {
		return pass()
	}
	if len(s.Observed.Set.Immutable) > 0 {
		return explain(s.Observed.Set.Immutable)
	}
	return pass()
}
