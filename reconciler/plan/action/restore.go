package action

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// BeginRestore reads and checks a backup, and records which cluster is to
// begin with it, and the identity that it will have. Nothing else is made before.
type BeginRestore struct {
	// Restore is the name of the EtcdRestore, SpecHash of its spec, SourceHash of
	// what names the backup, and Source describes it.
	Restore, SpecHash, SourceHash, Source string
	// Object is the backup that was chosen, its URL without the query; empty leaves the
	// choice to who executes it.
	Object string
	Owner  state.Owner
	// Member is the first member, Version the release that it will run.
	Member, Version string
	// InPlace says that there is the record of a deleted cluster, which makes way:
	// it is kept inside the new one, and so are its volumes, under their names.
	InPlace bool
}

func (BeginRestore) isAction() {}

// Kind implements Action.
func (BeginRestore) Kind() string { return "BeginRestore" }

// String implements Action.
func (a BeginRestore) String() string {
	return fmt.Sprintf("begin to restore %s (%s)", a.Source, a.Restore)
}

// Disruptive implements Action: nothing runs.
func (BeginRestore) Disruptive() bool { return false }

// After implements Action.
func (a BeginRestore) After(s *situation.Situation) {
	was := s.Observed.Record
	s.Observed.Record = &state.Record{
		Founders: 1, Restored: &state.Restored{Name: a.Restore, SpecHash: a.SpecHash, SourceHash: a.SourceHash},
		Recovering: &state.Recovering{
			OneShot: "restore " + a.Restore, NewClusterID: "(new)", NewMemberID: "(new " + a.Member + ")", Member: a.Member, Since: s.Now,
		},
	}
	if a.InPlace {
		s.Observed.Record.ClaimPrefix, s.Observed.Volumes = "data-(new)", nil
	}
	switch {
	case was != nil:
		s.Observed.Record.Owner = was.Owner
	case !a.Owner.Nobody():
		s.Observed.Record.Owner = &a.Owner
	}
}

// Undo implements Action.
func (a BeginRestore) Undo(s *situation.Situation) Undo {
	if a.InPlace {
		return final("the record of the deleted cluster makes way; its volumes are kept under their old names")
	}
	return undoMade(s)
}

// CreateVolume makes the volume claim of the first member of a restored cluster,
// as the StatefulSet would.
type CreateVolume struct{ Member, Claim string }

func (CreateVolume) isAction() {}

// Kind implements Action.
func (CreateVolume) Kind() string { return "CreateVolume" }

// String implements Action.
func (a CreateVolume) String() string { return "create the volume claim of " + a.Member }

// Disruptive implements Action: nothing runs.
func (CreateVolume) Disruptive() bool { return false }

// After implements Action.
func (a CreateVolume) After(s *situation.Situation) {
	size := s.WantedSize()
	s.Observed.Volumes = append(s.Observed.Volumes, state.Volume{
		Claim: a.Claim, UID: "(" + a.Claim + ")", Member: a.Member, Ordinal: naming.Ordinal(a.Member),
		Size: size, Capacity: size, Class: state.StorageClass(s.Desired.Spec.Storage), Bound: true,
	})
}

// Undo implements Action.
func (CreateVolume) Undo(s *situation.Situation) Undo { return undoMade(s) }

// EndRestore records that a restore is over, so that it never happens again.
type EndRestore struct{ Restore, SpecHash string }

func (EndRestore) isAction() {}

// Kind implements Action.
func (EndRestore) Kind() string { return "EndRestore" }

// String implements Action.
func (a EndRestore) String() string { return "record that restore " + a.Restore + " is done" }

// Disruptive implements Action: no member stops.
func (EndRestore) Disruptive() bool { return false }

// After implements Action.
func (a EndRestore) After(s *situation.Situation) {
	w := *s.Observed.Record.Restored
	w.SpecHash, w.Done = a.SpecHash, true
	s.Observed.Record.Restored = &w
}

// Undo implements Action.
func (EndRestore) Undo(*situation.Situation) Undo { return onlyNotes() }
