package record

import (
	"maps"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/schema"
)

// Apply records what was applied, with why its commit was let in and when by the clock of the API
// server, and that what led there is over.
func Apply(a action.RecordApplied, accepted schema.Acceptance, at time.Time) func(*Record) {
	return func(rec *Record) {
		rec.Applied = &Applied{SpecHash: a.SpecHash, Settings: a.Settings, Version: a.Version, Commit: a.Commit, Accepted: accepted, At: at.UTC().Truncate(time.Second)}
		rec.Downgrade, rec.Nudged = nil, nil
		if action.ReadsLogs(a.Version) {
			rec.Flushed = maps.Clone(rec.Members)
		}
	}
}
