package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/schema"
)

// 95: a backup that was asked for once is taken once, and tried again later each
// time while it fails.
func TestOnce(t *testing.T) {
	asked := at("2026-11-20 12:00")
	if d := Once(Past{Since: asked}, false, asked); d != (Due{Now: true, At: asked, Begins: asked}) {
		t.Errorf("not begun at once: %+v", d)
	}
	for failures, wait := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 40: time.Hour} {
		past := Past{Since: asked, Failures: failures, FailedAt: asked}
		if d := Once(past, false, asked.Add(wait-time.Second)); d.Now || !d.Begins.Equal(asked.Add(wait)) || !strings.Contains(d.Why, "later each time") {
			t.Errorf("after %d failures: %+v", failures, d)
		}
		if d := Once(past, false, asked.Add(wait)); !d.Now {
			t.Errorf("after %d failures and %s: %+v", failures, wait, d)
		}
	}
	if d := Once(Past{Since: asked}, true, asked.Add(999*time.Hour)); d.Now || !d.Begins.IsZero() {
		t.Errorf("begun again: %+v", d)
	}
}

// 115: when a schedule is overdue.
func TestOverdueAt(t *testing.T) {
	since, now := at("2026-11-20 00:00"), at("2026-11-20 12:00")
	daily := schema.BackupScheduleSpec{Schedule: "0 2 * * *"}
	with := func(edit func(s *schema.BackupScheduleSpec)) schema.BackupScheduleSpec {
		s := daily
		edit(&s)
		return s
	}
	for name, c := range map[string]struct {
		spec schema.BackupScheduleSpec
		past Past
		want string
	}{
		"a quarter of an hour by itself":         {daily, Past{Since: since}, "2026-11-20 02:15"},
		"its own deadline":                       {with(func(s *schema.BackupScheduleSpec) { s.StartingDeadline = minutes(90) }), Past{Since: since}, "2026-11-20 03:30"},
		"from the last backup on":                {daily, Past{Since: since, Struck: at("2026-11-20 02:00"), Ended: at("2026-11-20 02:01")}, "2026-11-21 02:15"},
		"the first of many missed":               {daily, Past{Since: since, Struck: at("2026-11-15 02:00")}, "2026-11-20 02:15"},
		"179: a past ahead of the clock is none": {daily, Past{Since: since, Struck: at("2027-11-20 02:00")}, "2026-11-20 02:15"},
		"suspended never":                        {with(func(s *schema.BackupScheduleSpec) { s.Suspend = true }), Past{Since: since}, ""},
		"without a time for years never": {
			with(func(s *schema.BackupScheduleSpec) { s.Schedule = "0 0 29 2 *" }), Past{Since: at("2096-03-01 00:00")}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := now
			if c.past.Since.After(now) {
				now = c.past.Since
			}
			got, err := OverdueAt(c.spec, "shop/nightly", c.past, now)
			if err != nil || got.IsZero() != (c.want == "") || !got.IsZero() && !got.Equal(at(c.want)) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	jittered := with(func(s *schema.BackupScheduleSpec) { s.Jitter = minutes(60) })
	got, err := OverdueAt(jittered, "shop/nightly", Past{Since: since}, now)
	if want := at("2026-11-20 02:15").Add(jitter(jittered, "shop/nightly")); err != nil || !got.Equal(want) {
		t.Errorf("with jitter at %s, %v", got, err)
	}
	if _, err := OverdueAt(schema.BackupScheduleSpec{Schedule: "at noon"}, "", Past{}, now); err == nil {
		t.Error("a schedule that cannot be read is no error")
	}
}
