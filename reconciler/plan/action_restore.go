package plan

import (
	"fmt"
	"slices"
)

// BeginRestore reads and checks a backup, and writes down which cluster is to
// begin with it, and the identity that it will have. Nothing else is made before.
type BeginRestore struct {
	// Restore is the name of the EtcdRestore, SpecHash of its spec, SourceHash of
	// what names the backup, and Source the same in words.
	Restore, SpecHash, SourceHash, Source string
	Owner                                 Owner
	// Member is the first member, Version the release that it will run.
	Member, Version string
	// InPlace says that there is the record of a deleted cluster, which makes way:
	// it is kept inside the new one, and so are its volumes, under their names.
	InPlace bool
}

func (BeginRestore) isAction() {}

// String implements Action.
func (a BeginRestore) String() string {
	return fmt.Sprintf("begin to restore %s (%s)", a.Source, a.Restore)
}

// Disruptive implements Action: nothing runs.
func (BeginRestore) Disruptive() bool { return false }

// after implements Action.
func (a BeginRestore) after(s *situation) {
	was := s.o.Record
	s.o.Record = &Record{
		Founders: 1, Restored: &Restored{Name: a.Restore, SpecHash: a.SpecHash, SourceHash: a.SourceHash},
		Recovering: &Recovering{
			OneShot: "restore " + a.Restore, NewClusterID: "(new)", NewMemberID: "(new " + a.Member + ")", Member: a.Member, Since: s.now,
		},
	}
	if a.InPlace {
		s.o.Record.ClaimPrefix, s.o.Volumes = "data-(new)", nil
	}
	s.o.Objects = slices.DeleteFunc(s.o.Objects, s.withheld)
	switch {
	case was != nil:
		s.o.Record.Owner = was.Owner
	case !a.Owner.Nobody():
		s.o.Record.Owner = &a.Owner
	}
}

// undo implements Action.
func (a BeginRestore) undo(s *situation) string {
	if a.InPlace {
		return final + ": the record of the deleted cluster makes way; its volumes are kept under their old names"
	}
	return s.undoMade()
}

// CreateVolume makes the volume claim of the first member of a restored cluster,
// as the StatefulSet would.
type CreateVolume struct{ Member, Claim string }

func (CreateVolume) isAction() {}

// String implements Action.
func (a CreateVolume) String() string { return "create the volume claim of " + a.Member }

// Disruptive implements Action: nothing runs.
func (CreateVolume) Disruptive() bool { return false }

// after implements Action.
func (a CreateVolume) after(s *situation) {
	size := s.wantedSize()
	s.o.Volumes = append(s.o.Volumes, Volume{
		Claim: a.Claim, UID: "(" + a.Claim + ")", Member: a.Member, Ordinal: ordinalOf(a.Member),
		Size: size, Capacity: size, Class: classOf(s.d.Spec.Storage), Bound: true,
	})
}

// undo implements Action.
func (CreateVolume) undo(s *situation) string { return s.undoMade() }

// EndRestore writes down that a restore is over, so that it never happens again.
type EndRestore struct{ Restore, SpecHash string }

func (EndRestore) isAction() {}

// String implements Action.
func (a EndRestore) String() string { return "record that restore " + a.Restore + " is done" }

// Disruptive implements Action: no member stops.
func (EndRestore) Disruptive() bool { return false }

// after implements Action.
func (a EndRestore) after(s *situation) {
	w := *s.o.Record.Restored
	w.SpecHash, w.Done = a.SpecHash, true
	s.o.Record.Restored = &w
	s.o.Objects = append(s.o.Objects, Object{Kind: "Service", Name: s.d.Name + "-client", State: ObjectMissing})
}

// undo implements Action.
func (EndRestore) undo(*situation) string { return onlyNotes }
