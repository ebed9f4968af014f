package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// Backups are looked through once after each good one, and now and then only where
// no more come; where nothing is to be removed, never.
func TestRetainsOnlyWhereThereIsReason(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	kept := func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) }
	suspended := func(s *schema.BackupScheduleSpec) { s.Suspend = true }
	last := &doneBackup{URL: "s3://b/1.db"}
	for name, c := range map[string]struct {
		q    desired.Backup
		rec  Record
		want bool
	}{
		"after a good backup":                  {clustertest.Nightly(kept), Record{Last: last, Ended: now.Add(-time.Hour), Retained: now.Add(-2 * time.Hour)}, true},
		"of a single backup":                   {clustertest.Once(), Record{Last: last, Ended: now}, false},
		"before the first good one":            {clustertest.Nightly(kept), Record{Ended: now}, false},
		"suspended before the first":           {clustertest.Nightly(kept, suspended), Record{}, false},
		"without retention":                    {clustertest.Nightly(), Record{Last: last, Ended: now}, false},
		"suspended, without retention":         {clustertest.Nightly(suspended), Record{Last: last}, false},
		"while more come":                      {clustertest.Nightly(kept), Record{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-8 * time.Hour)}, false},
		"suspended, an hour ago":               {clustertest.Nightly(kept, suspended), Record{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-time.Hour)}, true},
		"suspended, a moment ago":              {clustertest.Nightly(kept, suspended), Record{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-59 * time.Minute)}, false},
		"180: noted after this backup":         {clustertest.Nightly(kept), Record{Last: last, Ended: now, RetainedAfter: now, Retained: now.Add(-time.Hour)}, false},
		"180: noted after an earlier one":      {clustertest.Nightly(kept), Record{Last: last, Ended: now, RetainedAfter: now.Add(-time.Hour), Retained: now.Add(time.Hour)}, true},
		"180: the end lies ahead":              {clustertest.Nightly(kept), Record{Last: last, Ended: now.Add(9 * time.Hour), RetainedAfter: now.Add(9 * time.Hour), Retained: now}, false},
		"180: suspended by a clock put back":   {clustertest.Nightly(kept, suspended), Record{Last: last, Ended: now, RetainedAfter: now, Retained: now.Add(9 * time.Hour)}, true},
		"180: suspended, a moment ahead of it": {clustertest.Nightly(kept, suspended), Record{Last: last, Ended: now, RetainedAfter: now, Retained: now.Add(time.Minute)}, false},
	} {
		if got := retains(c.q, c.rec, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// 184: what drills have found is kept for the newest ones only, and forgotten where the
// store says it itself; a newer word wins, wherever it stands.
func TestTheRecordKeepsVerdicts(t *testing.T) {
	at := func(n int) time.Time { return time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC) }
	rec := Record{}
	for n := range maxVerdicts + 10 {
		before := rec
		rec.keepVerdict(fmt.Sprint(n), stores.Verdict{Time: at(n), Result: "bad"})
		if len(before.Verdicts) == len(rec.Verdicts) && n < maxVerdicts {
			t.Fatal("a copy of the record was changed")
		}
	}
	if _, oldest := rec.Verdicts["9"]; oldest || len(rec.Verdicts) != maxVerdicts {
		t.Errorf("%d are kept, and of the oldest %t", len(rec.Verdicts), oldest)
	}
	manifest := func(n int, result string) backup.Manifest {
		return backup.Manifest{Object: "50", Drill: backup.Drill{Time: at(n), Result: result}}
	}
	for name, c := range map[string]struct {
		m    backup.Manifest
		want string
	}{
		"the record alone":   {backup.Manifest{Object: "50"}, "bad"},
		"nobody":             {backup.Manifest{Object: "x"}, ""},
		"the manifest later": {manifest(51, backup.DrillPassed), ""},
		"the record later":   {manifest(49, backup.DrillPassed), "bad"},
		"the manifest alone": {backup.Manifest{Object: "x", Drill: backup.Drill{Result: "worse"}}, "worse"},
	} {
		if got := rec.drillFound(c.m); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if rec.dropVerdicts("50"); rec.drillFound(backup.Manifest{Object: "50"}) != "" {
		t.Error("it is not forgotten")
	}
}

// 182: what a person has changed is carried out, however much it removes; what is
// as it was, and what an earlier quorate has carried out already, is not.
func TestAsked(t *testing.T) {
	three := schema.RetentionSpec{KeepLast: new(int32(3))}
	four := schema.RetentionSpec{KeepLast: new(int32(4))}
	for name, c := range map[string]struct {
		rec  Record
		want bool
	}{
		"the first rules":            {Record{}, true},
		"of an earlier quorate":      {Record{Retained: time.Unix(1, 0)}, false},
		"the same again":             {Record{RetentionHash: retentionHash(three), Retained: time.Unix(1, 0)}, false},
		"others were carried out":    {Record{RetentionHash: retentionHash(four), Retained: time.Unix(1, 0)}, true},
		"the same, never looked for": {Record{RetentionHash: retentionHash(three)}, false},
	} {
		if got := c.rec.asked(three); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// WriteFunc is told of what is written.
type WriteFunc func([]byte)

func (f WriteFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
