// Package volumes has the rules about members' volumes: they grow, and their claims tell
// whose data is on them.
package volumes

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Enlarge asks for larger volumes when Git does, one claim after the other. It waits
// for nothing: a larger volume does no harm, and a full disk may be why a member
// is not well.
func Enlarge(s *situation.Situation) verdict.Verdict {
	for _, v := range s.Growing() {
		if v.NotExpandable == "" {
			return verdict.Do(action.GrowVolume{Claim: v.Claim, UID: v.UID, Member: v.Member, From: v.Size, To: s.WantedSize()},
				"Git asks for a larger one, and a volume grows while it is in use")
		}
	}
	return verdict.Pass()
}

// Grown sees growth to its end: every volume has the size that it was asked
// for, and then the StatefulSet asks for the same of members to come. Kubernetes
// takes no change of that in place, so the StatefulSet is recreated around its
// running pods.
//
//	volume      claim          then
//	smaller     cannot grow    refused: by the class
//	smaller     asks for more  waiting for the disk and the file system
//	as wanted   as wanted      the StatefulSet is recreated, if it differs
func Grown(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Set == nil || s.Rolling() {
		return verdict.Pass()
	}
	return verdict.OneOf(s, RefuseGrowth, awaitGrowth, Try, reshape, awaitPlaces)
}

// RefuseGrowth tells of a volume that cannot have the size that Git asks for.
func RefuseGrowth(s *situation.Situation) verdict.Verdict {
	for _, v := range s.Growing() {
		if s.MakesWay(v) {
			continue // and it cannot grow first
		}
		return verdict.Refuse(fmt.Sprintf("the volume of %s has %s and cannot grow to %s: %s", v.Member, state.SizeText(v.Size), state.SizeText(s.WantedSize()), v.NotExpandable),
			"set spec.storage.size back, or let the StorageClass grow volumes (allowVolumeExpansion: true) where its provisioner can, or change the class with spec.storage.classChange: Replace").At(v.Member)
	}
	return verdict.Pass()
}

// awaitPlaces tells why members that must be replaced for their volumes are not.
func awaitPlaces(s *situation.Situation) verdict.Verdict {
	left := s.Misplaced()
	if len(left) == 0 || !s.Replaceable() && s.Desired.Spec.Replicas > int32(s.MemberCount()) {
		return verdict.Pass() // others join first
	}
	text := fmt.Sprintf("volumes of %s must change to %s: %s", state.Plural(len(left), "member"), situation.ClassName(s.Observed.Set.ClaimClass), strings.Join(left, ", "))
	if !s.Replaceable() {
		return verdict.Refuse(text+"; there is no other member to replicate from",
			"raise spec.replicas to 3 first, and lower it again after that; or restore a backup into a new cluster")
	}
	opens, problem := s.NextOpening()
	if problem != "" || !opens.After(s.Now) {
		return verdict.Pass()
	}
	return verdict.WaitUntil(text+", one at a time, once the maintenance window opens at "+opens.Format(situation.OpeningLayout), time.Time{}).Again(min(opens.Sub(s.Now), verdict.Rarely))
}

// growthTime is how long a volume may take to grow: some drivers take their time.
const growthTime = time.Hour

// awaitGrowth waits for a volume that was asked to grow.
func awaitGrowth(s *situation.Situation) verdict.Verdict {
	for _, v := range s.MemberVolumes() {
		if !v.Bound || v.Terminating || v.Capacity >= s.WantedSize() || s.MakesWay(v) {
			continue
		}
		text := fmt.Sprintf("the volume of %s grows from %s to %s", v.Member, state.SizeText(v.Capacity), state.SizeText(v.Size))
		do := "check its claim " + v.Claim + "; nothing is lost, and the provisioner tries again"
		if v.Trouble != "" {
			return verdict.Unhealthy(text+", but "+v.Trouble, do).At(v.Member)
		}
		if v.Growing != "" {
			text += " (" + v.Growing + ")"
		}
		return verdict.WaitFor(s, text, v.GrowingSince, growthTime, do).At(v.Member)
	}
	return verdict.Pass()
}

// reshape recreates the StatefulSet when it asks for other volumes than Git
// does: only when each of its places has a pod, and all pods are as Git wants them, so
// that the new one finds nothing to make or to restart.
func reshape(s *situation.Situation) verdict.Verdict {
	other := Misshapen(s)
	if other == "" || !filled(s) || !s.Adoptable() {
		return verdict.Pass()
	}
	return release(s, other)
}

// Reshape does so before a member takes a place that is empty: it would ask for a volume of a class of which Git no
// longer speaks. All others must have their pods, as Git wants them. A volume that is too small grows later.
func Reshape(s *situation.Situation, place string) verdict.Verdict {
	other := Misshapen(s)
	if other == "" || !misclassed(s) && s.Observed.Set.ClaimSize <= s.WantedSize() {
		return verdict.Pass()
	}
	for _, name := range s.ByOrdinal() {
		if p := s.Observed.Pod(name); p != nil && p.Template == s.Desired.Template {
			continue
		}
		if s.ClassChanges() && !Unmade(s, s.Observed.Volume(place)) {
			return verdict.Pass() // it moves again, as the others do
		}
		return verdict.Refuse(
			fmt.Sprintf("%s would get %s: the StatefulSet is recreated for that when the pods of all others are as Git wants them, "+
				"and that of %s is not", place, other, name),
			"revert what else the file says of the members since, and commit it again when "+place+" has joined")
	}
	return release(s, other)
}

func release(s *situation.Situation, other string) verdict.Verdict {
	return verdict.Do(action.ReleaseSet{SetUID: s.Observed.Set.UID, PodUIDs: s.PodUIDs()},
		"new members would get "+other+": it is recreated around its pods, and none of them restarts")
}

// filled reports whether every place of the StatefulSet has a pod, and no other pod is
// left: that of a former member makes up for none that is missing.
func filled(s *situation.Situation) bool {
	n := s.Observed.Set.Replicas
	return len(s.Observed.Pods) == int(n) && n > 0 && s.Observed.Pods[0].Ordinal == n-1 // from the highest ordinal down
}
