package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// drift brings back what was changed outside of Git: services, the disruption
// budget, the StatefulSet's replica count. None of it restarts a member.
func drift(s *situation.Situation) verdict.Verdict {
	if s.Observed.Set != nil && s.Observed.Set.Terminating {
		return verdict.Wait("the StatefulSet is being deleted; its pods stay, and are taken over by the next one", time.Time{})
	}
	for _, obj := range s.Observed.Objects {
		switch {
		case s.Contested(obj) && obj.Kind != "StatefulSet": // a rule below tells
		case s.Contested(obj):
			return awaitTruce(s, obj) // all below rests on the StatefulSet
		case s.Withheld(obj):
		case obj.State == state.ObjectMissing && situation.ForClients(s, obj) && s.Observed.Record.Applied == nil:
			return verdict.Do(action.ApplyObject{ObjectKind: obj.Kind, Name: obj.Name}, "every member is recorded, and from now on clients find them through it")
		case obj.State == state.ObjectMissing:
			return verdict.Do(action.ApplyObject{ObjectKind: obj.Kind, Name: obj.Name}, "it is gone, and Git says that it should be there")
		case obj.State == state.ObjectDrifted:
			v := verdict.Do(action.ApplyObject{ObjectKind: obj.Kind, Name: obj.Name}, "it differs from what Git says: "+obj.Detail)
			if !obj.ChangedAt.IsZero() {
				v = v.Measured("at %s", obj.ChangedAt.UTC().Format(time.RFC3339))
			}
			return v
		}
	}
	if s.Observed.Set == nil {
		return lostSet(s)
	}
	return verdict.Pass()
}

// lostSet brings back a StatefulSet that was deleted out of band, or that has
// released its pods. Those that run are taken over. Where none run, volumes are
// there, so the members continue where they were; but only when nothing else changed,
// because a new StatefulSet starts all its members at once.
func lostSet(s *situation.Situation) verdict.Verdict {
	if s.Adoptable() && s.VolumesLeft() == s.MemberCount() {
		return verdict.Do(action.CreateSet{Replicas: s.PodCount()}, "the StatefulSet is gone, and its pods are as Git wants them: a new one takes them over, and none restarts")
	}
	if !s.SameSettings() {
		return verdict.Refuse("the StatefulSet is gone, and the file has changed since it was last applied",
			"revert the file to what was last applied, so that the members can come back unchanged")
	}
	if why := s.Outgrown(); why != "" {
		return verdict.Refuse("the StatefulSet is gone, and "+why, "set spec.version to a release that the members run, so that each can restart as what it is")
	}
	if left := s.VolumesLeft(); left < s.MemberCount() {
		return verdict.Refuse(
			fmt.Sprintf("the StatefulSet is gone, and so are volumes: %d of %d are left", left, s.MemberCount()),
			"bring the volumes back, or restore a backup into a new cluster; nothing is begun on empty volumes under the old identity")
	}
	return verdict.Do(action.CreateSet{Replicas: s.PodCount()}, "the StatefulSet is gone; its members continue from their volumes")
}
