package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// deletion removes a cluster whose file says so, and brings one back whose file
// no longer does. A file that is gone says nothing.
//
// The volumes are kept unless the file says otherwise, and with them the record
// and the certificates: the same file in state Running continues with the data.
func deletion(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Record
	switch {
	case s.Desired.Spec.State != schema.StateDeleted && r != nil && r.Deleted:
		return verdict.Do(action.Revive{}, "spec.state is no longer Deleted; the cluster continues from the volumes that are left")
	case s.Desired.Spec.State != schema.StateDeleted:
		return verdict.Pass()
	case r == nil:
		return verdict.Idle()
	case !r.Deleted:
		return beginDeletion(s)
	}
	if v := verdict.OneOf(s, deletePods, stopAll, deleteObjects, certificates.Withdraw); !v.Silent() {
		return v
	}
	if s.Desired.Spec.Deletion.Volumes != schema.VolumesDelete {
		return verdict.Idle()
	}
	return deleteVolumes(s)
}

// beginDeletion lets a roll end and takes a backup first, as far as there is
// something to keep.
func beginDeletion(s *situation.Situation) verdict.Verdict {
	// Nothing else tells of foreign data, once the pods are gone.
	if v := verdict.OneOf(s, foreignVolumes, volumes.Holdings); !v.Silent() {
		return v
	}
	keep := s.Desired.Spec.Deletion.Volumes != schema.VolumesDelete
	begin := refusedSuccessor(s)
	switch {
	case begin.Silent():
		begin = verdict.Do(action.NewBeginDeletion(s), situation.WhyDeleted(s))
	case !s.Desired.Restore.Chosen.None: // else the deletion's own backup may be the first
		return begin
	}
	if v := volumes.Stay(s, ""); keep && !v.Silent() {
		return v // what is to be kept would not be
	}
	asleep, skip := s.Observed.Record.Hibernated, s.Desired.Spec.Deletion.Backup == schema.BackupSkip
	switch {
	case !s.Formed(), keep && asleep, skip && s.Observed.Set == nil:
		return begin
	case s.Observed.Set == nil && !asleep:
		return verdict.Pass() // it is brought back first: nothing else could give the backup
	case keep && s.RollOpen():
		return verdict.Pass() // members of two versions would be kept; the roll ends first
	}
	if !skip && !asleep {
		if s.Observed.Set.Replicas < s.PodCount() {
			return resizeTo(s) // no member could give the backup
		}
		if v := listed(s); !v.Silent() {
			return unsaved(s, v)
		}
	}
	if v := backupFirst(s, s.Desired.Spec.Deletion.Backup, backupNeed{
		what: "the deletion", setting: "spec.deletion.backup", purpose: state.ForDeletion,
		why: "deletion", reason: "before the cluster is deleted",
	}); !v.Silent() {
		return v
	}
	return begin
}

// unsaved tells how a deletion goes on whose members give no backup, as there is no quorum.
func unsaved(s *situation.Situation, v verdict.Verdict) verdict.Verdict {
	if v.Hold.Kind != decision.Unhealthy {
		return v
	}
	v.Hold.Message = "the cluster is not deleted yet, because its backup comes first: " + v.Hold.Message
	without := "it is deleted without a backup then, and its volumes are kept"
	if s.Desired.Spec.Deletion.Volumes == schema.VolumesDelete {
		without = "it is deleted without a backup then, and what is on its volumes is lost for good"
	}
	return v.Advise("bring its members back; or set spec.deletion.backup to Skip in its file: " + without)
}

// refusedSuccessor keeps a cluster while the restore is refused that is to take its place.
func refusedSuccessor(s *situation.Situation) verdict.Verdict {
	if w := s.Desired.Restore; w != nil && w.Chosen.Problem != "" {
		return verdict.Refuse(fmt.Sprintf("the cluster is not deleted yet, because EtcdRestore %s, which is to take its place, is refused: %s", w.Name, w.Chosen.Problem), w.Chosen.Do)
	}
	return verdict.Pass()
}

// deletePods deletes the pods that are left when only the StatefulSet was deleted.
func deletePods(s *situation.Situation) verdict.Verdict {
	for _, p := range s.Observed.Pods {
		if s.Observed.Set == nil && !p.Terminating {
			return verdict.Do(action.DeletePod{Member: p.Name, PodUID: p.UID}, "no StatefulSet stops it")
		}
	}
	return verdict.Pass()
}

// deleteObjects deletes the StatefulSet, the services and the budget.
func deleteObjects(s *situation.Situation) verdict.Verdict {
	switch {
	case s.Observed.Set == nil:
	case s.Observed.Set.Terminating:
		return stalled.Set(s)
	default:
		return verdict.Do(action.DeleteObject{ObjectKind: "StatefulSet", Name: s.Desired.Name}, "no pod of it is left")
	}
	for _, obj := range s.Observed.Objects {
		if obj.State == state.ObjectInSync || obj.State == state.ObjectDrifted {
			return verdict.Do(action.DeleteObject{ObjectKind: obj.Kind, Name: obj.Name}, "it is no longer used")
		}
	}
	return verdict.Pass()
}

// deleteVolumes deletes the volumes, the certificates and last the record: as
// long as it is there, a crash loses nothing. A claim that has only the labels of a
// member's, and another name, is a person's copy.
func deleteVolumes(s *situation.Situation) verdict.Verdict {
	left := slices.DeleteFunc(slices.Clone(s.Observed.Volumes), func(v state.Volume) bool { return v.Member == "" })
	for _, v := range left {
		if !v.Terminating && (v.Own() || !s.Formed()) {
			return verdict.Do(action.DeleteVolume{Claim: v.Claim, UID: v.UID, Member: v.Member}, "spec.deletion.volumes is Delete")
		}
	}
	for i := range left {
		if v := &left[i]; !v.Terminating {
			return volumes.Unknown(s, v)
		}
	}
	if n := len(left); n > 0 {
		return stalled.Claim(s, &left[0], "Kubernetes deletes "+state.Plural(n, "volume")+", first claim "+left[0].Claim)
	}
	if len(s.Observed.Leftovers) > 0 {
		obj := s.Observed.Leftovers[0]
		return verdict.Do(action.DeleteObject{ObjectKind: obj.Kind, Name: obj.Name}, "it is worth nothing without the volumes")
	}
	return verdict.Do(action.ForgetCluster{}, "nothing is left that it could speak of")
}
