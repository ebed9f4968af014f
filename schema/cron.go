package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // A name of a zone must mean the same wherever a file is checked.

	"github.com/robfig/cron/v3"
)

// ParseSchedule reads a crontab line with five fields, a name such as @daily, or
// an interval such as "@every 1h", in a time zone by its IANA name; an empty zone
// is UTC. A time that the clocks of the zone skip comes when they are put
// forward, one that they have twice comes twice: a daily backup never fails
// to come. An interval counts from the time that Next is given. The error tells
// what to write instead.
func ParseSchedule(text, timeZone string) (cron.Schedule, error) {
	zone, err := loadZone(timeZone)
	if err != nil {
		return nil, err
	}
	return parseSchedule(text, zone)
}

// Opening is now while the window is open, else its next opening, in its own
// zone; the zero time when none comes within five years. The schedule goes by
// the clocks of the zone, the duration is time that goes by: a window of three
// hours is open for three hours in the night in which the clocks change, too.
func (w MaintenanceWindow) Opening(now time.Time) (time.Time, error) {
	zone, err := loadZone(w.TimeZone)
	if err != nil {
		return time.Time{}, err
	}
	schedule, err := parseSchedule(w.Schedule, zone)
	if err != nil {
		return time.Time{}, err
	}
	// An opening keeps the window open for its duration, so it is open when one
	// came in that time: the first start since then tells it.
	if begun := schedule.Next(now.Add(-w.Duration.Duration)); !begun.IsZero() && !begun.After(now) {
		return now, nil
	}
	return schedule.Next(now).In(zone), nil
}

// parseSchedule is ParseSchedule in a zone that has been found.
func parseSchedule(text string, zone *time.Location) (cron.Schedule, error) {
	text = strings.TrimSpace(text)
	if err := checkSchedule(text); err != nil {
		return nil, err
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, explainSchedule(text)
	}
	line, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return parsed, nil
	}
	line.Location = time.UTC
	if line.Next(reference()).IsZero() {
		return nil, fmt.Errorf("%s never occurs: no month has such a day", clip(text))
	}
	return wallClock{line, zone}, nil
}

// wallClock is a crontab line that is read by the clocks of a zone. The cron
// package alone would leave out what falls into the hour that they skip.
type wallClock struct {
	// line is in UTC, where each hour comes once.
	line *cron.SpecSchedule
	zone *time.Location
}

// Next is the first time after t, or the zero time when none comes within five
// years. It goes from one change of the clocks to the next.
func (w wallClock) Next(t time.Time) time.Time {
	for after, stretch := t, t.In(w.zone); ; {
		ahead := offset(stretch)
		wall := w.line.Next(after.UTC().Add(ahead))
		if wall.IsZero() {
			return wall
		}
		next := wall.Add(-ahead)
		change := nextChange(stretch)
		if change.IsZero() || next.Before(change) {
			return next.In(t.Location())
		}
		if wall.Before(change.UTC().Add(offset(change))) {
			return change.In(t.Location()) // skipped by the clocks
		}
		after, stretch = change.Add(-time.Nanosecond), change
	}
}

// nextChange is when the clocks of a time's zone are changed next, or a moment
// before that; the zero time when they never are.
func nextChange(t time.Time) time.Time {
	_, change := t.ZoneBounds()
	// On the last day of a leap year Go gives a bound that is not later.
	if !change.IsZero() && !change.After(t) {
		return t.Add(24 * time.Hour)
	}
	return change
}

// offset is how far the clocks of a time's zone are ahead of UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// reference is a time for questions that do not depend on the time. The next
// 29 February lies within the five years that cron searches.
func reference() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }

// knownZones are the zones that were loaded before, some hundreds at most:
// Go reads the file again each time, and every pass over a cluster asks.
var knownZones sync.Map //nolint:gochecknoglobals // A cache of what never changes.

// loadZone finds a time zone by its name.
func loadZone(name string) (*time.Location, error) {
	if known, ok := knownZones.Load(name); ok {
		return known.(*time.Location), nil // nothing else is stored
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("%s is not a time zone: write an IANA name such as \"Europe/Berlin\"", clip(name))
	}
	knownZones.Store(name, zone)
	return zone, nil
}

// checkSchedule refuses what the parser would take, or would explain badly.
func checkSchedule(text string) error {
	fields := strings.Fields(text)
	switch {
	case strings.Contains(text, "TZ="):
		return errors.New("a time zone in the schedule is not supported: write it as timeZone")
	case len(text) > 200:
		return errors.New("has more than 200 characters")
	case strings.HasPrefix(text, "@reboot"):
		return errors.New("@reboot is not a time: write a crontab line such as \"0 2 * * *\"")
	case strings.HasPrefix(text, "@"):
		return nil
	case len(fields) == 6 || len(fields) == 7:
		return fmt.Errorf("%s has %d fields: write five, without seconds and years: minute, hour, day, month, weekday", clip(text), len(fields))
	case len(fields) != 5:
		return fmt.Errorf("%s has %d fields: write five: minute, hour, day, month, weekday, such as \"0 2 * * 6\"", clip(text), len(fields))
	case slices.ContainsFunc(fields, hasGap):
		return explainSchedule(text)
	}
	return nil
}

