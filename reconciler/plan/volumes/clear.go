package volumes

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// makesWay is how long a pod that was made beside a volume that is being deleted
// is left alone: it has not mounted it, and mostly the volume goes at once.
const makesWay = 15 * time.Second

// Clear removes what a member that was removed has left on its volume. An
// unknown volume is never touched.
func Clear(s *situation.Situation, member string) verdict.Verdict {
	volume, pod := s.Observed.Volume(member), s.Observed.Pod(member)
	_, retired := s.Observed.Record.Retired[member]
	evictable := surge.Evictable(s.Desired.Name, s.Git.Spec, s.Observed) == member && volume != nil && (retired || volume.Terminating)
	if Unmade(s, volume) {
		return verdict.Do(action.DeleteVolume{Claim: volume.Claim, UID: volume.UID, Member: member},
			"there is no volume behind it, and Git now asks for another one")
	}
	switch {
	case pod == nil || pod.Terminating || evictable:
	case pod.Template != s.TemplateFor(pod.Ordinal):
		return verdict.Do(action.DeletePod{Member: member, PodUID: pod.UID}, "an earlier rollout has left it, and the StatefulSet would never recreate it")
	case pod.Drained != "":
		return verdict.Do(action.DeletePod{Member: member, PodUID: pod.UID}, fmt.Sprintf("node %s %s, and the next member is to be on another one", pod.Drained, pod.DrainedBy))
	}
	if why, do := situation.KeptOn(s, volume); retired && why != "" {
		return verdict.Refuse(member+" does not join yet: its volume must go first, but "+why, do).At(member)
	}
	switch {
	case retired && volume == nil:
		return verdict.Do(action.DeleteVolume{Claim: s.Claim(member), Member: member}, "nothing is left of the former member")
	case retired && !volume.Terminating && volume.Own():
		return verdict.Do(action.DeleteVolume{Claim: volume.Claim, UID: volume.UID, Member: member},
			member+" was removed from the cluster, so that what is on its volume is worth nothing; its next life begins empty")
	case volume != nil && volume.Terminating:
		if pod == nil || pod.Terminating || s.Now.Sub(pod.Created) < makesWay {
			return stalled.Claim(s, volume, "the volume of the former "+member+" is being deleted")
		}
		if left := surge.DrainAsks - s.Now.Sub(volume.GoingSince); evictable && left > 0 {
			return verdict.WaitUntil(fmt.Sprintf("node %s %s, and whatever drains it may evict %s, which is no member any more", pod.Drained, pod.DrainedBy, member), volume.GoingSince).At(member).Again(left)
		}
		return verdict.Do(action.DeletePod{Member: member, PodUID: pod.UID}, "the old volume goes when no pod uses it; this one belongs to no member")
	case s.Observed.Record.Kept[member]:
		// The guard keeps what a lost cluster left, beside the new data.
	case volume != nil && volume.Bound && !retired && pod == nil,
		volume != nil && !volume.Own() && (volume.Holds == state.HoldsForeign || s.FailedJoins(member) >= 3 && !volume.Created.After(s.Observed.Record.FailedJoin.At)):
		return Unknown(s, volume)
	}
	// A learner that was never seen to run has most likely left nothing, and the next
	// one may have its volume. If there is something, the guard reports it in time.
	return verdict.Pass()
}
