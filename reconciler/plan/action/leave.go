package action

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// BeginLeave records that a member is being removed, before etcd is asked.
type BeginLeave struct {
	Member, ID string
	// Why is a clause for the record.
	Why string
	// Replace says that another member takes its place and its name, and Serving that it
	// serves until then: else it is kept where it comes back. Asked says that nothing is
	// wrong with it.
	Replace, Serving, Asked bool
}

func (BeginLeave) isAction() {}

// Kind implements Action.
func (BeginLeave) Kind() string { return "BeginLeave" }

// String implements Action.
func (a BeginLeave) String() string { return "write down that " + a.Member + " leaves" }

// Disruptive implements Action: no member stops.
func (BeginLeave) Disruptive() bool { return false }

// After implements Action.
func (a BeginLeave) After(s *situation.Situation) {
	s.Observed.Record.Leaving = &state.Leaving{Member: a.Member, ID: a.ID, Why: a.Why, Replace: a.Replace, Serving: a.Serving, Asked: a.Asked, Since: s.Now}
}

// Undo implements Action.
func (BeginLeave) Undo(*situation.Situation) Undo { return anytime("") }

// CancelLeave takes back that a member is being removed: it is still one, and is
// wanted again.
type CancelLeave struct{ Member, ID string }

func (CancelLeave) isAction() {}

// Kind implements Action.
func (CancelLeave) Kind() string { return "CancelLeave" }

// String implements Action.
func (a CancelLeave) String() string { return "keep " + a.Member + " after all" }

// Disruptive implements Action: no member stops.
func (CancelLeave) Disruptive() bool { return false }

// After implements Action.
func (CancelLeave) After(s *situation.Situation) { s.Observed.Record.Leaving = nil }

// Undo implements Action.
func (CancelLeave) Undo(*situation.Situation) Undo { return onlyNotes() }

// RemoveMember has etcd remove a member, by ID.
type RemoveMember struct{ Member, ID string }

func (RemoveMember) isAction() {}

// Kind implements Action.
func (RemoveMember) Kind() string { return "RemoveMember" }

// String implements Action.
func (a RemoveMember) String() string { return "remove " + a.Member + " from the members" }

// Disruptive implements Action: a member stops serving.
func (RemoveMember) Disruptive() bool { return true }

// After implements Action.
func (a RemoveMember) After(s *situation.Situation) { outlook.Unlist(s, a.ID) }

// Undo implements Action.
func (RemoveMember) Undo(*situation.Situation) Undo {
	return final("a member that comes back joins as a new one, with the data of the others")
}

// EndLeave records that a member has left.
type EndLeave struct {
	Member, ID string
	Replace    bool
}

func (EndLeave) isAction() {}

// Kind implements Action.
func (EndLeave) Kind() string { return "EndLeave" }

// String implements Action.
func (a EndLeave) String() string { return "record that " + a.Member + " has left" }

// Disruptive implements Action: no member stops.
func (EndLeave) Disruptive() bool { return false }

// After implements Action.
func (a EndLeave) After(s *situation.Situation) {
	r := s.Observed.Record
	r.Members, r.Retired, r.Leaving = maps.Clone(r.Members), maps.Clone(r.Retired), nil
	if r.Retired == nil {
		r.Retired = map[string]string{}
	}
	delete(r.Members, a.Member)
	r.Retired[a.Member] = a.ID
	if a.Replace {
		r.Replacing = a.Member
	}
}

// Undo implements Action.
func (EndLeave) Undo(*situation.Situation) Undo { return onlyNotes() }

// EndReplace records that no member takes the place of a member that has left.
type EndReplace struct{ Member string }

func (EndReplace) isAction() {}

// Kind implements Action.
func (EndReplace) Kind() string { return "EndReplace" }

// String implements Action.
func (a EndReplace) String() string { return "leave the place of " + a.Member + " empty" }

// Disruptive implements Action: no member stops.
func (EndReplace) Disruptive() bool { return false }

// After implements Action.
func (EndReplace) After(s *situation.Situation) { s.Observed.Record.Replacing = "" }

// Undo implements Action.
func (EndReplace) Undo(*situation.Situation) Undo { return onlyNotes() }

// ResizeSet sets how many pods the StatefulSet has, and its partition.
type ResizeSet struct {
	SetUID    string
	From, To  int32
	Partition int32
}

func (ResizeSet) isAction() {}

// Kind implements Action.
func (ResizeSet) Kind() string { return "ResizeSet" }

// String implements Action.
func (a ResizeSet) String() string {
	if a.From == a.To {
		return fmt.Sprintf("set the StatefulSet's partition to %d", a.Partition)
	}
	return fmt.Sprintf("resize the StatefulSet %d → %d", a.From, a.To)
}

// Disruptive implements Action: a member stops by another action, or sleeps.
func (ResizeSet) Disruptive() bool { return false }

// After implements Action.
func (a ResizeSet) After(s *situation.Situation) {
	s.Observed.Set.Replicas, s.Observed.Set.Partition = a.To, a.Partition
	s.Observed.Pods = slices.DeleteFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Ordinal >= a.To })
	applied(s, "StatefulSet", s.Desired.Name)
	outlook.Settle(s)
}

// Undo implements Action.
func (ResizeSet) Undo(*situation.Situation) Undo { return anytime("") }

// DeletePod deletes one pod, which the StatefulSet recreates where it wants it.
type DeletePod struct{ Member, PodUID string }

func (DeletePod) isAction() {}

// Kind implements Action.
func (DeletePod) Kind() string { return "DeletePod" }

// String implements Action.
func (a DeletePod) String() string { return "delete the pod of " + a.Member }

// Disruptive implements Action: only pods that belong to no member are deleted.
func (DeletePod) Disruptive() bool { return false }

// After implements Action.
func (a DeletePod) After(s *situation.Situation) {
	s.Observed.Pods = slices.DeleteFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Name == a.Member })
	s.Observed.Volumes = slices.DeleteFunc(s.Observed.Volumes, func(v state.Volume) bool { return v.Member == a.Member && v.Terminating })
	outlook.Settle(s)
}

// Undo implements Action.
func (DeletePod) Undo(*situation.Situation) Undo { return harmless("the pod belongs to no member") }

// DeleteVolume deletes the volume claim of a member that was removed.
type DeleteVolume struct {
	// Claim and its UID; no UID when it is gone already and only the record
	// still speaks of it.
	Claim, UID string
	Member     string
}

func (DeleteVolume) isAction() {}

// Kind implements Action.
func (DeleteVolume) Kind() string { return "DeleteVolume" }

// String implements Action.
func (a DeleteVolume) String() string {
	if a.UID == "" {
		return "record that the volume claim " + a.Claim + " is gone"
	}
	return "delete the volume claim " + a.Claim
}

// Disruptive implements Action: no member stops.
func (DeleteVolume) Disruptive() bool { return false }

// After implements Action.
func (a DeleteVolume) After(s *situation.Situation) {
	s.Observed.Record.Retired = maps.Clone(s.Observed.Record.Retired)
	delete(s.Observed.Record.Retired, a.Member)
	for i := range s.Observed.Volumes {
		if s.Observed.Volumes[i].Claim == a.Claim {
			s.Observed.Volumes[i].Terminating = true
		}
	}
	if s.Observed.Pod(a.Member) == nil {
		s.Observed.Volumes = slices.DeleteFunc(s.Observed.Volumes, func(v state.Volume) bool { return v.Claim == a.Claim })
	}
}

// Undo implements Action.
func (DeleteVolume) Undo(*situation.Situation) Undo { return final("the data on that volume is gone") }
