package plan

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// unstored reports whether a cluster that never formed has asked for volumes, and has got
// none: nothing can be on them, and no member has ever run.
func unstored(s *situation.Situation) bool {
	if s.Formed() || s.Observed.Record == nil || len(s.Observed.Volumes) == 0 {
		return false
	}
	bound := slices.ContainsFunc(s.Observed.Volumes, func(v state.Volume) bool { return v.Bound || v.Member == "" })
	return !bound && !slices.ContainsFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Ran })
}

// restorage asks for other volumes where those that a new cluster has asked for never came,
// such as of a class that does not exist, and Git now says otherwise. Kubernetes takes no
// such change in place.
//
//	the StatefulSet   the claims     then
//	asks for others   –              it goes, with its pods, of which none has ever run
//	is gone           are of others  they go; there is no volume behind any
//	is gone           are gone       bootstrap goes on
func restorage(s *situation.Situation) verdict.Verdict {
	if !unstored(s) {
		return verdict.Pass()
	}
	if set := s.Observed.Set; set != nil {
		switch {
		case set.Terminating:
			return stalled.Set(s)
		case asWanted(s, set.ClaimSize, set.ClaimClass):
			return verdict.Pass()
		}
		return verdict.Do(action.DeleteObject{ObjectKind: "StatefulSet", Name: s.Desired.Name}, "the cluster has never formed, no volume was ever made for it, and Git now asks for other ones")
	}
	for i := range s.Observed.Volumes {
		switch v := &s.Observed.Volumes[i]; {
		case v.Terminating:
			return stalled.Claim(s, v, "volume claim "+v.Claim+", behind which there is no volume, is being deleted")
		case !asWanted(s, v.Size, v.Class):
			return verdict.Do(action.DeleteVolume{Claim: v.Claim, UID: v.UID, Member: v.Member}, "there is no volume behind it, and Git now asks for another one")
		}
	}
	return verdict.Pass()
}

// asWanted reports whether volumes of a size and a class are those that Git asks for. Where it names no class, a claim
// that a default was filled in for is made again: there is nothing on it.
func asWanted(s *situation.Situation, size int64, class string) bool {
	return size == s.WantedSize() && class == s.WantedClass()
}
