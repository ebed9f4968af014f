package schedule

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/schema"
)

const (
	// retryFirst is how long after a failure the same time is tried again; it
	// doubles with each failure up to retryMost.
	retryFirst = time.Minute
	retryMost  = time.Hour
	// countedMost is how many missed times are counted: the number is for people.
	countedMost = 1000
)

// Past is what is known of a schedule's past. All of it outlives the process.
type Past struct {
	// Since is when the schedule was first seen: earlier times are not missed.
	Since time.Time
	// Struck is the time of the schedule that the last backup stands for, and Ended
	// when that backup was done. Zero before the first one.
	Struck, Ended time.Time
	// Failures is how often the backup for the time after Struck has failed, FailedAt
	// when it last did.
	Failures int
	FailedAt time.Time
}

// Due reports whether a backup is to begin, or when the next one does.
type Due struct {
	// Now says that a backup is to begin; it stands for the time At.
	Now bool
	// At is the time of the schedule, Begins that time and the jitter, or when a
	// failed backup is tried again. Both are zero where the schedule never comes.
	At, Begins time.Time
	// Missed is how many earlier times nobody made a backup for; this one makes
	// them all good. At most 1000 are counted.
	Missed int
	// Why is one phrase: what is awaited, or what was left out.
	Why string
}

// Next says when a schedule's backup is due, from the last one alone, so that a
// daemon that was away forgets nothing: what was missed is made good by one
// backup. A time whose backup was to begin while another was still being taken is left
// out. The key is that of the schedule; it spreads schedules over their jitter.
//
// The error is that of a schedule that cannot be read.
func Next(spec schema.BackupScheduleSpec, key string, past Past, now time.Time) (Due, error) {
	line, err := schema.ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil {
		return Due{}, err
	}
	if spec.Suspend {
		return Due{Why: "suspended"}, nil
	}
	delay := jitter(spec, key)
	past = past.credible(now)
	from := past.from(delay)
	// Not the last time that has come, but the last one whose backup begins: with a
	// long jitter there is always a later one that waits.
	struck, missed := lastStrike(line, from, now.Add(-delay))
	if struck.IsZero() {
		return upcoming(line, from, delay, past.leftOut(line, delay)), nil
	}
	d := Due{At: struck, Begins: struck.Add(delay), Missed: missed}
	if again := past.retry(); again.After(d.Begins) {
		d.Begins, d.Why = again, fmt.Sprintf("tried again after failure %d, later each time", past.Failures)
	}
	if deadline := spec.StartingDeadline; deadline != nil && now.After(struck.Add(delay+deadline.Duration)) {
		why := fmt.Sprintf("the time at %s is missed: the deadline of %s has passed", struck.UTC().Format(time.RFC3339), deadline.Duration)
		return upcoming(line, struck, delay, why), nil
	}
	d.Now = !now.Before(d.Begins)
	return d, nil
}

// upcoming waits for the first time after from.
func upcoming(line cron.Schedule, from time.Time, delay time.Duration, why string) Due {
	at := line.Next(from)
	if at.IsZero() {
		return Due{Why: "the schedule does not come again within five years"}
	}
	return Due{At: at, Begins: at.Add(delay), Why: why}
}

// credible is the past without what lies ahead of the clock: it was noted by a clock
// that was wrong, and must not silence the schedule until then.
func (p Past) credible(now time.Time) Past {
	if clock.Ahead(p.Since, now) {
		p.Since = now.AddDate(-1, 0, 0) // Since when is unknown: one backup is due.
	}
	for _, t := range []*time.Time{&p.Struck, &p.Ended, &p.FailedAt} {
		if clock.Ahead(*t, now) {
			*t = time.Time{}
		}
	}
	return p
}

// from is the time after which the schedule counts, where each backup begins a delay
// after its time.
func (p Past) from(delay time.Duration) time.Time {
	from := p.Since
	for _, t := range []time.Time{p.Struck, p.Ended.Add(-delay)} {
		if t.After(from) {
			from = t
		}
	}
	return from
}

// leftOut tells of a time whose backup was to begin while the last one was taken.
func (p Past) leftOut(line cron.Schedule, delay time.Duration) string {
	if last, _ := lastStrike(line, p.Struck, p.Ended.Add(-delay)); !last.IsZero() {
		return fmt.Sprintf("the time at %s came while a backup was still being taken, and is left out", last.UTC().Format(time.RFC3339))
	}
	return ""
}

// retry is when a failed backup may be tried again, the zero time without one.
func (p Past) retry() time.Time {
	if p.Failures <= 0 { // a record may say anything
		return time.Time{}
	}
	return p.FailedAt.Add(min(retryFirst<<min(p.Failures-1, 10), retryMost))
}

// jitter is the delay of a schedule: always the same, and another one for each
// schedule.
func jitter(spec schema.BackupScheduleSpec, key string) time.Duration {
	if spec.Jitter == nil || spec.Jitter.Duration <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return time.Duration(h.Sum64() % uint64(spec.Jitter.Duration)).Truncate(time.Second)
}

// strike is the first time of the schedule after from and not after now; the
// zero time where there is none.
func strike(line cron.Schedule, from, now time.Time) time.Time {
	if t := line.Next(from); !t.After(now) {
		return t
	}
	return time.Time{}
}

// lastStrike is the last time of the schedule after from and not after now, and
// how many there were before it; the zero time where there is none.
func lastStrike(line cron.Schedule, from, now time.Time) (last time.Time, before int) {
	for t := strike(line, from, now); !t.IsZero(); t = strike(line, t, now) {
		if !last.IsZero() {
			before++
		}
		last = t
		if before == countedMost {
			return newestStrike(line, last, now), before
		}
	}
	return last, before
}

// newestStrike is the last time not after now of a schedule that has struck very
// often, last at from. It looks back from now, twice as far each time.
func newestStrike(line cron.Schedule, from, now time.Time) time.Time {
	newest := from
	for back := time.Minute; now.Add(-back).After(from); back *= 2 {
		if t := strike(line, now.Add(-back), now); !t.IsZero() {
			newest = t
			break
		}
	}
	for t := newest; !t.IsZero(); t = strike(line, t, now) {
		newest = t
	}
	return newest
}