// cronField is one field of a crontab line.
type cronField struct {
	name, takes string
	least, most int
}

// cronFields are the fields in their order.
func cronFields() []cronField {
	return []cronField{
		{"minute", "0 to 59", 0, 59},
		{"hour", "0 to 23", 0, 23},
		{"day of the month", "1 to 31", 1, 31},
		{"month", "1 to 12 or jan to dec", 1, 12},
		{"weekday", "0 to 6 or sun to sat, where 0 is Sunday", 0, 6},
	}
}

// explainSchedule finds the field that the parser does not take, in our
// own words: those of the parser name bytes and ranges.
func explainSchedule(text string) error {
	fields := strings.Fields(text)
	if len(fields) != len(cronFields()) {
		return fmt.Errorf("%s is not a schedule: write @hourly, @daily, @weekly, @monthly, @yearly, or @every and a duration such as \"@every 1h\"", clip(text))
	}
	for i, field := range cronFields() {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = fields[i]
		if _, err := cron.ParseStandard(strings.Join(alone, " ")); err != nil || hasGap(fields[i]) {
			return field.explain(fields[i])
		}
	}
	return fmt.Errorf("%s is not a schedule: write five fields such as \"0 2 * * 6\"", clip(text))
}

// explain reports what is wrong with a field.
func (f cronField) explain(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		span, _, _ := strings.Cut(item, "/")
		low, high, _ := strings.Cut(span, "-")
		from, err := strconv.Atoi(low)
		to, errTo := strconv.Atoi(high)
		if err == nil && errTo == nil && f.least <= to && to < from && from <= f.most {
			return fmt.Errorf("the %s %s runs backwards: write %d-%d,%d-%d", f.name, clip(item), from, f.most, f.least, to)
		}
	}
	return fmt.Errorf("the %s %s is not one of %s, with * , - and / between them", f.name, clip(text), f.takes)
}

// hasGap reports whether a list lacks an item, which the parser takes for no time
// at all.
func hasGap(field string) bool { return slices.Contains(strings.Split(field, ","), "") }

// shortestInterval is the shortest time between two runs, on clocks that are
// never changed.
func shortestInterval(s cron.Schedule) time.Duration {
	w, ok := s.(wallClock)
	if !ok {
		return s.Next(reference()).Sub(reference()) // @every
	}
	first, last, shortest := runsOfDay(w.line)
	if days := daysApart(w.line); days > 0 {
		between := time.Duration(days)*24*time.Hour - (last - first)
		if shortest == 0 || between < shortest {
			shortest = between
		}
	}
	return shortest
}

// closestRuns is the shortest time between two runs of a year, changes of the clocks
// included. A time that comes twice when they go back is one time.
func closestRuns(s cron.Schedule) time.Duration {
	shortest := shortestInterval(s)
	w, ok := s.(wallClock)
	if !ok || shortest == 0 {
		return shortest
	}
	year := reference().In(w.zone)
	for change := nextChange(year); !change.IsZero() && change.Before(year.AddDate(1, 0, 0)); change = nextChange(change) {
		last := time.Time{}
		for at := w.Next(change.Add(-shortest - time.Hour)); !at.IsZero() && !at.After(change.Add(shortest+time.Hour)); at = w.Next(at) {
			if between := at.Sub(last); !last.IsZero() && between < shortest && at.Format(time.DateTime) != last.Format(time.DateTime) {
				shortest = between
			}
			last = at
		}
	}
	return shortest
}

// runsOfDay are the first and the last run of a day on which a line has any,
// as times since midnight, and the shortest time between two; 0 when it is one.
func runsOfDay(line *cron.SpecSchedule) (first, last, shortest time.Duration) {
	first = -1
	for hour := range 24 {
		for minute := range 60 {
			if line.Hour&(1<<hour) == 0 || line.Minute&(1<<minute) == 0 {
				continue
			}
			at := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
			switch {
			case first < 0:
				first = at
			case shortest == 0 || at-last < shortest:
				shortest = at - last
			}
			last = at
		}
	}
	return first, last, shortest
}

// daysApart is how many days lie between the nearest two on which a line runs; 0 when it runs
// on one only. A leap year and another one tell it where days of the month or of the week are given,
// and thirty runs where they are years apart; where both are given, a day that is either counts, and
// how near they come differs from year to year, for 28 years.
func daysApart(line *cron.SpecSchedule) int {
	const day, runs, star = 24 * time.Hour, 30, 1 << 63
	end := reference().AddDate(2, 0, 0) // it begins with a leap year
	if (line.Dom|line.Dow)&star == 0 {
		end = reference().AddDate(28, 0, 0)
	}
	nearest := 0
	at := line.Next(reference()).Truncate(day)
	for n := 0; n < runs || at.Before(end); n++ {
		next := line.Next(at.Add(day - time.Nanosecond)).Truncate(day)
		if next.IsZero() {
			break
		}
		if days := int(next.Sub(at) / day); nearest == 0 || days < nearest {
			nearest = days
		}
		if nearest == 1 {
			break // None can be nearer.
		}
		at = next
	}
	return nearest
}
