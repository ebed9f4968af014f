package schema

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"
)

// nextTimes are the next times of a schedule in its zone, as text.
func nextTimes(t *testing.T, schedule, zone, from string, count int) string {
	t.Helper()
	s, err := ParseSchedule(schedule, zone)
	if err != nil {
		t.Fatal(err)
	}
	where, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, from)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for range count {
		at = s.Next(at)
		all = append(all, at.In(where).Format("02T15:04-07"))
	}
	return strings.Join(all, " ")
}

// In 2026 the clocks of Berlin go forward on 29 March at 2:00 and back on 25
// October at 3:00; those of Santiago at midnight; those of Lord Howe by half an
// hour on 4 October at 2:00.
func TestParseSchedule11Strikes(t *testing.T) {
	for _, c := range []struct{ name, schedule, zone, from, want string }{
		{"every six hours", "0 */6 * * *", "UTC", "2026-03-01T00:00:00Z", "01T06:00+00 01T12:00+00 01T18:00+00"},
		{"empty zone is UTC", "0 2 * * *", "", "2026-03-01T02:00:00Z", "02T02:00+00 03T02:00+00"},
		{"between two seconds", "0 2 * * *", "", "2026-03-01T01:59:59.5Z", "01T02:00+00"},
		{"white space around a name", " @daily ", "", "2026-03-01T00:00:00Z", "02T00:00+00"},
		{"white space around", "  0 2 * * *\t", "", "2026-03-01T00:00:00Z", "01T02:00+00"},
		{"29 February", "0 0 29 2 *", "Europe/Berlin", "2026-03-01T00:00:00Z", "29T00:00+01 29T00:00+01"},
		{"the end of a leap year, where Go knows no next change", "0 12 * * *", "Europe/Berlin", "2040-12-30T12:00:00Z", "31T12:00+01 01T12:00+01"},
		{"over the end of leap years", "0 0 29 2 *", "Europe/Berlin", "2036-03-01T00:00:00Z", "29T00:00+01 29T00:00+01 29T00:00+01"},
		{"a time that is skipped", "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", "28T02:30+01 29T03:00+02 30T02:30+02"},
		{"several times that are skipped", "*/20 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "29T03:00+02 29T03:20+02 29T03:40+02 30T02:00+02"},
		{"the moment after those that are skipped", "0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "29T03:00+02 30T03:00+02"},
		{"a time that comes twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "25T02:30+02 25T02:30+01 26T02:30+01"},
		{"each hour, one twice", "0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", "25T02:00+02 25T02:00+01 25T03:00+01"},
		{"a midnight that is skipped", "0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "06T01:00-03 07T00:00-03"},
		{"half an hour that is skipped", "15 2,3 * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", "04T02:30+11 04T03:15+11"},
		{"interval", "@every 90m", "Europe/Berlin", "2026-03-29T00:00:00Z", "29T03:30+02 29T05:00+02"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := nextTimes(t, c.schedule, c.zone, c.from, len(strings.Fields(c.want))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The time zone of the answer is that of the question.
func TestParseScheduleKeepsTheZoneOfTheQuestion(t *testing.T) {
	s, err := ParseSchedule("30 2 * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []time.Time{time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)} {
		if got := s.Next(from); got.Location() != time.UTC {
			t.Errorf("after %s comes %s", from, got)
		}
	}
}

func TestParseSchedule11Refuses(t *testing.T) {
	for _, c := range []struct{ name, schedule, zone, want string }{
		{"nothing", "", "", "has 0 fields: write five"},
		{"four fields", "0 2 * *", "", "has 4 fields: write five: minute, hour, day, month, weekday"},
		{"six fields", "0 0 2 * * *", "", "has 6 fields: write five, without seconds and years"},
		{"minute", "60 * * * *", "", `the minute "60" is not one of 0 to 59`},
		{"negative", "-1 * * * *", "", `the minute "-1" is not one of 0 to 59`},
		{"hour", "0 24 * * *", "", `the hour "24" is not one of 0 to 23`},
		{"day", "0 0 0 * *", "", `the day of the month "0" is not one of 1 to 31`},
		{"month", "0 0 1 13 *", "", `the month "13" is not one of 1 to 12 or jan to dec`},
		{"Sunday as 7", "0 0 * * 7", "", `the weekday "7" is not one of 0 to 6 or sun to sat, where 0 is Sunday`},
		{"step of nothing", "*/0 * * * *", "", `the minute "*/0" is not one of`},
		{"range that runs backwards", "0 22-3 * * *", "", `the hour "22-3" runs backwards: write 22-23,0-3`},
		{"list with a gap", "0,,30 * * * *", "", `the minute "0,,30" is not one of`},
		{"list of nothing", ", * * * *", "", `the minute "," is not one of`},
		{"30 February", "0 0 30 2 *", "", "never occurs"},
		{"31st of short months", "0 0 31 4,6,9,11 *", "", "never occurs"},
		{"start of the daemon", "@reboot", "", "@reboot is not a time"},
		{"name", "@dayly", "", "write @hourly, @daily, @weekly"},
		{"interval without unit", "@every 5", "", "such as \"@every 1h\""},
		{"zone in the line", "TZ=UTC 0 2 * * *", "", "write it as timeZone"},
		{"zone alone", "TZ=UTC", "", "write it as timeZone"},
		{"zone in the line of cron", "CRON_TZ=UTC 0 2 * * *", "", "write it as timeZone"},
		{"unknown zone", "0 2 * * *", "Mars/Olympus", `"Mars/Olympus" is not a time zone: write an IANA name`},
		{"zone of the machine", "0 2 * * *", "Local", "is not a time zone"},
		{"zone that climbs", "0 2 * * *", "../etc/passwd", "is not a time zone"},
		{"long", strings.Repeat("0,", 200) + "0 * * * *", "", "more than 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseSchedule(c.schedule, c.zone)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A schedule that is accepted has a next time, later each time, and soon enough to answer.
func FuzzSchedule(f *testing.F) {
	for _, seed := range []string{
		"0 */6 * * *", "30 2 29 2 *", "0 0 30 2 *", "* * * * *", ",,, * * * *", "@daily", "@every 1h", "@every -1h", "@reboot", "TZ=UTC", "CRON_TZ= 0 0 * * *",
		"0 0 31 4 1", "59 23 31 12 sun-sat/2", "1-9223372036854775807/2 * * * *", "? ? ? ? ?", "*/59 */23 */31 */12 */6", "@every 2562047h47m16.854775807s",
	} {
		f.Add(seed, "Europe/Berlin", int64(1_774_700_000))
		f.Add(seed, "Australia/Lord_Howe", int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, text, zone string, from int64) {
		s, err := ParseSchedule(text, zone)
		if err != nil {
			if message := err.Error(); strings.Contains(message, "failed to parse") || strings.Contains(message, "strconv") {
				t.Errorf("%q: the words of a library: %s", text, message)
			}
			return
		}
		const century = 100 * 365 * 24 * 60 * 60
		at := time.Unix(from%century, 0)
		for range 5 {
			next := s.Next(at)
			if !next.After(at) && !next.IsZero() {
				t.Fatalf("%q in %q: after %s comes %s", text, zone, at, next)
			}
			if next.IsZero() {
				return
			}
			at = next
		}
	})
}

// The shortest interval is that between two neighbouring times.
func TestShortestInterval(t *testing.T) {
	const day = 24 * time.Hour
	// walked goes through the times of the first day, and through the days of 28 years, after which
	// days fall on the same weekdays again.
	walked := func(s cron.Schedule) (shortest time.Duration) {
		note := func(d time.Duration) {
			if shortest == 0 || d < shortest {
				shortest = d
			}
		}
		first := s.Next(reference().Add(-time.Nanosecond))
		today, last := first.Truncate(day), first
		for next := s.Next(first); next.Before(today.Add(day)) && !next.IsZero(); next = s.Next(next) {
			note(next.Sub(last))
			last = next
		}
		for end := reference().AddDate(28, 0, 0); !today.After(end); {
			next := s.Next(today.Add(day - time.Nanosecond))
			if next.IsZero() {
				break
			}
			note(next.Sub(last))
			today, last = next.Truncate(day), last.Add(next.Truncate(day).Sub(today))
		}
		return shortest
	}
	check := func(t interface{ Fatalf(string, ...any) }, line string) {
		s, err := ParseSchedule(line, "")
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got, want := shortestInterval(s), walked(s); got != want {
			t.Fatalf("%s: %s, and its times are %s apart", line, got, want)
		}
	}
	for _, line := range []string{
		"@every 90m", "@daily", "@weekly", "@yearly", "0 2 * * 6", "0 2 29 2 *", "0 2 * * 1,2", "0 0,23 * * *",
		"0 2 1 * *", "0 2 1,15 * 5", "*/7 * * * *", "59 23 31 1-12/2 *", "30 23,1 * * 1,3",
		"0 0 2 1,4 0", "0 0 29 2 1", "0 0 1,29 2,3 *", "0 0 1,31 1,12 *", "0 0 1,8,23 * *",
	} {
		check(t, line)
	}
	rapid.Check(t, func(t *rapid.T) {
		var fields []string
		for _, field := range cronFields() {
			fields = append(fields, rapid.OneOf(rapid.Just("*"), rapid.Custom(func(t *rapid.T) string {
				var items []string
				for _, n := range rapid.SliceOfN(rapid.IntRange(field.least, min(field.most, 28)), 1, 3).Draw(t, "items") {
					items = append(items, strconv.Itoa(n))
				}
				return strings.Join(items, ",")
			})).Draw(t, field.name))
		}
		check(t, strings.Join(fields, " "))
	})
}
