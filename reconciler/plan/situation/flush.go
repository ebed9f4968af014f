package situation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/state"
)

// Unsaved is the first member that has not saved its state since entries were last added
// to the log, or "". One that has restarted counts from zero, and more are added.
func (s *Situation) Unsaved(n *state.ForcedSnapshot) string {
	for _, name := range slices.Sorted(maps.Keys(s.Observed.Record.Members)) {
		m := s.Observed.Round().Member(name)
		before, known := n.Before[name]
		if m == nil || m.Problem != "" || !known || m.Snapshots <= before {
			return name
		}
	}
	return ""
}

// FlushReason is why a roll that changes no version is needed before the next
// minor.
func (s *Situation) FlushReason() string {
	return fmt.Sprintf("before %s: the logs may hold entries of 3.5, at which 3.7 panics, so each member first saves its state beside its log (snapshot-count=1)",
		s.Waypoints[1].Version)
}
