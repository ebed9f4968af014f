package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/schema"
)

// Stored is one backup as the store and its manifest have it.
type Stored struct {
	// URL of the object, without its query.
	URL string
	// Time is when the snapshot was begun, Revision etcd's revision then.
	Time     time.Time
	Revision int64
	// ClusterID is that of the cluster that it was taken of, "" where nobody has noted it.
	ClusterID string
	// Last says that it is the one that the schedule's record knows as its last good one.
	Last bool
	// Damaged says why the backup cannot be restored, as far as anybody has looked:
	// it read back wrong, or a restore drill has failed. "" for a good one.
	Damaged string
	// Proven says that a restore drill has passed with it.
	Proven bool
	// NeededBy is the operation that refers to the backup, or "".
	NeededBy string
}

// Verdict is what becomes of one backup, and why.
type Verdict struct {
	Stored
	Keep bool
	// Reasons are phrases such as "last 2 of 3", "daily 2026-11-20", or "no rule
	// keeps it".
	Reasons []string
}

// Retain says of each backup of a schedule whether it is kept, newest first: those
// that any keep rule names and that are not too old. Backups are ordered by time,
// and by revision where that is the same; their names say nothing. Days, weeks,
// months and years are those of zone.
//
// A cluster that is made again, or restored, has another ID, and its first backups say
// nothing about the old one's. Each rule counts the backups of each cluster ID alone,
// until a younger one has as many good ones as the rule keeps; from then on it names
// none of the older.
//
// Whatever the rules say, the newest good backup of each cluster ID stays, and so do
// the newest that a drill has restored, as damage that no checksum shows is in every backup since it
// happened, the last one of the record, and one that an operation needs. One that is dated ahead
// of the clock stays, and takes no place. A damaged one takes no good one's place. It is
// kept for as long as if it were good, so that nothing is removed for what a drill has found.
func Retain(spec schema.RetentionSpec, zone *time.Location, backups []Stored, now time.Time) []Verdict {
	newestFirst := slices.SortedStableFunc(slices.Values(backups), func(a, b Stored) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.URL, a.URL))
	})
	places := takePlaces(spec, zone, newestFirst, now)
	verdicts := make([]Verdict, 0, len(backups))
	newest, proven := map[string]bool{}, map[string]bool{}
	for n, b := range newestFirst {
		v := Verdict{Stored: b}
		for _, reason := range places.reasons(n, b) {
			v.keep(reason)
		}
		if spec.MaxAge != nil && now.Sub(b.Time) > spec.MaxAge.Duration {
			v = Verdict{Stored: b, Reasons: []string{fmt.Sprintf("older than %gh", spec.MaxAge.Hours())}}
		}
		switch {
		case clock.Ahead(b.Time, now):
			v.keep("dated ahead of the clock, and neither counted nor removed")
		case b.Damaged == "" && !newest[b.ClusterID]:
			text := "the newest that can be restored"
			if len(newest) > 0 {
				text = "the newest of its cluster that can be restored"
			}
			v.keep(text)
			newest[b.ClusterID] = true
		}
		if b.Proven && !proven[b.ClusterID] && !clock.Ahead(b.Time, now) {
			proven[b.ClusterID] = true
			if !v.Keep {
				v.keep("the newest that a drill has restored")
			}
		}
		if b.Last && !v.Keep {
			v.keep("the last one of the record")
		}
		if b.NeededBy != "" {
			v.keep("needed by " + b.NeededBy)
		}
		verdicts = append(verdicts, v.explained())
	}
	return verdicts
}

// aFew may be removed at once of however few backups.
const aFew = 3

// AtOnce says how many backups would be removed, and how many may be without a person's
// word: half of all. A clock that is far ahead, and rules that say what nobody meant,
// take no more than that. Those whose removal the store has refused before are not
// counted: they were decided then.
func AtOnce(verdicts []Verdict, refused func(url string) bool) (remove, most int) {
	for _, v := range verdicts {
		if !v.Keep && !refused(v.URL) {
			remove++
		}
	}
	return remove, max(aFew, len(verdicts)/2)
}

// keep keeps the backup for a reason, "" for none. The first one drops what spoke
// against it.
func (v *Verdict) keep(reason string) {
	switch {
	case reason == "":
	case v.Keep:
		v.Reasons = append(v.Reasons, reason)
	default:
		v.Keep, v.Reasons = true, []string{reason}
	}
}

// explained gives a verdict without a reason its reason.
func (v Verdict) explained() Verdict {
	switch {
	case len(v.Reasons) > 0:
	case v.Damaged != "":
		v.Reasons = []string{"it cannot be restored: " + v.Damaged}
	default:
		v.Reasons = []string{"no rule keeps it"}
	}
	return v
}

// keepRule keeps the newest backup of each of the last periods that have one.
type keepRule struct {
	// name is "last", "hourly" and so on.
	name string
	// count is how many are kept, taken how many were; count 0 keeps all.
	count, taken int
	// period names the period that a time lies in; nil makes each time its own.
	period func(time.Time) string
	// current is the period of the last one taken.
	current string
}

// keepRules are the rules of a file. Without any, all backups are named.
func keepRules(spec schema.RetentionSpec) []keepRule {
	var rules []keepRule
	if spec.KeepLast != nil {
		rules = append(rules, keepRule{name: "last", count: int(*spec.KeepLast)})
	}
	layout := func(l string) func(time.Time) string { return func(t time.Time) string { return t.Format(l) } }
	for _, r := range []struct {
		name   string
		count  int32
		period func(time.Time) string
	}{
		// The offset tells the two hours apart that have one name when clocks go back.
		{"hourly", spec.KeepHourly, layout("2006-01-02 15h -0700")},
		{"daily", spec.KeepDaily, layout(time.DateOnly)},
		{"weekly", spec.KeepWeekly, week},
		{"monthly", spec.KeepMonthly, layout("2006-01")},
		{"yearly", spec.KeepYearly, layout("2006")},
	} {
		if r.count > 0 {
			rules = append(rules, keepRule{name: r.name, count: int(r.count), period: r.period})
		}
	}
	return rules
}

// week is the ISO week, which begins on Monday.
func week(t time.Time) string {
	year, number := t.ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, number)
}

// names is the reason for which the rule keeps a backup of this time, or "". It
// is asked newest first.
func (k *keepRule) names(t time.Time) string {
	if k.period == nil {
		k.taken++
		switch {
		case k.count == 0:
			return "all are kept"
		case k.taken <= k.count:
			return "last " + strconv.Itoa(k.taken) + " of " + strconv.Itoa(k.count)
		}
		return ""
	}
	period := k.period(t)
	if period == k.current || k.taken == k.count {
		return ""
	}
	k.current = period
	k.taken++
	return k.name + " " + period
}
