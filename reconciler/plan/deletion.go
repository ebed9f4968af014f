package plan

import (
	"slices"
	"time"

	"github.com/quorate/quorate/schema"
)

// deletion removes a cluster whose file says so, and brings one back whose file
// no longer does. A file that is gone says nothing.
//
// The volumes are kept unless the file says otherwise, and with them the record
// and the certificates: the same file in state Running goes on with the data.
func deletion(s *situation) verdict {
	r := s.o.Record
	switch {
	case s.d.Spec.State != schema.StateDeleted && r != nil && r.Deleted:
		return do(Revive{}, "spec.state is no longer Deleted; the cluster goes on from the volumes that are left")
	case s.d.Spec.State != schema.StateDeleted:
		return pass()
	case r == nil:
		return idle()
	case !r.Deleted:
		return s.beginDeletion()
	}
	for _, left := range []func() verdict{s.deletePods, s.stopAll, s.deleteObjects} {
		if v := left(); !v.silent() {
			return v
		}
	}
	if s.d.Spec.Deletion.Volumes != schema.VolumesDelete {
		return idle()
	}
	return s.deleteVolumes()
}

// beginDeletion lets a roll end and takes a backup first, as far as there is
// something to keep.
func (s *situation) beginDeletion() verdict {
	if v := s.foreignVolumes(); !v.silent() {
		return v // nobody would know any more, once the pods are gone
	}
	if v := holdings(s); !v.silent() {
		return v
	}
	keep := s.d.Spec.Deletion.Volumes != schema.VolumesDelete
	reason := "spec.state is Deleted; the volumes are deleted, too, because spec.deletion.volumes is Delete"
	if keep {
		reason = "spec.state is Deleted; the volumes are kept"
	}
	asleep, skip := s.formed() && s.o.Record.Hibernated, s.d.Spec.Deletion.Backup == schema.BackupSkip
	switch {
	case !s.formed(), keep && asleep, skip && s.o.Set == nil:
		return do(s.deletionBegins(), reason)
	case s.o.Set == nil && !asleep:
		return pass() // it is brought back first: nobody else could give the backup
	case keep && !asleep && s.open():
		return pass() // members of two versions would be kept; the roll ends first
	}
	if !skip && !asleep {
		if s.o.Set.Replicas < s.size() {
			return s.resize() // nobody could give the backup
		}
		if v := s.listed(); !v.silent() {
			return v
		}
	}
	if v := s.backupFirst(s.d.Spec.Deletion.Backup, backupWish{
		what: "the deletion", setting: "spec.deletion.backup", purpose: "deletion",
		why: "deletion", reason: "before the cluster is deleted",
	}); !v.silent() {
		return v
	}
	return do(s.deletionBegins(), reason)
}

// deletionBegins is the action that writes down what the members were, as far as
// that is known: only as that may they ever come back.
func (s *situation) deletionBegins() BeginDeletion {
	if s.o.Set == nil {
		return BeginDeletion{}
	}
	a := BeginDeletion{Version: s.o.Set.CurrentVersion}
	switch was := s.o.Record.Applied; {
	case s.open() || (!s.formed() && !s.alike()):
	case s.started() && !s.o.Record.Hibernated:
		a.Settings = s.settings()
	case was != nil:
		a.Settings = was.Settings
	}
	return a
}

// alike says whether every pod has the template of the StatefulSet. Whose they are
// matters not: before the cluster has formed nobody knows who its members are.
func (s *situation) alike() bool {
	return !slices.ContainsFunc(s.o.Pods, func(p Pod) bool { return p.Template != s.o.Set.Template })
}

// deletePods deletes what is left when somebody has deleted the StatefulSet alone.
func (s *situation) deletePods() verdict {
	for _, p := range s.o.Pods {
		if s.o.Set == nil && !p.Terminating {
			return do(DeletePod{Member: p.Name, PodUID: p.UID}, "no StatefulSet stops it")
		}
	}
	return pass()
}

// deleteObjects deletes the StatefulSet, the services and the budget.
func (s *situation) deleteObjects() verdict {
	if s.o.Set != nil {
		return do(DeleteObject{Kind: "StatefulSet", Name: s.d.Name}, "no pod of it is left")
	}
	for _, obj := range s.o.Objects {
		if obj.State == ObjectInSync || obj.State == ObjectDrifted {
			return do(DeleteObject{obj.Kind, obj.Name}, "nobody uses it any more")
		}
	}
	return pass()
}

// deleteVolumes deletes the volumes, the certificates and last the record: as
// long as it is there, a crash loses nothing. A claim that has only the labels of a
// member's, and another name, is somebody's copy.
func (s *situation) deleteVolumes() verdict {
	left := slices.DeleteFunc(slices.Clone(s.o.Volumes), func(v Volume) bool { return v.Member == "" })
	for _, v := range left {
		if !v.Terminating && (v.Own() || !s.formed()) {
			return do(DeleteVolume{Claim: v.Claim, UID: v.UID, Member: v.Member}, "spec.deletion.volumes is Delete")
		}
	}
	for i := range left {
		if v := &left[i]; !v.Terminating {
			return unknownVolume(v)
		}
	}
	if n := len(left); n > 0 {
		return wait(plural(n, "volume")+" on the way out", time.Time{})
	}
	if len(s.o.Leftovers) > 0 {
		obj := s.o.Leftovers[0]
		return do(DeleteObject{obj.Kind, obj.Name}, "it is worth nothing without the volumes")
	}
	return do(ForgetCluster{}, "nothing is left that it could speak of")
}
