package plan

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// immutable refuses changes that have no safe way, and tells which way there is.
func immutable(s *situation.Situation) verdict.Verdict {
	if s.Observed.Set == nil {
		return verdict.Pass()
	}
	if len(s.Observed.Set.Immutable) > 0 {
		return explain(s.Observed.Set.Immutable)
	}
	return verdict.Pass()
}
