package schedule

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
)

// lateAfter is how late a backup may be that has no starting deadline.
const lateAfter = 15 * time.Minute

// Once reports whether a backup that is asked for once is to begin, or when it is
// tried again. taken says that it was made already: then it never begins.
func Once(past Past, taken bool, now time.Time) Due {
	if taken {
		return Due{Why: "it was taken"}
	}
	past = past.credible(now)
	d := Due{At: past.Since, Begins: past.Since}
	if again := past.retry(); again.After(d.Begins) {
		d.Begins, d.Why = again, fmt.Sprintf("tried again after failure %d, later each time", past.Failures)
	}
	d.Now = !now.Before(d.Begins)
	return d
}

// OverdueAt is when somebody should know that a schedule makes no backups: a time
// of it has passed, its jitter and its starting deadline (15m without one) too, and
// there is no backup. It is the zero time for a schedule that is suspended or never
// comes; the error is that of a schedule that cannot be read.
func OverdueAt(spec schema.BackupScheduleSpec, key string, past Past, now time.Time) (time.Time, error) {
	line, err := schema.ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil || spec.Suspend {
		return time.Time{}, err
	}
	delay := jitter(spec, key)
	first := line.Next(past.credible(now).from(delay))
	if first.IsZero() {
		return time.Time{}, nil
	}
	grace := lateAfter
	if spec.StartingDeadline != nil {
		grace = spec.StartingDeadline.Duration
	}
	return first.Add(delay + grace), nil
}
