package plan

import (
	"fmt"
	"maps"
	"slices"
)

// BeginLeave writes down that a member is being removed, before etcd is asked.
type BeginLeave struct {
	Member, ID string
	// Why is a clause for the record.
	Why string
	// Replace says that another member takes its place and its name.
	Replace bool
}

func (BeginLeave) isAction() {}

// String implements Action.
func (a BeginLeave) String() string { return "write down that " + a.Member + " leaves" }

// Disruptive implements Action: no member stops.
func (BeginLeave) Disruptive() bool { return false }

// after implements Action.
func (a BeginLeave) after(s *situation) {
	s.o.Record.Leaving = &Leaving{Member: a.Member, ID: a.ID, Why: a.Why, Replace: a.Replace, Since: s.now}
}

// undo implements Action.
func (BeginLeave) undo(*situation) string { return anytime }

// CancelLeave takes back that a member is being removed: it is still one, and is
// wanted again.
type CancelLeave struct{ Member, ID string }

func (CancelLeave) isAction() {}

// String implements Action.
func (a CancelLeave) String() string { return "keep " + a.Member + " after all" }

// Disruptive implements Action: no member stops.
func (CancelLeave) Disruptive() bool { return false }

// after implements Action.
func (CancelLeave) after(s *situation) { s.o.Record.Leaving = nil }

// undo implements Action.
func (CancelLeave) undo(*situation) string { return onlyNotes }

// RemoveMember has etcd remove a member, by ID.
type RemoveMember struct{ Member, ID string }

func (RemoveMember) isAction() {}

// String implements Action.
func (a RemoveMember) String() string { return "remove " + a.Member + " from the members" }

// Disruptive implements Action: a member stops serving.
func (RemoveMember) Disruptive() bool { return true }

// after implements Action.
func (a RemoveMember) after(s *situation) { s.unlist(a.ID) }

// undo implements Action.
func (RemoveMember) undo(*situation) string {
	return final + ": who comes back joins anew, with the data of the others"
}

// EndLeave writes down that a member is none any more.
type EndLeave struct {
	Member, ID string
	Replace    bool
}

func (EndLeave) isAction() {}

// String implements Action.
func (a EndLeave) String() string { return "record that " + a.Member + " has left" }

// Disruptive implements Action: no member stops.
func (EndLeave) Disruptive() bool { return false }

// after implements Action.
func (a EndLeave) after(s *situation) {
	r := s.o.Record
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

// undo implements Action.
func (EndLeave) undo(*situation) string { return onlyNotes }

// EndReplace writes down that nobody takes the place of a member that has left.
type EndReplace struct{ Member string }

func (EndReplace) isAction() {}

// String implements Action.
func (a EndReplace) String() string { return "leave the place of " + a.Member + " empty" }

// Disruptive implements Action: no member stops.
func (EndReplace) Disruptive() bool { return false }

// after implements Action.
func (EndReplace) after(s *situation) { s.o.Record.Replacing = "" }

// undo implements Action.
func (EndReplace) undo(*situation) string { return onlyNotes }

// ResizeSet sets how many pods the StatefulSet has, and its partition.
type ResizeSet struct {
	SetUID    string
	From, To  int32
	Partition int32
}

func (ResizeSet) isAction() {}

// String implements Action.
func (a ResizeSet) String() string {
	if a.From == a.To {
		return fmt.Sprintf("set the StatefulSet's partition to %d", a.Partition)
	}
	return fmt.Sprintf("resize the StatefulSet %d → %d", a.From, a.To)
}

// Disruptive implements Action: who is a member stops by another action, or sleeps.
func (ResizeSet) Disruptive() bool { return false }

// after implements Action.
func (a ResizeSet) after(s *situation) {
	s.o.Set.Replicas, s.o.Set.Partition = a.To, a.Partition
	s.o.Pods = slices.DeleteFunc(s.o.Pods, func(p Pod) bool { return p.Ordinal >= a.To })
	s.settle()
}

// undo implements Action.
func (ResizeSet) undo(*situation) string { return anytime }

// DeletePod deletes one pod, which the StatefulSet makes anew where it wants it.
type DeletePod struct{ Member, PodUID string }

func (DeletePod) isAction() {}

// String implements Action.
func (a DeletePod) String() string { return "delete the pod of " + a.Member }

// Disruptive implements Action: only pods that belong to no member are deleted.
func (DeletePod) Disruptive() bool { return false }

// after implements Action.
func (a DeletePod) after(s *situation) {
	s.o.Pods = slices.DeleteFunc(s.o.Pods, func(p Pod) bool { return p.Name == a.Member })
	s.o.Volumes = slices.DeleteFunc(s.o.Volumes, func(v Volume) bool { return v.Member == a.Member && v.Terminating })
	s.settle()
}

// undo implements Action.
func (DeletePod) undo(*situation) string { return harmless + ": the pod belongs to no member" }

// DeleteVolume deletes the volume claim of a member that was removed.
type DeleteVolume struct {
	// Claim and its UID; no UID when it is gone already and only the record
	// still speaks of it.
	Claim, UID string
	Member     string
}

func (DeleteVolume) isAction() {}

// String implements Action.
func (a DeleteVolume) String() string {
	if a.UID == "" {
		return "record that the volume claim " + a.Claim + " is gone"
	}
	return "delete the volume claim " + a.Claim
}

// Disruptive implements Action: no member stops.
func (DeleteVolume) Disruptive() bool { return false }

// after implements Action.
func (a DeleteVolume) after(s *situation) {
	s.o.Record.Retired = maps.Clone(s.o.Record.Retired)
	delete(s.o.Record.Retired, a.Member)
	for i := range s.o.Volumes {
		if s.o.Volumes[i].Claim == a.Claim {
			s.o.Volumes[i].Terminating = true
		}
	}
	if s.o.pod(a.Member) == nil {
		s.o.Volumes = slices.DeleteFunc(s.o.Volumes, func(v Volume) bool { return v.Claim == a.Claim })
	}
}

// undo implements Action.
func (DeleteVolume) undo(*situation) string { return final + ": the data on that volume is gone" }
