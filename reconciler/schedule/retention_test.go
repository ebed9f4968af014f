package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/reconciler/clock"
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

func lastOne(b *Stored)  { b.Last = true }
func ofYoung(b *Stored)  { b.ClusterID = "young" }
func damaged(b *Stored)  { b.Damaged = "its sha256 is another one" }
func proven(b *Stored)   { b.Proven = true }
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
		"the newest that a drill has restored": {
			spec:    schema.RetentionSpec{KeepLast: new(int32(1)), MaxAge: hours(24)},
			backups: []Stored{stored(20, 0), stored(19, 0), stored(18, 0, proven), stored(17, 0, proven), stored(16, 0, ofYoung, proven)},
			want: []string{
				"keep 2000: last 1 of 1, the newest that can be restored", "remove 1900: older than 24h", "keep 1800: the newest that a drill has restored",
				"remove 1700: older than 24h", "keep 1600: the newest of its cluster that can be restored",
			},
		},
		"which may be one that is kept anyway": {
			spec: schema.RetentionSpec{KeepLast: new(int32(1))}, backups: []Stored{stored(20, 0, proven), stored(19, 0, proven)},
			want: []string{"keep 2000: last 1 of 1, the newest that can be restored", "remove 1900: no rule keeps it"},
		},
		"but not one of tomorrow": {
			spec: schema.RetentionSpec{KeepLast: new(int32(1))}, backups: []Stored{stored(21, 0, proven), stored(20, 0), stored(19, 0, proven)},
			want: []string{"keep 2100: dated ahead of the clock, and neither counted nor removed", "keep 2000: last 1 of 1, the newest that can be restored", "keep 1900: the newest that a drill has restored"},
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
		"180: one of a clock that was ahead takes nobody's place, and is not the newest": {
			spec: schema.RetentionSpec{KeepLast: new(int32(1)), MaxAge: hours(24)}, backups: []Stored{stored(29, 0), stored(28, 0), stored(20, 0), stored(1, 0)},
			want: []string{
				"keep 2900: dated ahead of the clock, and neither counted nor removed", "keep 2800: dated ahead of the clock, and neither counted nor removed",
				"keep 2000: last 1 of 1, the newest that can be restored", "remove 0100: older than 24h",
			},
		},
		"180: one of a clock that differs by a little is counted": {
			spec:    schema.RetentionSpec{KeepLast: new(int32(1))},
			backups: []Stored{stored(20, 0), stored(20, 12, func(b *Stored) { b.Time = b.Time.Add(time.Minute) })},
			want:    []string{"keep 2012: last 1 of 1, the newest that can be restored", "remove 2000: no rule keeps it"},
		},
		"180: the last one of the record stays, wherever its time puts it": {
			spec: schema.RetentionSpec{KeepLast: new(int32(1)), MaxAge: hours(24)}, backups: []Stored{stored(20, 0), stored(18, 0, lastOne)},
			want: []string{"keep 2000: last 1 of 1, the newest that can be restored", "keep 1800: the last one of the record"},
		},
		"181: a cluster that is new rotates nothing of the old one away": {
			spec:    schema.RetentionSpec{KeepLast: new(int32(2))},
			backups: []Stored{stored(20, 0, ofYoung), stored(20, 1, ofYoung, damaged), stored(19, 0), stored(18, 0), stored(17, 0)},
			want: []string{
				"keep 2001: last 1 of 2", "keep 2000: last 1 of 2, the newest that can be restored",
				"keep 1900: last 1 of 2 of its cluster, the newest of its cluster that can be restored", "keep 1800: last 2 of 2 of its cluster", "remove 1700: no rule keeps it",
			},
		},
		"181: until it has as many good ones, and then the newest good one of the old one stays": {
			spec:    schema.RetentionSpec{KeepLast: new(int32(2)), MaxAge: hours(48)},
			backups: []Stored{stored(20, 0, ofYoung), stored(19, 18, ofYoung), stored(19, 12, damaged), stored(19, 0), stored(18, 13), stored(1, 0)},
			want: []string{
				"keep 2000: last 1 of 2, the newest that can be restored", "keep 1918: last 2 of 2",
				"remove 1912: it cannot be restored: its sha256 is another one", "keep 1900: the newest of its cluster that can be restored", "remove 1813: no rule keeps it", "remove 0100: older than 48h",
			},
		},
		"181: each rule for itself": {
			spec:    schema.RetentionSpec{KeepLast: new(int32(1)), KeepDaily: 2},
			backups: []Stored{stored(20, 6, ofYoung), stored(20, 0, ofYoung), stored(19, 6), stored(19, 0), stored(18, 0), stored(17, 0)},
			want: []string{
				"keep 2006: last 1 of 1, daily 2026-11-20, the newest that can be restored", "remove 2000: no rule keeps it",
				"keep 1906: daily 2026-11-19 of its cluster, the newest of its cluster that can be restored", "remove 1900: no rule keeps it", "keep 1800: daily 2026-11-18 of its cluster", "remove 1700: no rule keeps it",
			},
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

// randomSpec and randomBackups are whatever a schedule may have come to, with backups
// of three clusters that began one after another, and some of a clock that was ahead.
func randomSpec(t *rapid.T) schema.RetentionSpec {
	spec := schema.RetentionSpec{
		KeepHourly: rapid.Int32Range(0, 2).Draw(t, "hourly"),
		KeepDaily:  rapid.Int32Range(0, 2).Draw(t, "daily"), KeepWeekly: rapid.Int32Range(0, 2).Draw(t, "weekly"),
	}
	if rapid.Bool().Draw(t, "by number") {
		spec.KeepLast = new(rapid.Int32Range(0, 3).Draw(t, "last"))
	}
	if rapid.Bool().Draw(t, "by age") {
		spec.MaxAge = hours(rapid.IntRange(1, 400).Draw(t, "age"))
	}
	return spec
}

func randomBackups(t *rapid.T) []Stored {
	var backups []Stored
	second, third := rapid.IntRange(1, 28).Draw(t, "second"), rapid.IntRange(1, 28).Draw(t, "third")
	for i := range rapid.IntRange(1, 14).Draw(t, "backups") {
		day := rapid.IntRange(1, 30).Draw(t, "day")
		b := stored(day, rapid.IntRange(0, 23).Draw(t, "hour"), func(b *Stored) { b.URL = fmt.Sprint("s3://backups/", i, ".db") })
		switch {
		case day > 28: // ahead of the clock
			b.ClusterID = rapid.SampledFrom([]string{"", "second", "third"}).Draw(t, "cluster")
		case day > second+third:
			b.ClusterID = "third"
		case day > second:
			b.ClusterID = "second"
		}
		if rapid.IntRange(0, 2).Draw(t, "damaged") == 0 {
			damaged(&b)
		}
		if rapid.IntRange(0, 9).Draw(t, "needed") == 0 {
			neededBy(&b)
		}
		b.Last = rapid.IntRange(0, 9).Draw(t, "last one") == 0
		backups = append(backups, b)
	}
	return backups
}

// november is the clock of those tests: two days of the month are still to come.
func november() time.Time {
	return time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC).Add(-clock.Tolerance - 1)
}

// kept are those that stay, by URL.
func kept(verdicts []Verdict) map[string]bool {
	stay := map[string]bool{}
	for _, v := range verdicts {
		if v.Keep {
			stay[v.URL] = true
		}
	}
	return stay
}

// 180, 181, I10: whatever the rules and whatever the clocks have said, the newest good
// backup of each cluster stays, and so do the last one of the record, what is
// needed, and what is dated ahead; nothing is lost or made up, and what was kept once
// is kept the second time.
func TestRetainKeepsWhatRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, backups, now := randomSpec(t), randomBackups(t), november()
		verdicts := Retain(spec, time.UTC, backups, now)
		if len(verdicts) != len(backups) {
			t.Fatalf("%d verdicts on %d backups", len(verdicts), len(backups))
		}
		var stay []Stored
		good := map[string]bool{}
		for _, v := range verdicts {
			ahead := clock.Ahead(v.Time, now)
			newest := v.Damaged == "" && !ahead && !good[v.ClusterID]
			good[v.ClusterID] = good[v.ClusterID] || v.Damaged == "" && !ahead
			if (newest || ahead || v.Last || v.NeededBy != "") && !v.Keep || len(v.Reasons) == 0 {
				t.Fatalf("%+v", v)
			}
			if v.Keep {
				stay = append(stay, v.Stored)
			}
		}
		for _, v := range Retain(spec, time.UTC, stay, now) {
			if !v.Keep && v.Damaged == "" {
				t.Fatalf("kept at first, and removed the second time: %+v", v)
			}
		}
	})
}

