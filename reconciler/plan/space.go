package plan

import (
	"fmt"
	"slices"
	"strings"
)

// The measures of a database, in percent.
const (
	// crowded is the share of its quota from which a database is made smaller.
	crowded = 80
	// worthwhile is the share of its file that a defragmentation must give back.
	worthwhile = 10
)

// defaultQuota is etcd's own, in bytes: server/storage/quota.go.
const defaultQuota = 2 << 30

// quotaOf is the size at which the member refuses writes: what it says itself,
// from etcd 3.6 on, else what its pod was made with.
func (s *situation) quotaOf(m Member) int64 {
	if m.Quota > 0 {
		return m.Quota
	}
	if p := s.o.pod(m.Name); p != nil && p.Quota > 0 {
		return p.Quota
	}
	return defaultQuota
}

// wantedQuota is the one that Git asks for.
func (s *situation) wantedQuota() int64 {
	if q := s.d.Spec.Etcd.QuotaBackendBytes; q != nil {
		return q.Value()
	}
	return defaultQuota
}

// over says whether the member's database has reached its quota.
func (s *situation) over(m Member) bool { return m.DBSize >= s.quotaOf(m) }

// tight says whether it soon will.
func (s *situation) tight(m Member) bool { return share(m.DBSize, s.quotaOf(m)) >= crowded }

// laden says whether what the database really holds is too much already, so that
// a smaller file alone would not help for long.
func (s *situation) laden(m Member) bool { return share(m.DBInUse, s.quotaOf(m)) >= crowded }

// spare says whether a defragmentation would give enough of the file back.
func spare(m Member) bool { return share(m.DBSize-m.DBInUse, m.DBSize) >= worthwhile }

// share is part of whole in percent, 0 of nothing.
func share(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
}

// pardons says whether the alarm NOSPACE and full databases stand in nobody's
// way: that of the rule that frees space, that of a roll to a larger quota, and that
// of a roll that mends its victim, without whom no space is freed. They are the
// ways out of it.
func (s *situation) pardons(r *Round) bool {
	return onlyAlarm(r.Alarms, NoSpace) && (s.pardoned || s.relieves() || s.rollVictim() != nil)
}

// relieves says whether the roll is one that ends the alarm NOSPACE: every
// database is smaller than the quota that it brings, and the version stays.
func (s *situation) relieves() bool {
	r := s.o.round()
	if r == nil || !s.rolling() || s.versioned() || !r.alarmed(NoSpace) {
		return false
	}
	larger := false
	for _, m := range r.Members {
		larger = larger || s.wantedQuota() > s.quotaOf(m)
		if share(m.DBSize, s.wantedQuota()) >= crowded {
			return false
		}
	}
	return larger
}

// alarmed says whether an alarm of that kind is on.
func (r *Round) alarmed(kind string) bool {
	return slices.ContainsFunc(r.Alarms, func(a Alarm) bool { return a.Kind == kind })
}

// onlyAlarm says whether there is no alarm of another kind.
func onlyAlarm(alarms []Alarm, kind string) bool {
	return !slices.ContainsFunc(alarms, func(a Alarm) bool { return a.Kind != kind })
}

// sizeText is a number of bytes for people.
func sizeText(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if bytes >= unit.bytes {
			text := fmt.Sprintf("%.2f", float64(bytes)/float64(unit.bytes))
			return strings.TrimRight(strings.TrimRight(text, "0"), ".") + unit.name
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// keep takes over what a member holds from an earlier look: that all is well
// otherwise makes no database smaller.
func (m *Member) keep(before *Member) {
	if before != nil {
		m.DBSize, m.DBInUse, m.Quota, m.Revision = before.DBSize, before.DBInUse, before.Quota, before.Revision
		m.Hash, m.HashRevision, m.CompactRevision, m.Keys = before.Hash, before.HashRevision, before.CompactRevision, before.Keys
	}
}
