package schedule

import (
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/schema"
)

// Drills is what is known of a schedule's restore drills.
type Drills struct {
	// Backup is the time of the newest backup that a drill has judged, and Passed
	// what it found. Zero before the first one.
	Backup time.Time
	Passed bool
	// Failures is how often in a row a drill came to no judgement, FailedAt when the
	// last one did not.
	Failures int
	FailedAt time.Time
	// Again says that a person asks for a drill of a backup that may have had one.
	Again bool
}

// DrillAt says from when on the newest backup is to be restored on trial, the zero
// time for never. newest is the backup's own time; days and weeks are those of zone.
//
//	restore   the newest backup is restored on trial
//	Never     never
//	Always    once
//	Daily     once, if it is of another day than the last one that was judged
//	Weekly    once, if it is of another week
//
// When the last one was judged bad, the next is looked at whatever its day, and so it is
// when that was dated ahead of the clock. A drill that came to no judgement is tried
// again, later each time. What a person asks for is done once, whatever the day.
func DrillAt(how schema.RestoreDrill, zone *time.Location, newest time.Time, past Drills, now time.Time) time.Time {
	due := past.Again || newest.After(past.Backup)
	switch {
	case past.Again:
	case clock.Ahead(past.Backup, now):
		due = !newest.Equal(past.Backup)
	case due && past.Passed:
		day, last := newest.In(zone), past.Backup.In(zone)
		switch how {
		case schema.DrillDaily:
			due = day.Format(time.DateOnly) != last.Format(time.DateOnly)
		case schema.DrillWeekly:
			due = week(day) != week(last)
		case schema.DrillNever, schema.DrillAlways:
		}
	}
	if !due || how == schema.DrillNever || how == "" {
		return time.Time{}
	}
	if past.Failures > 0 && !clock.Ahead(past.FailedAt, now) {
		return Past{Failures: past.Failures, FailedAt: past.FailedAt}.retry()
	}
	if newest.After(now) {
		return now
	}
	return newest
}
