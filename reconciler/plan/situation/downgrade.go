package situation

import (
	"github.com/quorate/quorate/reconciler/state"
)

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
