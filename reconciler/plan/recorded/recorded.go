// Package recorded has what a record must know before anything is done that rests on it: one that was
// restored from a backup of the Kubernetes API knows no member that has joined since. It is pure.
package recorded

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
)

// Voters wants a record that knows every voter. One that does not is older than the
// cluster: whose volume it says is left of a former member may be that of a member that votes.
func Voters(s *situation.Situation) verdict.Verdict {
	m := unrecorded(s)
	if m == nil {
		return verdict.Pass()
	}
	return unknown(s, m)
}

func unknown(s *situation.Situation, m *state.Member) verdict.Verdict {
	return verdict.Refuse(fmt.Sprintf("etcd lists %s (member %s), which the record does not know: the record is older than the cluster, or the member was added manually", state.NameOf(*m), m.ID),
		fmt.Sprintf("restore ConfigMap %s as it was last; or, where that member is not wanted, remove it with `etcdctl member remove %s`; until then no pod or volume goes", naming.Record(s.Desired.Name), m.ID)).At(m.Name)
}

// Identity wants members that say they are the cluster of the record.
func Identity(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Round()
	if r == nil || r.Problem != "" || r.ClusterID == s.Observed.Record.ClusterID {
		return verdict.Pass()
	}
	return verdict.Refuse(fmt.Sprintf("the members say that they are cluster %s, the record says %s", r.ClusterID, s.Observed.Record.ClusterID),
		"find out what answers under the names of this cluster; nothing is changed until then")
}

// Places wants the places from an ordinal on to be those of no member: by etcd's list, and
// where that cannot be had, by what was seen on their volumes. Only then may their pods go.
func Places(s *situation.Situation, from int32) verdict.Verdict {
	if v := Voters(s); !v.Silent() {
		return v
	}
	if r := s.Observed.Round(); r != nil && r.Problem == "" {
		for i := range r.Members {
			if m := &r.Members[i]; !m.Learner && naming.IsMember(s.Desired.Name, m.Name) && naming.Ordinal(m.Name) >= from {
				return other(s, m)
			}
		}
		return verdict.Pass()
	}
	for _, v := range s.Observed.Volumes {
		if v.Ordinal >= from && holdsUnrecorded(s, v) {
			return volumes.Unknown(s, &v)
		}
	}
	return verdict.Pass()
}

// other tells of a voter beyond the last place that answers as another cluster than the record's,
// or of one that the record has not formed with.
func other(s *situation.Situation, m *state.Member) verdict.Verdict {
	if v := Identity(s); s.Formed() && !v.Silent() {
		return v
	}
	return unknown(s, m)
}

// unrecorded is a voter of this cluster that the record does not know, or nil.
func unrecorded(s *situation.Situation) *state.Member {
	r := s.Observed.Round()
	if r == nil || r.Problem != "" || r.ClusterID != s.Observed.Record.ClusterID {
		return nil
	}
	for i := range r.Members {
		if m := &r.Members[i]; !m.Learner && !knows(s.Observed.Record, m.ID) {
			return m
		}
	}
	return nil
}

// holdsUnrecorded reports whether a volume was seen with the data of a member that the
// record does not know, neither as one that has left.
func holdsUnrecorded(s *situation.Situation, v state.Volume) bool {
	r := s.Observed.Record
	return v.Holds != "" && v.Holds != state.HoldsForeign && !knows(r, v.Holds) && r.Retired[v.Member] != v.Holds && !r.Kept[v.Member]
}

// knows reports whether a record names a member, or one that joins.
func knows(r *state.Record, id string) bool {
	for _, known := range r.Members {
		if known == id {
			return true
		}
	}
	return r.Joining != nil && r.Joining.ID == id
}
