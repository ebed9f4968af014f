package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// shrink removes the members that Git no longer wants, one at a time, the highest
// ordinal first, as a number. It comes before a roll, which then has fewer to
// restart, and is not stopped by a pod that belongs to no member.
func shrink(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.MendedByRoll() != nil {
		return verdict.Pass() // a member broken by an abandoned roll comes back first
	}
	if !s.TooMany() {
		return verdict.Pass()
	}
	names := s.ByOrdinal()
	last := names[len(names)-1]
	why := "Git wants " + state.Plural(int(s.Desired.Spec.Replicas), "member")
	return verdict.Do(action.BeginLeave{Member: last, ID: s.Observed.Record.Members[last], Why: why}, why+"; the highest ordinal goes first")
}

// grow adds the members that Git wants, one at a time, the lowest free ordinal
// first. It waits for the end of a roll: a member that joins has nothing to roll.
func grow(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Rolling() {
		return verdict.Pass()
	}
	for ordinal := range s.Desired.Spec.Replicas {
		if name := naming.Member(s.Desired.Name, ordinal); !s.IsMember(name) {
			return rejoin(s, name, fmt.Sprintf("Git wants %s, and there are %d", state.Plural(int(s.Desired.Spec.Replicas), "member"), s.MemberCount()), false)
		}
	}
	return verdict.Pass()
}

// remove deletes the volumes of members that were removed permanently, where Git
// says so. Otherwise they are kept until their ordinal is used again. What a recovery has put
// aside there stays, which a warning tells: nothing waits for it.
func remove(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Desired.Spec.Storage.RemovedVolumes != schema.VolumesDelete {
		return verdict.Pass()
	}
	for _, v := range s.Observed.Volumes {
		if _, retired := s.Observed.Record.Retired[v.Member]; !retired || v.Ordinal < s.PodCount() || v.Terminating || !v.Own() {
			continue
		}
		if why, _ := situation.KeptOn(s, &v); why != "" {
			continue
		}
		if p := s.Observed.Pod(v.Member); p != nil {
			return stalled.Gone(s, p, "the pod of the former "+v.Member+" shuts down")
		}
		return verdict.Do(action.DeleteVolume{Claim: v.Claim, UID: v.UID, Member: v.Member},
			v.Member+" was removed, and spec.storage.removedVolumes is Delete")
	}
	return verdict.Pass()
}
