package report

import (
	"slices"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/schema"
)

// fewMembers is as many as nearly all clusters have.
const fewMembers = 7

// measure keeps what a pass has measured, and returns it. At rest that is what the pass
// before has measured, and nothing is allocated.
func (s *Board) measure(key string, v *observe.View, members []schema.MemberStatus) schema.Measured {
	var few [fewMembers]schema.MemberDatabase
	databases, kept := appendDatabases(few[:0], v, members), s.measured.Get(key)
	if !slices.Equal(kept.Members, databases) {
		kept = schema.Measured{Members: slices.Clone(databases)}
		s.measured.Put(key, kept)
	}
	return kept
}

// Measured is what the last pass has measured of a cluster; nothing before the first.
func (s *Board) Measured(key string) schema.Measured { return s.measured.Get(key) }

// appendDatabases appends those of the members that have told their size.
func appendDatabases(list []schema.MemberDatabase, v *observe.View, members []schema.MemberStatus) []schema.MemberDatabase {
	round := v.Observed.Round()
	for _, s := range members {
		if m := round.Member(s.Name); m != nil && m.DBSize > 0 {
			list = append(list, schema.MemberDatabase{Name: m.Name, Size: m.DBSize, InUse: m.DBInUse, Quota: quotaOf(v, *m)})
		}
	}
	return list
}
