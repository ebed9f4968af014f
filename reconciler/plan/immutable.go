package plan

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// immutable refuses changes that have no safe way, and tells which way there is. Of volumes
// that never came there is one, see restorage.
func immutable(s *situation.Situation) verdict.Verdict {
	if s.Observed.Set == nil {
		return verdict.Pass()
	}
	changes := s.Observed.Set.Immutable
	if transport.Crosses(s.Git, s.Observed) && s.Git.Spec.AuthEnabled() {
		changes = append(slices.Clone(changes), state.Change{Field: state.FieldTLSWithAuth, Text: "spec.tls.mode, between plain text and TLS,"})
	}
	switch {
	case len(changes) == 0, unstored(s) && ofStorage(changes):
		return verdict.Pass()
	}
	return explain(changes)
}
