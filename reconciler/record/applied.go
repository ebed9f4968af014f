package record

import (
	"maps"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/schema"
)

// Apply records what was applied, with why its commit was let in, and that what led there
// is over.
func Apply(a action.RecordApplied, accepted schema.Acceptance) func(*Record) {
	return func(rec *Record) {
		rec.Applied = &Applied{SpecHash: a.SpecHash, Settings: a.Settings, Version: a.Version, Commit: a.Commit, Accepted: accepted}
		rec.Downgrade, rec.Nudged = nil, nil
		if action.ReadsLogs(a.Version) {
			rec.Flushed = maps.Clone(rec.Members)
		}
	}
}
