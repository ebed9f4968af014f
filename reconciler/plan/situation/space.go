package situation

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/state"
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

// QuotaOf is the size at which the member refuses writes: what it says itself,
// from etcd 3.6 on, else what its pod was made with.
func (s *Situation) QuotaOf(m state.Member) int64 {
	if m.Quota > 0 {
		return m.Quota
	}
	if p := s.Observed.Pod(m.Name); p != nil && p.Quota > 0 {
		return p.Quota
	}
	return defaultQuota
}

// WantedQuota is the one that Git asks for.
func (s *Situation) WantedQuota() int64 {
	if q := s.Desired.Spec.Etcd.QuotaBackendBytes; q != nil {
		return q.Value()
	}
	return defaultQuota
}

// OverQuota reports whether the member's database has reached its quota.
func (s *Situation) OverQuota(m state.Member) bool { return m.DBSize >= s.QuotaOf(m) }

// NearQuota reports whether it soon will.
func (s *Situation) NearQuota(m state.Member) bool { return ComesNear(m, s.QuotaOf(m)) }

// ComesNear reports whether the member's database soon reaches a size.
func ComesNear(m state.Member, size int64) bool {
	return share(m.DBSize, size) >= crowded
}

// Overfull reports whether what the database really holds is too much already, so that
// a smaller file alone would not help for long.
func (s *Situation) Overfull(m state.Member) bool { return share(m.DBInUse, s.QuotaOf(m)) >= crowded }

// WorthDefragmenting reports whether a defragmentation would give enough of the file back.
func WorthDefragmenting(m state.Member) bool {
	return share(m.DBSize-m.DBInUse, m.DBSize) >= worthwhile
}

// Reclaimable is the reason to defragment a member whose file comes near its quota.
func (s *Situation) Reclaimable(m state.Member) Remark {
	return Remark{
		Member: m.Name, Text: fmt.Sprintf("its file comes near its quota of %s, and some of it can be given back", state.SizeText(s.QuotaOf(m))),
		Detail: fmt.Sprintf("%s of %s", state.SizeText(m.DBSize-m.DBInUse), state.SizeText(m.DBSize)),
	}
}

// share is part of whole in percent, 0 of nothing.
func share(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
}

// toleratesNoSpace reports whether the alarm NOSPACE and full databases do not block the
// caller: the rule that frees space, a roll to a larger quota, and
// a roll that fixes the member it broke, without which no space is freed. They are the
// ways out of it.
func (s *Situation) toleratesNoSpace(r *state.Round) bool {
	return onlyAlarm(r.Alarms, state.NoSpace) && (s.tolerant || s.EndsNoSpace() || s.MendedByRoll() != nil)
}

// ToleratingNoSpace is the situation for what frees space, see toleratesNoSpace.
func (s *Situation) ToleratingNoSpace() *Situation {
	c := *s
	c.tolerant = true
	return &c
}

// EndsNoSpace reports whether the roll is one that ends the alarm NOSPACE: every
// database is smaller than the quota that it brings, and the version stays, or goes back.
func (s *Situation) EndsNoSpace() bool {
	r := s.Observed.Round()
	if r == nil || !s.Rolling() || !r.Alarmed(state.NoSpace) {
		return false
	}
	for _, p := range s.Observed.Pods { // what the StatefulSet says is of no account where no pod has it
		if want := s.Desired.Spec.Version; p.Version != want && s.Observed.Set.CurrentVersion != want {
			return false
		}
	}
	larger := false
	for _, m := range r.Members {
		larger = larger || s.WantedQuota() > s.QuotaOf(m)
		if share(m.DBSize, s.WantedQuota()) >= crowded {
			return false
		}
	}
	return larger
}

// onlyAlarm reports whether there is no alarm of another kind.
func onlyAlarm(alarms []state.Alarm, kind string) bool {
	return !slices.ContainsFunc(alarms, func(a state.Alarm) bool { return a.Kind != kind })
}
