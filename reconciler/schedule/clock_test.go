package schedule

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/schema"
)

// randomLine is a crontab line that strikes at least once a week.
func randomLine(t *rapid.T) string {
	field := func(name string, most int) string {
		return fmt.Sprint(rapid.IntRange(0, most).Draw(t, name))
	}
	return rapid.SampledFrom([]func() string{
		func() string { return "* * * * *" },
		func() string { return "*/" + field("minutes", 29)[:1] + "1 * * * *" },
		func() string { return field("minute", 59) + " * * * *" },
		func() string { return field("minute", 59) + " */6 * * *" },
		func() string { return field("minute", 59) + " " + field("hour", 23) + " * * *" },
		func() string {
			return field("minute", 59) + "," + field("other minute", 59) + " " + field("hour", 23) + "," + field("other hour", 23) + " * * *"
		},
		func() string {
			return field("minute", 59) + " " + field("hour", 23) + " * * " + field("weekday", 6)
		},
		func() string { return "@every " + fmt.Sprint(rapid.IntRange(1, 2000).Draw(t, "every")) + "m" },
	}).Draw(t, "line")()
}

// longest is the longest time between two strikes of the days around a time.
func longest(t *rapid.T, spec schema.BackupScheduleSpec, around time.Time) time.Duration {
	line, err := schema.ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	most := time.Duration(0)
	at := line.Next(around.Add(-8 * 24 * time.Hour))
	for n := 0; n < 200 && at.Before(around.Add(16*24*time.Hour)); n++ {
		next := line.Next(at)
		most, at = max(most, next.Sub(at)), next
	}
	return most
}

// 178, 179: whatever the crontab, the jitter (also one that is longer than the
// interval, as earlier commits may have) and the jumps of the clock, a backup begins
// within two intervals and the jitter of a clock that is left alone; and none is overdue
// then.
func TestSomeBackupBeginsWithinTwoIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := schema.BackupScheduleSpec{
			Schedule: randomLine(t), TimeZone: rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}).Draw(t, "zone"),
			Jitter: minutes(rapid.IntRange(0, 24*60).Draw(t, "jitter")),
		}
		now := at("2026-03-20 00:00").Add(time.Duration(rapid.IntRange(0, 365*24).Draw(t, "hour")) * time.Hour)
		past := Past{Since: now.AddDate(-20, 0, 0), Struck: now, Ended: now}
		for range 8 {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, -1, 1, -3, 90, -90, -5000, 5000, -600000, 600000}).Draw(t, "jump")) * time.Minute)
			interval := longest(t, spec, now)
			// A strike that has just gone by begins after its jitter; a past that is a
			// little ahead of the clock is waited for. The end of the last backup, noted by
			// a clock that was ahead, is believed once the clock has come to it: that costs
			// one interval more.
			until := now.Add(2*interval + jitter(spec, "shop/nightly") + clock.Tolerance)
			for {
				d, err := Next(spec, "shop/nightly", past, now)
				if err != nil {
					t.Fatal(err)
				}
				if d.Now {
					if late, _ := OverdueAt(spec, "shop/nightly", past, now); now.After(until) && late.After(now) {
						t.Fatalf("at %s the backup is as late as that, and overdue at %s only", now, late)
					}
					past.Struck, past.Ended = d.At, now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "seconds"))*time.Second)
					now = past.Ended
					break
				}
				if d.Begins.IsZero() || d.Begins.After(until) {
					t.Fatalf("at %s after %+v: %+v, and it is to begin by %s", now, past, d, until)
				}
				now = d.Begins
			}
		}
	})
}

// 178: a jitter that is longer than the interval delays backups, and leaves none out.
func TestALongJitterStrikesAtEachTime(t *testing.T) {
	spec, key := schema.BackupScheduleSpec{Schedule: "0 * * * *", Jitter: minutes(24 * 60)}, "shop/0"
	for n := 1; jitter(spec, key) < 3*time.Hour; n++ {
		key = fmt.Sprint("shop/", n)
	}
	now := at("2026-11-01 00:30")
	past, taken := Past{Since: now}, 0
	for end := at("2026-11-05 00:30"); now.Before(end); now = now.Add(time.Minute) {
		d, err := Next(spec, key, past, now)
		if err != nil {
			t.Fatal(err)
		}
		if d.Now {
			taken++
			past.Struck, past.Ended = d.At, now.Add(time.Minute)
		}
	}
	if want := 4*24 - int(jitter(spec, key)/time.Hour) - 1; taken < want || taken > want+1 {
		t.Errorf("%d backups in four days of an hourly schedule, want %d", taken, want)
	}
}

// 179: what a clock that was ahead has noted silences nothing once it is right
// again: neither a schedule, nor a backup that is asked for once, nor the next try
// after a failure, nor word that a backup is overdue.
func TestAPastAheadOfTheClockSilencesNothing(t *testing.T) {
	now, wrong := at("2026-11-20 12:00"), at("2027-11-20 12:00")
	daily := schema.BackupScheduleSpec{Schedule: "0 2 * * *"}
	for name, past := range map[string]Past{
		"a backup":                  {Since: at("2026-11-01 00:00"), Struck: wrong, Ended: wrong},
		"its end":                   {Since: at("2026-11-01 00:00"), Struck: at("2026-11-18 02:00"), Ended: wrong},
		"a failure":                 {Since: at("2026-11-01 00:00"), Failures: 3, FailedAt: wrong},
		"all that is known":         {Since: wrong, Struck: wrong, Ended: wrong, Failures: 1, FailedAt: wrong},
		"a failure, after a backup": {Since: at("2026-11-01 00:00"), Struck: at("2026-11-18 02:00"), Ended: at("2026-11-18 02:01"), Failures: 1, FailedAt: wrong},
	} {
		if d, err := Next(daily, "shop/nightly", past, now); err != nil || !d.Now || d.At.After(now) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if late, err := OverdueAt(daily, "shop/nightly", past, now); err != nil || late.After(now) {
			t.Errorf("%s: overdue at %s, %v", name, late, err)
		}
	}
	if d := Once(Past{Since: wrong}, false, now); !d.Now || d.At.After(now) {
		t.Errorf("once: %+v", d)
	}
	if d := Once(Past{Since: now, Failures: 2, FailedAt: wrong}, false, now); !d.Now {
		t.Errorf("once, after a failure: %+v", d)
	}
	// A clock that was set back by a little has made a backup for this time already.
	seconds := Past{Since: at("2026-11-01 00:00"), Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 02:00")}
	if d, err := Next(daily, "shop/nightly", seconds, at("2026-11-20 01:59")); err != nil || d.Now || !d.At.Equal(at("2026-11-21 02:00")) {
		t.Errorf("%+v, %v", d, err)
	}
}
