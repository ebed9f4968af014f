package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/schema"
)

// Hibernate writes down that the members are put to sleep, before they are.
type Hibernate struct{}

func (Hibernate) isAction() {}

// String implements Action.
func (Hibernate) String() string { return "put the members to sleep" }

// Disruptive implements Action: every member stops serving.
func (Hibernate) Disruptive() bool { return true }

// after implements Action.
func (Hibernate) after(s *situation) { s.o.Record.Hibernated = true }

// undo implements Action.
func (Hibernate) undo(*situation) string { return anytime }

// Wake writes down that the members are to run again.
type Wake struct{}

func (Wake) isAction() {}

// String implements Action.
func (Wake) String() string { return "wake the members" }

// Disruptive implements Action: no member stops.
func (Wake) Disruptive() bool { return false }

// after implements Action.
func (Wake) after(s *situation) { s.o.Record.Hibernated = false }

// undo implements Action.
func (Wake) undo(*situation) string { return anytime }

// BeginDeletion writes down that the cluster is being deleted.
type BeginDeletion struct {
	// Settings and Version are what the members are, as in RecordApplied; no
	// Settings when a roll is half done, and then they cannot come back.
	Settings, Version string
}

func (BeginDeletion) isAction() {}

// String implements Action.
func (BeginDeletion) String() string { return "begin the deletion" }

// Disruptive implements Action: every member stops serving.
func (BeginDeletion) Disruptive() bool { return true }

// after implements Action.
func (a BeginDeletion) after(s *situation) {
	s.o.Record.Deleted = true
	if a.Version != "" {
		s.o.Record.Applied = &Applied{Settings: a.Settings, Version: a.Version}
	}
}

// undo implements Action.
func (a BeginDeletion) undo(s *situation) string {
	if a.Version != "" && a.Settings == "" {
		return final + ": the members are of two releases, and cannot come back together"
	}
	if s.d.Spec.Deletion.Volumes == schema.VolumesDelete {
		return "reversible by reverting the commit until the first volume is deleted"
	}
	return anytime + ": the volumes are kept"
}

// Revive writes down that a deleted cluster is wanted again.
type Revive struct{}

func (Revive) isAction() {}

// String implements Action.
func (Revive) String() string { return "bring the cluster back" }

// Disruptive implements Action: no member stops.
func (Revive) Disruptive() bool { return false }

// after implements Action.
func (Revive) after(s *situation) { s.o.Record.Deleted = false }

// undo implements Action.
func (Revive) undo(*situation) string { return anytime }

// DeleteObject deletes an object of a cluster that Git wants deleted.
type DeleteObject struct{ Kind, Name string }

func (DeleteObject) isAction() {}

// String implements Action.
func (a DeleteObject) String() string { return fmt.Sprintf("delete %s %s", a.Kind, a.Name) }

// Disruptive implements Action: no member stops.
func (DeleteObject) Disruptive() bool { return false }

// after implements Action.
func (a DeleteObject) after(s *situation) {
	if a.Kind == "StatefulSet" {
		s.o.Set = nil
	}
	for i := range s.o.Objects {
		if s.o.Objects[i].Kind == a.Kind && s.o.Objects[i].Name == a.Name {
			s.o.Objects[i].State = ObjectMissing
		}
	}
	s.o.Leftovers = slices.DeleteFunc(slices.Clone(s.o.Leftovers), func(o Object) bool { return o.Kind == a.Kind && o.Name == a.Name })
}

// undo implements Action.
func (DeleteObject) undo(*situation) string {
	return harmless + ": it is made anew when the cluster is wanted again"
}

// ForgetCluster deletes the record of a cluster of which nothing is left.
type ForgetCluster struct{}

func (ForgetCluster) isAction() {}

// String implements Action.
func (ForgetCluster) String() string { return "delete the record" }

// Disruptive implements Action: no member stops.
func (ForgetCluster) Disruptive() bool { return false }

// after implements Action.
func (ForgetCluster) after(s *situation) { s.o.Record = nil }

// undo implements Action.
func (ForgetCluster) undo(*situation) string {
	return harmless + ": nothing is left that it could speak of"
}
