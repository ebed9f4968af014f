package situation

import (
	"slices"

	"github.com/quorate/quorate/reconciler/state"
)

// descent keeps, in a forecast, a downgrade that is not over: it ends on its own
// when every member runs the minor that it goes to.
func (s *Situation) descent(r *state.Round) {
	last := s.Observed.Round()
	if last == nil || !last.Downgrading {
		return
	}
	target := last.DowngradeTarget
	if !slices.ContainsFunc(r.Members, func(m state.Member) bool { return state.Minor(m.Version) != target }) {
		return
	}
	r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, target, target+".0"
	for i := range r.Members {
		r.Members[i].StorageVersion = target + ".0"
	}
}

// GoesDown reports whether Git asks for a minor below the cluster version: no member
// starts with that before it was enabled in etcd.
func (s *Situation) GoesDown() bool {
	return state.Older(s.WantedVersion().Line(), state.Minor(s.ClusterVersion()))
}

// Descending reports whether etcd goes down to the minor that Git asks for.
func (s *Situation) Descending() bool {
	r := s.Observed.Round()
	return r != nil && r.Downgrading && r.DowngradeTarget == s.WantedVersion().Line()
}

// ours reports whether a downgrade that is in progress is what Git asks for, or did
// when quorate began it. A foreign one is not touched.
func (s *Situation) ours(r *state.Round) bool {
	d := s.Observed.Record.Downgrade
	return r.DowngradeTarget == s.WantedVersion().Line() || (d != nil && d.Minor == r.DowngradeTarget)
}
