package plan

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// immutable refuses changes that have no safe way, and tells which way there is. Of volumes
// that never came there is one, see restorage.
func immutable(s *situation.Situation) verdict.Verdict {
	if s.Observed.Set == nil {
		return verdict.Pass()
	}
	changes := s.Observed.Set.Immutable
	switch {
	case len(changes) == 0, unstored(s) && ofStorage(changes):
		return verdict.Pass()
	}
	return explain(changes)
}
