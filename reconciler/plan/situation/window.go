package situation

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
)

// Disturbs reports whether what is wanted stops a member that serves.
func (s *Situation) Disturbs() bool {
	if !s.Formed() || s.Observed.Set == nil {
		return false
	}
	return s.Rolling() || s.Desired.Spec.State == schema.StateHibernated || s.TooMany()
}

// WindowOpen reports whether members may be stopped now.
func (s *Situation) WindowOpen() bool {
	opens, problem := s.NextOpening()
	return problem == "" && !opens.After(s.Now)
}

// OpeningLayout is how an opening is written, in the zone of its window.
const OpeningLayout = "Mon 2006-01-02 15:04 MST"

// willWait warns that a roll which begins with a backup outside the window goes
// no further for now.
func (s *Situation) willWait() []string {
	opens, problem := s.NextOpening()
	if !s.FirstBackup() || problem != "" || !opens.After(s.Now) {
		return nil
	}
	return []string{"outside the maintenance window only the backup is tried; once the window opens, at " +
		opens.Format(OpeningLayout) + ", another one is taken and the roll begins"}
}

// NextOpening is when members may be restarted: now, inside of a window or without
// any, else when the next window opens, in that window's zone. The problem says
// why it is unknown.
func (s *Situation) NextOpening() (opens time.Time, problem string) {
	if len(s.Desired.Spec.Maintenance) == 0 {
		return s.Now, ""
	}
	for i, w := range s.Desired.Spec.Maintenance {
		next, err := w.Opening(s.Now)
		if err != nil {
			return time.Time{}, fmt.Sprintf("it is unknown when spec.maintenance[%d] opens: %s", i, err)
		}
		if !next.IsZero() && (opens.IsZero() || next.Before(opens)) {
			opens = next
		}
	}
	if opens.IsZero() {
		return opens, "spec.maintenance never opens: no window comes within five years"
	}
	return opens, ""
}

// FirstBackup reports whether this roll needs a backup and none has succeeded yet.
// Whether that one is too old to rest on is the business of the backup rule.
func (s *Situation) FirstBackup() bool {
	return s.NeedsBackup() && BackupFor(s, s.Purpose()) == nil && !s.endedEarly()
}
