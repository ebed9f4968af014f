package schedule

import (
	"testing"
	"time"

	"github.com/quorate/quorate/schema"
)

// 107: which backups are restored on trial, and when.
func TestDrillAt(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// Sunday, an hour before midnight in Berlin.
	sunday := time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return sunday.Add(time.Duration(hours) * time.Hour) }
	passed := func(hours int) Drills { return Drills{Backup: at(hours), Passed: true} }
	for name, c := range map[string]struct {
		how    schema.RestoreDrill
		newest time.Time
		past   Drills
		want   time.Time
	}{
		"never":                                  {schema.DrillNever, at(0), Drills{}, time.Time{}},
		"nothing said":                           {"", at(0), Drills{}, time.Time{}},
		"the first, always":                      {schema.DrillAlways, at(0), Drills{}, at(0)},
		"the first of all days":                  {schema.DrillDaily, at(0), Drills{}, at(0)},
		"the first of all weeks":                 {schema.DrillWeekly, at(0), Drills{}, at(0)},
		"the same again":                         {schema.DrillAlways, at(0), passed(0), time.Time{}},
		"the next, always":                       {schema.DrillAlways, at(1), passed(0), at(1)},
		"the second of a day":                    {schema.DrillDaily, at(0), passed(-1), time.Time{}},
		"the first of the next day":              {schema.DrillDaily, at(1), passed(0), at(1)},
		"a day later in UTC only":                {schema.DrillDaily, at(2), passed(1), time.Time{}},
		"the next day of a week":                 {schema.DrillWeekly, at(0), passed(-24), time.Time{}},
		"the first of the next week":             {schema.DrillWeekly, at(1), passed(0), at(1)},
		"a year later":                           {schema.DrillWeekly, at(0), passed(-24 * 364), at(0)},
		"after a bad one, at once":               {schema.DrillWeekly, at(0), Drills{Backup: at(-1)}, at(0)},
		"a bad one is not done again":            {schema.DrillAlways, at(0), Drills{Backup: at(0)}, time.Time{}},
		"an older one than the judged":           {schema.DrillAlways, at(-1), passed(0), time.Time{}},
		"an older one, of another day":           {schema.DrillDaily, at(-48), passed(0), time.Time{}},
		"179: the judged one was dated ahead":    {schema.DrillWeekly, at(0), passed(24 * 300), at(0)},
		"179: the same one, dated ahead":         {schema.DrillAlways, at(24 * 300), passed(24 * 300), time.Time{}},
		"179: the newest is dated ahead":         {schema.DrillAlways, at(24 * 300), Drills{}, at(24 * 2)},
		"179: and so is another one that passed": {schema.DrillAlways, at(24 * 300), passed(24 * 299), at(24 * 2)},
		"179: no judgement, at a time ahead":     {schema.DrillDaily, at(0), Drills{Failures: 3, FailedAt: at(24 * 300)}, at(0)},
		"no judgement, once":                     {schema.DrillDaily, at(0), Drills{Failures: 1, FailedAt: at(3)}, at(3).Add(time.Minute)},
		"no judgement, three times":              {schema.DrillDaily, at(0), Drills{Failures: 3, FailedAt: at(3)}, at(3).Add(4 * time.Minute)},
		"no judgement, very often":               {schema.DrillDaily, at(0), Drills{Failures: 99, FailedAt: at(3)}, at(4)},
		"a person asks for a bad one":            {schema.DrillAlways, at(0), Drills{Backup: at(0), Again: true}, at(0)},
		"a person asks for a good one":           {schema.DrillWeekly, at(0), Drills{Backup: at(0), Passed: true, Again: true}, at(0)},
		"a person asks, tried twice":             {schema.DrillWeekly, at(0), Drills{Backup: at(0), Again: true, Failures: 2, FailedAt: at(3)}, at(3).Add(2 * time.Minute)},
		"a person asks, never":                   {schema.DrillNever, at(0), Drills{Backup: at(0), Again: true}, time.Time{}},
	} {
		if got := DrillAt(c.how, berlin, c.newest, c.past, at(24*2)); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
