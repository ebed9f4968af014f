package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
)

// window keeps what disturbs clients inside the maintenance windows: the start of
// a roll, the moves of the leader, restarts, the removal of members that Git no
// longer wants, and sleep.
//
//	never waits                       because
//	what stands above in the table    a member that restarts is seen back to its end
//	a member that a roll has broken   mending makes the cluster safer
//	a larger quota under NOSPACE      the cluster takes no writes until it has it
//	deletion                          nobody is to be served any more
//	the first backup of an upgrade    a store that refuses it is found by day
//	end, applied                      they disturb nobody
//
// The backup that the upgrade rests on is younger than that first one: it is
// taken when the window has opened.
func window(s *situation) verdict {
	if !s.disturbs() || s.rollVictim() != nil || s.firstBackup() || s.relieves() {
		return pass()
	}
	opens, problem := s.opening()
	switch {
	case problem != "":
		return refuse(problem, "mend spec.maintenance in a new commit; no member is stopped until then")
	case !opens.After(s.now):
		return pass()
	}
	v := wait("outside the maintenance window; the next one opens "+opens.Format(openingLayout), time.Time{})
	v.hold.Again = min(opens.Sub(s.now), rarely)
	return v
}

// disturbs says whether what is wanted stops a member that serves.
func (s *situation) disturbs() bool {
	if !s.formed() || s.o.Set == nil {
		return false
	}
	return s.rolling() || s.d.Spec.State == schema.StateHibernated || s.tooMany()
}

// windowOpen says whether members may be stopped now.
func (s *situation) windowOpen() bool {
	opens, problem := s.opening()
	return problem == "" && !opens.After(s.now)
}

// openingLayout is how an opening is written, in the zone of its window.
const openingLayout = "Mon 2006-01-02 15:04 MST"

// willWait warns that a roll which begins with a backup outside the window goes
// no further for now.
func (s *situation) willWait() []string {
	opens, problem := s.opening()
	if !s.firstBackup() || problem != "" || !opens.After(s.now) {
		return nil
	}
	return []string{"outside the maintenance window only the backup is tried; once the window opens, at " +
		opens.Format(openingLayout) + ", another one is taken and the roll begins"}
}

// opening is when members may be restarted: now, inside of a window or without
// any, else when the next window opens, in that window's zone. The problem says
// why nobody can tell.
func (s *situation) opening() (opens time.Time, problem string) {
	if len(s.d.Spec.Maintenance) == 0 {
		return s.now, ""
	}
	for i, w := range s.d.Spec.Maintenance {
		next, err := nextOpening(w, s.now)
		if err != nil {
			return time.Time{}, fmt.Sprintf("nobody can say when spec.maintenance[%d] opens: %s", i, err)
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

// nextOpening is now while the window is open, else its next opening, in its own
// zone; the zero time when none comes within five years. The schedule strikes by
// the clocks of the zone, the duration is time that goes by: a window of three
// hours is open for three hours in the night in which the clocks change, too.
func nextOpening(w schema.MaintenanceWindow, now time.Time) (time.Time, error) {
	schedule, err := schema.ParseSchedule(w.Schedule, w.TimeZone)
	if err != nil {
		return time.Time{}, err
	}
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return time.Time{}, err
	}
	// An opening keeps the window open for its duration, so it is open when one
	// came in that time: the first strike since then says so.
	if begun := schedule.Next(now.Add(-w.Duration.Duration)); !begun.IsZero() && !begun.After(now) {
		return now, nil
	}
	return schedule.Next(now).In(zone), nil
}

// firstBackup says whether this roll needs a backup and none has succeeded yet.
// Whether that one is too old to rest on is the business of the backup rule.
func (s *situation) firstBackup() bool { return s.needsBackup() && !s.backedUp() }
