package record

import (
	"maps"

	"github.com/quorate/quorate/reconciler/plan/action"
)

// Apply records what was applied, and that what led there is over.
func Apply(a action.RecordApplied) func(*Record) {
	return func(rec *Record) {
		rec.Applied = &Applied{SpecHash: a.SpecHash, Settings: a.Settings, Version: a.Version, Commit: a.Commit}
		rec.Downgrade, rec.Nudged = nil, nil
		if action.ReadsLogs(a.Version) {
			rec.Flushed = maps.Clone(rec.Members)
		}
	}
}
