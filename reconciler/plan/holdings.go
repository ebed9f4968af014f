package plan

// holdings writes down, on the claim of each volume, what the volume holds, as soon
// as the pod on it tells: whose data it is. A volume that is not known to hold what
// a member of this cluster has left is never deleted: the claim may have been bound
// to anything since, and without its pod nobody could tell.
func holdings(s *situation) verdict {
	if r := s.o.round(); !s.formed() || s.o.Set == nil || r == nil || r.Problem != "" {
		return pass() // without a quorum nothing is done, not even this
	}
	var all []Holding
	for _, v := range s.o.Volumes {
		p := s.o.pod(v.Member)
		if p == nil || v.Terminating || !v.Bound {
			continue
		}
		if holds := s.tells(*p); holds != "" && holds != v.Holds {
			all = append(all, Holding{Claim: v.Claim, UID: v.UID, PodUID: p.UID, Member: v.Member, Holds: holds})
		}
	}
	if len(all) == 0 {
		return pass()
	}
	return do(RecordHoldings{Volumes: all}, "only a volume that is known to hold a member's data is ever deleted")
}

// tells is what a pod says of the volume that it is on: the ID of the member whose
// data that is, HoldsForeign, or "" where it says nothing. One that is empty, or has
// what an earlier member has left, holds nothing but this cluster's.
func (s *situation) tells(p Pod) string {
	id := s.o.Record.Members[p.Name]
	if j := s.o.Record.Joining; j != nil && j.Member == p.Name {
		id = j.ID
	}
	switch {
	case p.Damage == DamageForeign:
		return HoldsForeign
	case p.Terminating || id == "":
		return ""
	case p.Damage == DamageEmpty || p.Damage == DamageOutdated:
		return id
	}
	if m := s.o.round().byID(id); m == nil || m.Name != p.Name || m.Problem != "" || !p.Ran {
		return ""
	}
	return id
}

// Own says whether a volume is known to hold what a member of this cluster has left
// on it, or nothing: there is no volume behind a claim that is not bound.
func (v *Volume) Own() bool {
	return (v.Holds != "" && v.Holds != HoldsForeign) || !v.Bound
}

// unknownVolume says why a volume is not deleted, and what to do.
func unknownVolume(v *Volume) verdict {
	what := "exists, but nobody has seen a member of this cluster on it"
	switch v.Holds {
	case "":
	case HoldsForeign:
		what = "holds what is not the data of " + v.Member + " in this cluster"
	default:
		what = "holds the data of member " + v.Holds + ", which the record knows nothing of"
	}
	return refuse("volume claim "+v.Claim+" "+what+": it may be somebody's only copy", "delete the claim if its data is not needed")
}