// 180: what a clock that was ahead has dated changes nothing for all others.
func TestRetainDoesNotCountWhatIsDatedAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, backups, now := randomSpec(t), randomBackups(t), november()
		dated := slices.DeleteFunc(slices.Clone(backups), func(b Stored) bool { return clock.Ahead(b.Time, now) })
		with, without := kept(Retain(spec, time.UTC, backups, now)), kept(Retain(spec, time.UTC, dated, now))
		for _, b := range dated {
			if with[b.URL] != without[b.URL] {
				t.Fatalf("kept %t, and %t without those that are dated ahead: %+v", with[b.URL], without[b.URL], b)
			}
		}
	})
}

// 181: the first backups of a new cluster remove none of the old one's, and of a rule's
// number none is removed before it has that many good ones.
func TestANewClusterRotatesNothingAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, now := randomSpec(t), november()
		old := slices.DeleteFunc(randomBackups(t), func(b Stored) bool { return clock.Ahead(b.Time, now) })
		before := kept(Retain(spec, time.UTC, old, now))
		least := 3
		for _, n := range []int32{spec.KeepHourly, spec.KeepDaily, spec.KeepWeekly} {
			if n > 0 {
				least = min(least, int(n))
			}
		}
		if spec.KeepLast != nil && *spec.KeepLast > 0 {
			least = min(least, int(*spec.KeepLast))
		}
		all := slices.Clone(old)
		for i := range rapid.IntRange(0, 4).Draw(t, "bad") {
			all = append(all, stored(28, 20+i%4, damaged, func(b *Stored) { b.URL, b.ClusterID = fmt.Sprint("bad", i), "new" }))
		}
		for i := range rapid.IntRange(0, least-1).Draw(t, "good") {
			all = append(all, stored(28, 20+i, func(b *Stored) { b.URL, b.ClusterID = fmt.Sprint("good", i), "new" }))
		}
		after := kept(Retain(spec, time.UTC, all, now))
		for url := range before {
			if !after[url] {
				t.Fatalf("a cluster with less than %d good backups has removed %s", least, url)
			}
		}
	})
}

