package scheduler

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
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
		"after a good backup":          {clustertest.Nightly(kept), Record{Last: last, Ended: now.Add(-time.Hour), Retained: now.Add(-2 * time.Hour)}, true},
		"of a single backup":           {clustertest.Once(), Record{Last: last, Ended: now}, false},
		"before the first good one":    {clustertest.Nightly(kept), Record{Ended: now}, false},
		"suspended before the first":   {clustertest.Nightly(kept, suspended), Record{}, false},
		"without retention":            {clustertest.Nightly(), Record{Last: last, Ended: now}, false},
		"suspended, without retention": {clustertest.Nightly(suspended), Record{Last: last}, false},
		"while more come":              {clustertest.Nightly(kept), Record{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-8 * time.Hour)}, false},
		"suspended, an hour ago":       {clustertest.Nightly(kept, suspended), Record{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-time.Hour)}, true},
		"suspended, a moment ago":      {clustertest.Nightly(kept, suspended), Record{Last: last, Ended: now.Add(-9 * time.Hour), Retained: now.Add(-59 * time.Minute)}, false},
	} {
		if got := retains(c.q, c.rec, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// WriteFunc is told of what is written.
type WriteFunc func([]byte)

func (f WriteFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
