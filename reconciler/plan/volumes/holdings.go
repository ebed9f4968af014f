package volumes

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Holdings records, on the claim of each volume, what the volume holds, as soon
// as the pod on it tells: whose data it is. A volume that is not known to hold what
// a member of this cluster has left is never deleted: the claim may have been bound
// to anything since, and only its pod could tell.
func Holdings(s *situation.Situation) verdict.Verdict {
	if r := s.Observed.Round(); !s.Formed() || s.Observed.Set == nil || r == nil || r.Problem != "" {
		return verdict.Pass() // without a quorum nothing is done, not even this
	}
	var all []action.Holding
	for _, v := range s.Observed.Volumes {
		p := s.Observed.Pod(v.Member)
		if p == nil || v.Terminating || !v.Bound {
			continue
		}
		if holds := s.DataSeen(*p); holds != "" && holds != v.Holds {
			all = append(all, action.Holding{Claim: v.Claim, UID: v.UID, PodUID: p.UID, Member: v.Member, Holds: holds})
		}
	}
	if len(all) == 0 {
		return verdict.Pass()
	}
	return verdict.Do(action.RecordHoldings{Volumes: all}, "only a volume that is known to hold a member's data is ever deleted")
}

// Unknown tells why a volume is not deleted, and what to do.
func Unknown(s *situation.Situation, v *state.Volume) verdict.Verdict {
	do := "set the reclaim policy of its PersistentVolume to Retain, so that the data stays, and delete the claim"
	what := "exists, but no member of this cluster was seen on it"
	switch v.Holds {
	case "":
	case state.HoldsForeign:
		what = "holds what is not the data of " + v.Member + " in this cluster"
	default:
		what = "holds the data of member " + v.Holds + ", which is not in the record"
		// An older record does not know who has joined since.
		do = fmt.Sprintf("where the record was restored from a backup, restore ConfigMap %s as it was last; or ", naming.Record(s.Desired.Name)) + do
	}
	return verdict.Refuse("volume claim "+v.Claim+" "+what+": it may be the only copy", do).At(v.Member)
}