// 182: how much may go at once without a person's word: half of all, and a few in any
// case. What the store has refused to remove before is tried again, and not counted.
func TestTooMany(t *testing.T) {
	verdicts := func(keep, remove int) (all []Verdict) {
		for i := range keep + remove {
			all = append(all, Verdict{Stored: Stored{URL: fmt.Sprint(i)}, Keep: i < keep})
		}
		return all
	}
	for _, c := range []struct {
		keep, remove, refused int
		want                  bool
	}{
		{0, 0, 0, false},
		{9, 0, 0, false},
		{1, 1, 0, false},
		{1, 3, 0, false},
		{1, 4, 0, true},
		{4, 4, 0, false},
		{4, 5, 0, true},
		{50, 50, 0, false},
		{50, 51, 0, true},
		{3, 97, 0, true},
		{7, 83, 82, false},
		{7, 83, 40, false},
		{7, 83, 37, true},
	} {
		all := verdicts(c.keep, c.remove)
		refused := map[string]bool{}
		for _, v := range all[c.keep:][:c.refused] {
			refused[v.URL] = true
		}
		remove, most := AtOnce(all, func(url string) bool { return refused[url] })
		if remove != c.remove-c.refused || (remove > most) != c.want {
			t.Errorf("%+v: %d, and at most %d", c, remove, most)
		}
	}
}
