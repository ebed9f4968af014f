// Package objects has the rules about the objects of a cluster: those that another writer or
// the API server itself makes something else of.
package objects

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/recorded"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Drift brings back what was changed outside of Git: services, the disruption
// budget, the StatefulSet's replica count. None of it restarts a member. What is undone each
// time, or refused, is told by Fight and waits: nothing that heals waits for it, unless all
// rests on it.
func Drift(s *situation.Situation) verdict.Verdict {
	if s.Observed.Set != nil && s.Observed.Set.Terminating {
		return stalled.Set(s)
	}
	for _, obj := range s.Observed.Objects {
		switch {
		case fewer(s, obj): // resize brings the pods back, and looks what they start with
		case restsOn(s, obj):
			return await(s, obj)
		case more(s, obj): // resize takes the pods away, and looks whose they are
		case lets(s, obj): // resize, or the gate, tells
		case loses(s, obj):
			return putBack(s, obj).AtOnce()
		case s.Contested(obj), refused(s, obj): // Fight tells
		case s.Withheld(obj):
		case obj.State == state.ObjectMissing && situation.ForClients(s, obj) && s.Observed.Record.Applied == nil:
			return verdict.Do(action.ApplyObject{ObjectKind: obj.Kind, Name: obj.Name}, "every member is recorded, and from now on clients find them through it")
		case obj.State == state.ObjectMissing:
			return verdict.Do(action.ApplyObject{ObjectKind: obj.Kind, Name: obj.Name}, "it is gone, and Git says that it should be there")
		case obj.State == state.ObjectDrifted:
			return putBack(s, obj)
		}
	}
	if s.Observed.Set == nil {
		return lostSet(s)
	}
	return verdict.Pass()
}

// putBack applies an object that differs.
func putBack(s *situation.Situation, o state.Object) verdict.Verdict {
	why := "it differs from what Git says: "
	left, serves := surge.Evictable(s.Desired.Name, s.Git.Spec, s.Observed), surge.Serves(s.Git.Spec, s.Observed.Record)
	switch {
	case situation.ForClients(s, o) && serves != "":
		why = "clients are led to " + serves + " alone while the other member comes or leaves: "
	case o.Kind != state.KindBudget:
	case left != "":
		why = "it keeps the members, and " + left + " is none any more, so that a drain of its node may end: "
	case situation.Exclusive(s.Desired.Spec, s.Observed, s.Now):
		why = "no eviction takes a member beside the one that the rollout restarts: "
	}
	v := verdict.Do(action.ApplyObject{ObjectKind: o.Kind, Name: o.Name}, why+o.Detail)
	if !o.ChangedAt.IsZero() {
		v = v.Measured("at %s", o.ChangedAt.UTC().Format(time.RFC3339))
	}
	return v
}

// restsOn reports whether every rule below rests on an object that is left alone for now: the
// StatefulSet, unless it is the API server that makes something else of it, or refuses it, in
// fields that decide nothing.
func restsOn(s *situation.Situation, o state.Object) bool {
	switch {
	case o.Kind != "StatefulSet":
		return false
	case o.Left:
		return true
	case refused(s, o):
		return o.Weight == state.WeightAll
	}
	return s.Contested(o) && (!o.Fight.ByAdmission() || o.Weight == state.WeightAll)
}

// fewer reports whether another writer has taken pods of members away. However often it does
// so, they come back at once: a truce is for what tidies.
func fewer(s *situation.Situation, o state.Object) bool {
	set, r := s.Observed.Set, s.Observed.Record
	return set != nil && o.Kind == "StatefulSet" && effective(s, o) && s.Formed() && r.Recovering == nil && set.Replicas < s.PodCount()
}

// more reports whether there are more pods than places of members: another writer may have scaled it, or
// the record is older than the cluster.
func more(s *situation.Situation, o state.Object) bool {
	return s.Observed.Set != nil && o.Kind == "StatefulSet" && s.Observed.Set.Replicas > s.PodCount()
}

// lets reports whether a budget, which is made for as many members as the record knows, would let others stop
// one that it does not know.
func lets(s *situation.Situation, o state.Object) bool {
	if o.Kind != state.KindBudget || o.State == state.ObjectInSync {
		return false
	}
	v := recorded.Places(s, s.PodCount())
	return !v.Silent()
}

// loses reports whether members do not find each other while an object stays as it is.
func loses(s *situation.Situation, o state.Object) bool {
	return o.Kind == "Service" && !situation.ForClients(s, o) && o.State == state.ObjectDrifted && o.Weight > state.WeightLight && effective(s, o)
}

// effective reports whether an object may be put back, and is then as it should be for a moment.
func effective(s *situation.Situation, o state.Object) bool {
	return !o.Left && !refused(s, o) && (o.Fight == nil || !o.Fight.ByAdmission())
}

// refused reports whether an object was not taken as it was applied, and is not tried again yet.
func refused(s *situation.Situation, o state.Object) bool {
	return (o.State == state.ObjectMissing || o.State == state.ObjectDrifted) && o.Refused != nil && o.Refused.Until.After(s.Now)
}

// lostSet brings back a StatefulSet that was deleted out of band, or that has
// released its pods. Those that run are taken over. Where none run, volumes are
// there, so the members continue where they were; but only when nothing else changed,
// because a new StatefulSet starts all its members at once.
func lostSet(s *situation.Situation) verdict.Verdict {
	if s.Adoptable() && s.VolumesLeft() == s.MemberCount() {
		return bringBack(s, "the StatefulSet is gone, and its pods are as Git wants them: a new one takes them over, and none restarts")
	}
	applied := s.Observed.Record.Applied
	if applied == nil {
		return verdict.Refuse("the StatefulSet is gone, and nothing was applied completely before, so what its members ran is unknown",
			"bring the StatefulSet back from a backup of the Kubernetes API, or restore a backup into a new cluster")
	}
	if !s.SameSettings(applied) {
		return verdict.Refuse("the StatefulSet is gone, and the file has changed since it was last applied",
			fmt.Sprintf("revert what the file says of its members to what they ran last, etcd %s, so that they can come back unchanged", applied.Version))
	}
	if why := s.Outgrown(); why != "" {
		return verdict.Refuse("the StatefulSet is gone, and "+why, "set spec.version to a release that the members run, so that each can restart as what it is, or bring the StatefulSet back from a backup of the Kubernetes API")
	}
	if left := s.VolumesLeft(); left < s.MemberCount() {
		return verdict.Refuse(
			fmt.Sprintf("the StatefulSet is gone, and so are volumes: %d of %d are left", left, s.MemberCount()),
			"bring the volumes back, or restore a backup into a new cluster; nothing is begun on empty volumes under the old identity")
	}
	return bringBack(s, "the StatefulSet is gone; its members continue from their volumes")
}

// bringBack creates the StatefulSet with the places of its members. It takes over the pods that
// are there, and deletes those beyond.
func bringBack(s *situation.Situation, why string) verdict.Verdict {
	if v := recorded.Places(s, s.PodCount()); !v.Silent() {
		return v
	}
	return verdict.Do(action.CreateSet{Replicas: s.PodCount()}, why)
}
