package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/schema"
)

// stored is a backup at an hour of November 2026, in UTC.
func stored(day, hour int, edits ...func(*Stored)) Stored {
	b := Stored{URL: fmt.Sprintf("s3://backups/%02d%02d.db", day, hour), Time: time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC), Revision: int64(day*100 + hour)}
	for _, edit := range edits {
		edit(&b)
	}
	return b
}

func damaged(b *Stored)  { b.Damaged = "its sha256 is another one" }
func neededBy(b *Stored) { b.NeededBy = "the upgrade to 3.6.16" }

// hours is an age.
func hours(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }

// 102: what is kept and what goes, with the reasons.
func TestRetain(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		spec    schema.RetentionSpec
		zone    string
		backups []Stored
		want    []string
	}{
		"nothing": {want: nil},
		"no rule keeps all": {
			backups: []Stored{stored(1, 0), stored(20, 0)},
			want:    []string{"keep 2000: no rule removes it, the newest that can be restored", "keep 0100: no rule removes it"},
		},
		"the last two": {
			spec: schema.RetentionSpec{KeepLast: new(int32(2))}, backups: []Stored{stored(18, 0), stored(20, 0), stored(19, 0)},
			want: []string{"keep 2000: last 1 of 2, the newest that can be restored", "keep 1900: last 2 of 2", "remove 1800: no rule keeps it"},
		},
		"keepLast 0 keeps all": {
			spec: schema.RetentionSpec{KeepLast: new(int32(0))}, backups: []Stored{stored(18, 0), stored(20, 0)},
			want: []string{"keep 2000: all are kept, the newest that can be restored", "keep 1800: all are kept"},
		},
		"numbers are ordered as numbers": {
			spec: schema.RetentionSpec{KeepLast: new(int32(1))},
			backups: []Stored{
				stored(20, 0, func(b *Stored) { b.URL, b.Revision = "9", 9 }),
				stored(20, 0, func(b *Stored) { b.URL, b.Revision = "10", 10 }),
				stored(20, 0, func(b *Stored) { b.URL, b.Revision = "99", 99 }),
				stored(20, 0, func(b *Stored) { b.URL, b.Revision = "100", 100 }),
			},
			want: []string{"keep 100: last 1 of 1, the newest that can be restored", "remove 99: no rule keeps it", "remove 10: no rule keeps it", "remove 9: no rule keeps it"},
		},
		"the newest of each day": {
			spec: schema.RetentionSpec{KeepDaily: 2}, backups: []Stored{stored(20, 6), stored(20, 0), stored(19, 18), stored(19, 6), stored(17, 0)},
			want: []string{
				"keep 2006: daily 2026-11-20, the newest that can be restored", "remove 2000: no rule keeps it",
				"keep 1918: daily 2026-11-19", "remove 1906: no rule keeps it", "remove 1700: no rule keeps it",
			},
		},
		"days are those of the zone": {
			spec: schema.RetentionSpec{KeepDaily: 1}, zone: "Asia/Tokyo", backups: []Stored{stored(19, 16), stored(19, 14)},
			want: []string{"keep 1916: daily 2026-11-20, the newest that can be restored", "remove 1914: no rule keeps it"},
		},
		"days without a backup count for nothing": {
			spec: schema.RetentionSpec{KeepDaily: 2}, backups: []Stored{stored(20, 0), stored(3, 0)},
			want: []string{"keep 2000: daily 2026-11-20, the newest that can be restored", "keep 0300: daily 2026-11-03"},
		},
		"grandfather, father and son": {
			spec: schema.RetentionSpec{KeepLast: new(int32(1)), KeepDaily: 2, KeepWeekly: 2, KeepMonthly: 2},
			backups: []Stored{
				stored(20, 0), stored(19, 0), stored(15, 0), stored(8, 0),
				{URL: "october", Time: time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC)},
			},
			want: []string{
				"keep 2000: last 1 of 1, daily 2026-11-20, weekly 2026-W47, monthly 2026-11, the newest that can be restored",
				"keep 1900: daily 2026-11-19", "keep 1500: weekly 2026-W46", "remove 0800: no rule keeps it", "keep october: monthly 2026-10",
			},
		},
		"by age": {
			spec: schema.RetentionSpec{MaxAge: hours(24)}, backups: []Stored{stored(20, 0), stored(19, 0)},
			want: []string{"keep 2000: no rule removes it, the newest that can be restored", "remove 1900: older than 24h"},
		},
		"of just that age": {
			spec: schema.RetentionSpec{MaxAge: hours(24)}, backups: []Stored{stored(20, 0), stored(19, 12)},
			want: []string{"keep 2000: no rule removes it, the newest that can be restored", "keep 1912: no rule removes it"},
		},
		"age is stronger than a rule": {
			spec: schema.RetentionSpec{KeepLast: new(int32(9)), MaxAge: hours(24)}, backups: []Stored{stored(20, 0), stored(1, 0)},
			want: []string{"keep 2000: last 1 of 9, the newest that can be restored", "remove 0100: older than 24h"},
		},
		"the last good one stays at any age": {
			spec: schema.RetentionSpec{MaxAge: hours(24)}, backups: []Stored{stored(1, 0), stored(20, 0, damaged)},
			want: []string{"keep 2000: no rule removes it", "keep 0100: the newest that can be restored"},
		},
		"a damaged one takes nobody's place, and stays as long as a good one": {
			spec: schema.RetentionSpec{KeepLast: new(int32(2))}, backups: []Stored{stored(20, 0, damaged), stored(19, 0), stored(18, 0, damaged), stored(17, 0)},
			want: []string{
				"keep 2000: last 1 of 2", "keep 1900: last 1 of 2, the newest that can be restored",
				"remove 1800: it cannot be restored: its sha256 is another one", "keep 1700: last 2 of 2",
			},
		},
		"what an operation needs stays": {
			spec: schema.RetentionSpec{KeepLast: new(int32(1)), MaxAge: hours(24)}, backups: []Stored{stored(20, 0), stored(1, 0, neededBy)},
			want: []string{"keep 2000: last 1 of 1, the newest that can be restored", "keep 0100: needed by the upgrade to 3.6.16"},
		},
		"one of a clock that was ahead is not old": {
			spec: schema.RetentionSpec{MaxAge: hours(24)}, backups: []Stored{stored(29, 0)},
			want: []string{"keep 2900: no rule removes it, the newest that can be restored"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			if got := retained(Retain(c.spec, zone, c.backups, now)); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// retained is a verdict a line, as in "keep 2000: last 1 of 2".
func retained(verdicts []Verdict) []string {
	var lines []string
	for _, v := range verdicts {
		word := "remove "
		if v.Keep {
			word = "keep "
		}
		name := strings.TrimSuffix(strings.TrimPrefix(v.URL, "s3://backups/"), ".db")
		lines = append(lines, word+name+": "+strings.Join(v.Reasons, ", "))
	}
	return lines
}

// I21: whatever the rules, the newest good backup is kept, and what is needed;
// nothing is lost or made up, and what was thrown away once would be again.
func TestRetainKeepsWhatRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := schema.RetentionSpec{
			KeepLast: new(rapid.Int32Range(0, 3).Draw(t, "last")), KeepHourly: rapid.Int32Range(0, 2).Draw(t, "hourly"),
			KeepDaily: rapid.Int32Range(0, 2).Draw(t, "daily"), KeepWeekly: rapid.Int32Range(0, 2).Draw(t, "weekly"),
			MaxAge: hours(rapid.IntRange(1, 400).Draw(t, "age")),
		}
		var backups []Stored
		for range rapid.IntRange(1, 12).Draw(t, "backups") {
			b := stored(rapid.IntRange(1, 28).Draw(t, "day"), rapid.IntRange(0, 23).Draw(t, "hour"))
			if rapid.Bool().Draw(t, "damaged") {
				damaged(&b)
			}
			if rapid.IntRange(0, 9).Draw(t, "needed") == 0 {
				neededBy(&b)
			}
			backups = append(backups, b)
		}
		now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
		verdicts := Retain(spec, time.UTC, backups, now)
		if len(verdicts) != len(backups) {
			t.Fatalf("%d verdicts on %d backups", len(verdicts), len(backups))
		}
		var kept []Stored
		good := false
		for _, v := range verdicts {
			first := v.Damaged == "" && !good
			good = good || v.Damaged == ""
			if (first || v.NeededBy != "") && !v.Keep || len(v.Reasons) == 0 {
				t.Fatalf("%+v", v)
			}
			if v.Keep {
				kept = append(kept, v.Stored)
			}
		}
		for _, v := range Retain(spec, time.UTC, kept, now) {
			if !v.Keep && v.Damaged == "" {
				t.Fatalf("kept at first, and removed the second time: %+v", v)
			}
		}
	})
}
