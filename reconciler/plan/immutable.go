package plan

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
)

// immutable refuses changes that have no safe way, and tells which way there is. Those of volumes hold less, see
// storage.
func immutable(s *situation.Situation) verdict.Verdict {
	if s.Observed.Set == nil {
		return verdict.Pass()
	}
	changes := s.Observed.Set.Immutable
	if transport.Crosses(s.Git, s.Observed) && s.Git.Spec.AuthEnabled() {
		changes = append(slices.Clone(changes), state.Change{Field: state.FieldTLSWithAuth, Text: "spec.tls.mode, between plain text and TLS,"})
	}
	return explain(changes)
}

// storage refuses what the volumes that exist cannot become. It stands below what heals: a wrong word about volumes keeps
// no member from being repaired, and no certificate from being renewed.
func storage(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Set == nil {
		return verdict.Pass()
	}
	return explain(volumes.Changes(s))
}
