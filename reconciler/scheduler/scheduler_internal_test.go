package scheduler

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// A backup and a schedule of one name are two: each has a record of its own, under
// the name that it has always had.
func TestABackupAndAScheduleOfOneNameHaveTwoRecords(t *testing.T) {
	single, often := clustertest.Once(), clustertest.Nightly()
	often.Metadata.Name = single.Metadata.Name
	if a, b := RecordName(single), RecordName(often); a != "before-sale-backup-request" || b != "before-sale-backup-schedule" {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := recordLabels(single), recordLabels(often); a[naming.LabelBackup] != "before-sale" || a[naming.LabelSchedule] != "" || b[naming.LabelSchedule] != "before-sale" || b[naming.LabelBackup] != "" {
		t.Errorf("%v and %v", a, b)
	}
}

// What is new about a request is recorded, also where only one word of it is.
func TestEachNewWordIsNoted(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	seen, q := Record{}, clustertest.Nightly()
	seen.begin(q, now)
	for name, c := range map[string]struct {
		change func(*Record)
		want   bool
	}{
		"nothing":      {func(*Record) {}, false},
		"another spec": {func(k *Record) { k.SpecHash = "x" }, true},
		"other times":  {func(k *Record) { k.Times = "0 9 * * * UTC" }, true},
		"no beginning": {func(k *Record) { k.Since = time.Time{} }, true},
	} {
		k := seen
		c.change(&k)
		if got := k.begin(q, now.Add(time.Hour)); got != c.want || k.SpecHash != q.Hash() || k.Times != q.Times() || k.Since.IsZero() {
			t.Errorf("%s: %t, %+v", name, got, k)
		}
	}
	// Another spec of a schedule misses no time; a single backup begins anew with it.
	other := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
	if k := seen; !k.begin(other, now.Add(time.Hour)) || !k.Since.Equal(now) {
		t.Errorf("a schedule since %s", k.Since)
	}
	single := Record{}
	single.begin(clustertest.Once(), now)
	if single.SpecHash = "x"; !single.begin(clustertest.Once(), now.Add(time.Hour)) || !single.Since.Equal(now.Add(time.Hour)) {
		t.Errorf("a single backup since %s", single.Since)
	}
	// Other times count from now on: with none at all, they would be due at once.
	k := seen
	k.Times = "0 9 * * * UTC"
	if k.begin(q, now.Add(time.Hour)); !k.Since.Equal(now.Add(time.Hour)) {
		t.Errorf("since %s", k.Since)
	}
}

type ReadFunc func([]byte) (int, error)

func (f ReadFunc) Read(p []byte) (int, error) { return f(p) }
