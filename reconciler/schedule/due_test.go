package schedule

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/schema"
)

// at is a time as in "2026-11-20 02:00", in UTC; "" is the zero time.
func at(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return t
}

func minutes(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Minute}
}

// 96 to 101: when a schedule is due.
func TestNext(t *testing.T) {
	const daily = "0 2 * * *"
	since := at("2026-11-01 00:00")
	for name, c := range map[string]struct {
		spec   schema.BackupScheduleSpec
		past   Past
		now    string
		due    bool
		at     string
		begins string
		missed int
		why    string
	}{
		"96: it waits for its time": {now: "2026-11-01 01:59", at: "2026-11-01 02:00"},
		"96: its time has come":     {now: "2026-11-01 02:00", due: true, at: "2026-11-01 02:00"},
		"96: once":                  {past: Past{Struck: at("2026-11-01 02:00"), Ended: at("2026-11-01 02:05")}, now: "2026-11-01 02:06", at: "2026-11-02 02:00"},
		"97: one was missed":        {past: Past{Struck: at("2026-11-01 02:00")}, now: "2026-11-03 01:00", due: true, at: "2026-11-02 02:00"},
		"97: many were missed, and one makes them good": {
			past: Past{Struck: at("2026-11-01 02:00")}, now: "2026-11-10 01:00", due: true, at: "2026-11-09 02:00", missed: 7,
		},
		"97: what came before the schedule was not missed": {now: "2026-11-01 00:30", at: "2026-11-01 02:00"},
		"98: away longer than anybody counts": {
			spec: schema.BackupScheduleSpec{Schedule: "* * * * *"}, past: Past{Struck: at("2026-11-01 02:00")},
			now: "2026-11-20 02:00", due: true, at: "2026-11-20 02:00", missed: 1000,
		},
		"98: the same of a schedule with a long pause": {
			spec: schema.BackupScheduleSpec{Schedule: "* 3 * * *"}, past: Past{Struck: at("2025-11-01 02:00")},
			now: "2026-11-20 02:00", due: true, at: "2026-11-19 03:59", missed: 1000,
		},
		"98: the same of one whose last time is long ago": {
			spec: schema.BackupScheduleSpec{Schedule: "* * 1 1 *"}, past: Past{Since: at("2025-11-01 00:00")},
			now: "2026-03-01 00:00", due: true, at: "2026-01-01 23:59", missed: 1000,
		},
		"98: the same of one that does not come again for years": {
			spec: schema.BackupScheduleSpec{Schedule: "* * 29 2 *"}, past: Past{Since: at("2096-01-01 00:00")},
			now: "2096-03-01 00:00", due: true, at: "2096-02-29 23:59", missed: 1000,
		},
		"99: the clock jumps back": {
			past: Past{Struck: at("2027-11-01 02:00"), Ended: at("2027-11-01 02:01")}, now: "2026-11-20 01:00", due: true, at: "2026-11-19 02:00", missed: 18,
		},
		"99: the clock jumps ahead": {
			past: Past{Struck: at("2026-11-01 02:00")}, now: "2027-11-01 02:00", due: true, at: "2027-11-01 02:00", missed: 364,
		},
		"99: the clocks skip the time": {
			spec: schema.BackupScheduleSpec{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin"}, past: Past{Since: at("2026-03-01 00:00"), Struck: at("2026-03-28 01:30")},
			now: "2026-03-29 01:00", due: true, at: "2026-03-29 01:00",
		},
		"100: a time that came during a backup is left out": {
			spec: schema.BackupScheduleSpec{Schedule: "@hourly"}, past: Past{Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 04:30")},
			now: "2026-11-20 04:31", at: "2026-11-20 05:00", why: "the time at 2026-11-20T04:00:00Z came while a backup was still being taken, and is left out",
		},
		"100: nothing is left out before the last backup's end, where the clock jumps back": {
			spec: schema.BackupScheduleSpec{Schedule: "@hourly"}, past: Past{Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 04:30")},
			now: "2026-11-20 03:30", due: true, at: "2026-11-20 03:00",
		},
		"178: the last time whose backup begins, and not one that waits": {
			spec: schema.BackupScheduleSpec{Schedule: "*/10 * * * *", Jitter: minutes(60)}, past: Past{Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 02:44")},
			now: "2026-11-20 02:54", due: true, at: "2026-11-20 02:10", begins: "2026-11-20 02:53",
		},
		"178: many were missed, with a jitter": {
			spec: schema.BackupScheduleSpec{Schedule: "*/10 * * * *", Jitter: minutes(60)}, past: Past{Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 02:44")},
			now: "2026-11-20 04:00", due: true, at: "2026-11-20 03:10", begins: "2026-11-20 03:53", missed: 6,
		},
		"178: behind its deadline, the next one is the one that waits": {
			spec: schema.BackupScheduleSpec{Schedule: "*/10 * * * *", Jitter: minutes(60), StartingDeadline: minutes(1)}, past: Past{Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 02:44")},
			now: "2026-11-20 02:59", at: "2026-11-20 02:20", begins: "2026-11-20 03:03", why: "the time at 2026-11-20T02:10:00Z is missed: the deadline of 1m0s has passed",
		},
		"101: suspended": {spec: schema.BackupScheduleSpec{Suspend: true}, now: "2026-11-20 02:00", why: "suspended"},
		"101: another schedule goes on from the last backup": {
			spec: schema.BackupScheduleSpec{Schedule: "0 */6 * * *"}, past: Past{Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 02:01")},
			now: "2026-11-20 06:00", due: true, at: "2026-11-20 06:00",
		},
		"within the deadline": {
			spec: schema.BackupScheduleSpec{StartingDeadline: minutes(30)}, now: "2026-11-01 02:30", due: true, at: "2026-11-01 02:00",
		},
		"behind it": {
			spec: schema.BackupScheduleSpec{StartingDeadline: minutes(30)}, now: "2026-11-01 02:31", at: "2026-11-02 02:00",
			why: "the time at 2026-11-01T02:00:00Z is missed: the deadline of 30m0s has passed",
		},
		"jitter delays it": {
			spec: schema.BackupScheduleSpec{Jitter: minutes(60)}, now: "2026-11-01 02:10", at: "2026-11-01 02:00", begins: "2026-11-01 02:43",
		},
		"and no longer": {
			spec: schema.BackupScheduleSpec{Jitter: minutes(60)}, now: "2026-11-01 02:44", due: true, at: "2026-11-01 02:00", begins: "2026-11-01 02:43",
		},
		"the first failure": {
			past: Past{Failures: 1, FailedAt: at("2026-11-01 02:00")}, now: "2026-11-01 02:00", at: "2026-11-01 02:00", begins: "2026-11-01 02:01",
			why: "tried again after failure 1, later each time",
		},
		"the tenth": {
			past: Past{Failures: 10, FailedAt: at("2026-11-01 12:00")}, now: "2026-11-01 12:59", at: "2026-11-01 02:00", begins: "2026-11-01 13:00",
			why: "tried again after failure 10, later each time",
		},
		"a schedule that ends": {spec: schema.BackupScheduleSpec{Schedule: "0 0 29 2 *"}, now: "2026-11-20 00:00", at: "2028-02-29 00:00"},
		"a schedule without a time for years": {
			spec: schema.BackupScheduleSpec{Schedule: "0 0 29 2 *", Jitter: minutes(60)}, past: Past{Since: at("2096-03-01 00:00")},
			now: "2096-03-01 00:00", why: "the schedule does not come again within five years",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.spec.Schedule == "" {
				c.spec.Schedule = daily
			}
			if c.past.Since.IsZero() {
				c.past.Since = since
			}
			if c.begins == "" {
				c.begins = c.at
			}
			d, err := Next(c.spec, "shop/nightly", c.past, at(c.now))
			if err != nil || d.Now != c.due || !d.At.Equal(at(c.at)) || !d.Begins.Truncate(time.Minute).Equal(at(c.begins)) || d.Missed != c.missed || d.Why != c.why {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	if _, err := Next(schema.BackupScheduleSpec{Schedule: "at noon"}, "", Past{}, since); err == nil {
		t.Error("a schedule that cannot be read is no error")
	}
}

// A thousand schedules of one line do not strike at once, and each keeps its time.
func TestJitterSpreadsSchedules(t *testing.T) {
	spec := schema.BackupScheduleSpec{Jitter: minutes(60)}
	quarters := map[time.Duration]int{}
	for i := range 1000 {
		key := "shop/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		d := jitter(spec, key)
		if d < 0 || d >= time.Hour || d != jitter(spec, key) {
			t.Fatalf("%s: %s", key, d)
		}
		quarters[d/(15*time.Minute)]++
	}
	for quarter, n := range quarters {
		if n < 200 || n > 300 {
			t.Errorf("%d of 1000 in quarter %d", n, quarter)
		}
	}
}

// I21: a daemon that is away at any times makes a backup whenever one is due, never
// two for one time, and never one for a time that has not come.
func TestNothingIsForgottenAndNothingTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := schema.BackupScheduleSpec{
			Schedule: rapid.SampledFrom([]string{"0 2 * * *", "*/7 * * * *", "@every 90m", "30 2 29 3,10 *"}).Draw(t, "schedule"),
			TimeZone: rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York"}).Draw(t, "zone"),
			Jitter:   minutes(rapid.IntRange(0, 20).Draw(t, "jitter")),
		}
		now := at("2026-03-20 00:00")
		past := Past{Since: now}
		for range 20 {
			d, err := Next(spec, "shop/nightly", past, now)
			switch {
			case err != nil:
				t.Fatal(err)
			case d.Now && (d.At.After(now) || !d.At.After(past.Struck)):
				t.Fatalf("at %s, after %s: %+v", now, past.Struck, d)
			case !d.Now && !d.Begins.After(now):
				t.Fatalf("at %s nothing is due, and the next was to begin at %s", now, d.Begins)
			}
			if d.Now {
				past.Struck, past.Ended = d.At, now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "taken"))*time.Minute)
				now = past.Ended
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "away")) * time.Minute)
		}
	})
}

// 472: a record may say anything of failures, also less than none.
func TestFailuresBelowZeroAreNone(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, failures := range []int{-1, -64, math.MinInt} {
		past := Past{Since: now.Add(-time.Hour), Failures: failures, FailedAt: now}
		if d := Once(past, false, now); !d.Now {
			t.Errorf("%d: %+v", failures, d)
		}
		if d, err := Next(schema.BackupScheduleSpec{Schedule: "*/10 * * * *"}, "k", past, now); err != nil || !d.Now {
			t.Errorf("%d: %+v, %v", failures, d, err)
		}
	}
}
