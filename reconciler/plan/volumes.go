package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// enlarge asks for larger volumes when Git does, one claim after the other. It waits
// for nothing: a larger volume does no harm, and a full disk may be why a member
// is not well.
func enlarge(s *situation.Situation) verdict {
	for _, v := range s.Growing() {
		if v.NotExpandable == "" {
			return do(action.GrowVolume{Claim: v.Claim, UID: v.UID, Member: v.Member, From: v.Size, To: s.WantedSize()},
				"Git asks for a larger one, and a volume grows while it is in use")
		}
	}
	return pass()
}

// volumes sees growth to its end: every volume has the size that it was asked
// for, and then the StatefulSet asks for the same of members to come. Kubernetes
// takes no change of that in place, so the StatefulSet is recreated around its
// running pods.
//
//	volume      claim          then
//	smaller     cannot grow    refused: by the class
//	smaller     asks for more  waiting for the disk and the file system
//	as wanted   as wanted      the StatefulSet is recreated, if it differs
func volumes(s *situation.Situation) verdict {
	if !s.Formed() || s.Observed.Set == nil || s.Rolling() {
		return pass()
	}
	return oneOf(s, refuseGrowth, awaitGrowth, reshape, awaitPlaces)
}

// refuseGrowth tells of a volume that cannot have the size that Git asks for.
func refuseGrowth(s *situation.Situation) verdict {
	for _, v := range s.Growing() {
		if s.MakesWay(v) {
			continue // and it cannot grow first
		}
		return refuse(fmt.Sprintf("the volume of %s has %s and cannot grow to %s: %s", v.Member, state.SizeText(v.Size), state.SizeText(s.WantedSize()), v.NotExpandable),
			"set spec.storage.size back, or let the StorageClass grow volumes (allowVolumeExpansion: true) where its provisioner can, or change the class with spec.storage.classChange: Replace").at(v.Member)
	}
	return pass()
}

// awaitPlaces tells why members that must be replaced for their volumes are not.
func awaitPlaces(s *situation.Situation) verdict {
	left := s.Misplaced()
	if len(left) == 0 {
		return pass()
	}
	text := fmt.Sprintf("volumes of %s must change to %s: %s", state.Plural(len(left), "member"), situation.ClassName(s.Observed.Set.ClaimClass), strings.Join(left, ", "))
	if !s.Replaceable() {
		return refuse(text+"; there is no other member to replicate from",
			"raise spec.replicas to 3 first, and lower it again after that; or restore a backup into a new cluster")
	}
	opens, problem := s.NextOpening()
	if problem != "" || !opens.After(s.Now) {
		return pass()
	}
	return wait(text+", one at a time, once the maintenance window opens at "+opens.Format(situation.OpeningLayout), time.Time{}).again(min(opens.Sub(s.Now), rarely))
}

// awaitGrowth waits for a volume that was asked to grow.
func awaitGrowth(s *situation.Situation) verdict {
	for _, v := range s.MemberVolumes() {
		if !v.Bound || v.Terminating || v.Capacity >= s.WantedSize() || s.MakesWay(v) {
			continue
		}
		text := fmt.Sprintf("the volume of %s grows from %s to %s", v.Member, state.SizeText(v.Capacity), state.SizeText(v.Size))
		if v.Trouble != "" {
			return unhealthy(text+", but "+v.Trouble, "check its claim "+v.Claim+"; nothing is lost, and the provisioner tries again").at(v.Member)
		}
		if v.Growing != "" {
			text += " (" + v.Growing + ")"
		}
		return wait(text, v.GrowingSince).at(v.Member)
	}
	return pass()
}

// reshape recreates the StatefulSet when it asks for other volumes than Git
// does: only when all its pods are as Git wants them, so that the new one finds
// nothing to restart.
func reshape(s *situation.Situation) verdict {
	set, class := s.Observed.Set, state.StorageClass(s.Desired.Spec.Storage)
	why := ""
	switch {
	case set.ClaimSize > 0 && set.ClaimSize < s.WantedSize():
		why = fmt.Sprintf("new members would get %s instead of %s", state.SizeText(set.ClaimSize), state.SizeText(s.WantedSize()))
	case set.ClaimClass != class && s.ClassChanges():
		why = "new members would get volumes of " + situation.ClassName(set.ClaimClass) + " instead of " + situation.ClassName(class)
	}
	if why == "" || len(s.Observed.Pods) != int(set.Replicas) {
		return pass()
	}
	return do(action.ReleaseSet{SetUID: set.UID, PodUIDs: s.PodUIDs()}, why+": it is recreated around its pods, and none of them restarts")
}

// nextMisplaced is the member that is replaced next for the sake of its volume, or
// "". That fixes nothing, so it waits for a cluster that is well, for its turn among
// the others, and for a window. One that Git does not want goes anyhow, in its turn.
func nextMisplaced(s *situation.Situation) string {
	members := slices.DeleteFunc(s.Misplaced(), func(name string) bool { return !s.WantsMember(name) })
	r := s.Observed.Round()
	if len(members) == 0 || r == nil || !s.Replaceable() || s.Rolling() || !s.HealthProblem(r).None() || !s.PodProblem().None() {
		return ""
	}
	if !fight(s).silent() || !fleet(s).silent() || !s.WindowOpen() {
		return ""
	}
	return members[0]
}
