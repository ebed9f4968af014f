package situation

import "github.com/quorate/quorate/reconciler/state"

// DataSeen is what a pod reports about the volume that it is on: the ID of the member whose
// data that is, HoldsForeign, or "" where it says nothing. One that is empty, or has
// what an earlier member has left, or the member itself at an earlier time, holds nothing but this cluster's.
func (s *Situation) DataSeen(p state.Pod) string {
	id := s.Observed.Record.Members[p.Name]
	if j := s.Observed.Record.Joining; j != nil && j.Member == p.Name {
		id = j.ID
	}
	switch {
	case p.Damage == state.DamageForeign:
		return state.HoldsForeign
	case p.Terminating || id == "":
		return ""
	case p.Damage == state.DamageEmpty || p.Damage == state.DamageOutdated || p.Damage == state.DamageOlder:
		return id
	}
	if m := s.Observed.Round().ByID(id); m == nil || m.Name != p.Name || m.Problem != "" || !p.Ran {
		return ""
	}
	return id
}
