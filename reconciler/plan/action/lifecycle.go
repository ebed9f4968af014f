package action

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Hibernate records that the members are put to sleep, before they are.
type Hibernate struct{}

func (Hibernate) isAction() {}

// Kind implements Action.
func (Hibernate) Kind() string { return "Hibernate" }

// String implements Action.
func (Hibernate) String() string { return "put the members to sleep" }

// Disruptive implements Action: every member stops serving.
func (Hibernate) Disruptive() bool { return true }

// After implements Action.
func (Hibernate) After(s *situation.Situation) { s.Observed.Record.Hibernated = true }

// Undo implements Action.
func (Hibernate) Undo(*situation.Situation) Undo { return anytime("") }

// Wake records that the members are to run again.
type Wake struct{}

func (Wake) isAction() {}

// Kind implements Action.
func (Wake) Kind() string { return "Wake" }

// String implements Action.
func (Wake) String() string { return "wake the members" }

// Disruptive implements Action: no member stops.
func (Wake) Disruptive() bool { return false }

// After implements Action.
func (Wake) After(s *situation.Situation) { s.Observed.Record.Hibernated = false }

// Undo implements Action.
func (Wake) Undo(*situation.Situation) Undo { return anytime("") }

// BeginDeletion records that the cluster is being deleted.
type BeginDeletion struct {
	// Settings and Version are what the members are, as in RecordApplied; no
	// Settings when a roll is half done, and then they cannot come back.
	Settings, Version string
}

func (BeginDeletion) isAction() {}

// Kind implements Action.
func (BeginDeletion) Kind() string { return "BeginDeletion" }

// String implements Action.
func (BeginDeletion) String() string { return "begin the deletion" }

// Disruptive implements Action: every member stops serving.
func (BeginDeletion) Disruptive() bool { return true }

// After implements Action.
func (a BeginDeletion) After(s *situation.Situation) {
	s.Observed.Record.Deleted = true
	if a.Version != "" {
		s.Observed.Record.Applied = &state.Applied{Settings: a.Settings, Version: a.Version}
	}
}

// Undo implements Action.
func (a BeginDeletion) Undo(s *situation.Situation) Undo {
	if a.Version != "" && a.Settings == "" {
		return final("the members are of two releases, and cannot come back together")
	}
	if s.Desired.Spec.Deletion.Volumes == schema.VolumesDelete {
		return Undo{UndoUntil, "reversible by reverting the commit until the first volume is deleted"}
	}
	return anytime("the volumes are kept")
}

// Revive records that a deleted cluster is wanted again.
type Revive struct{}

func (Revive) isAction() {}

// Kind implements Action.
func (Revive) Kind() string { return "Revive" }

// String implements Action.
func (Revive) String() string { return "bring the cluster back" }

// Disruptive implements Action: no member stops.
func (Revive) Disruptive() bool { return false }

// After implements Action.
func (Revive) After(s *situation.Situation) { s.Observed.Record.Deleted = false }

// Undo implements Action.
func (Revive) Undo(*situation.Situation) Undo { return anytime("") }

// DeleteObject deletes an object of a cluster that Git wants deleted.
type DeleteObject struct{ ObjectKind, Name string }

func (DeleteObject) isAction() {}

// Kind implements Action.
func (DeleteObject) Kind() string { return "DeleteObject" }

// String implements Action.
func (a DeleteObject) String() string { return fmt.Sprintf("delete %s %s", a.ObjectKind, a.Name) }

// Disruptive implements Action: no member stops.
func (DeleteObject) Disruptive() bool { return false }

// After implements Action.
func (a DeleteObject) After(s *situation.Situation) {
	if a.ObjectKind == "StatefulSet" {
		s.Observed.Set, s.Observed.Pods = nil, nil
	}
	for i := range s.Observed.Objects {
		if s.Observed.Objects[i].Kind == a.ObjectKind && s.Observed.Objects[i].Name == a.Name {
			s.Observed.Objects[i].State = state.ObjectMissing
		}
	}
	s.Observed.Leftovers = slices.DeleteFunc(slices.Clone(s.Observed.Leftovers), func(o state.Object) bool { return o.Kind == a.ObjectKind && o.Name == a.Name })
}

// Undo implements Action.
func (DeleteObject) Undo(*situation.Situation) Undo {
	return harmless("it is recreated when the cluster is wanted again")
}

// ForgetCluster deletes the record of a cluster of which nothing is left.
type ForgetCluster struct{}

func (ForgetCluster) isAction() {}

// Kind implements Action.
func (ForgetCluster) Kind() string { return "ForgetCluster" }

// String implements Action.
func (ForgetCluster) String() string { return "delete the record" }

// Disruptive implements Action: no member stops.
func (ForgetCluster) Disruptive() bool { return false }

// After implements Action.
func (ForgetCluster) After(s *situation.Situation) { s.Observed.Record = nil }

// Undo implements Action.
func (ForgetCluster) Undo(*situation.Situation) Undo {
	return harmless("nothing is left that it could speak of")
}
