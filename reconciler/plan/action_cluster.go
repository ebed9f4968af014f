package plan

import (
	"fmt"
	"maps"
)

// CreateRecord writes the cluster's record with a fresh token and its first owner.
// It never overwrites a record.
type CreateRecord struct {
	Owner Owner
	// Founders is how many members the cluster begins with. That does not change
	// before it has formed, whatever Git says meanwhile: members that disagree
	// about it form two clusters.
	Founders int32
}

func (CreateRecord) isAction() {}

// String implements Action.
func (CreateRecord) String() string { return "create the record" }

// Disruptive implements Action: no member stops.
func (CreateRecord) Disruptive() bool { return false }

// after implements Action.
func (a CreateRecord) after(s *situation) {
	s.o.Record = &Record{Founders: a.Founders}
	if !a.Owner.Nobody() {
		s.o.Record.Owner = &a.Owner
	}
}

// undo implements Action.
func (CreateRecord) undo(s *situation) string { return s.undoMade() }

// IssueCertificates makes the Secrets that are missing. It changes none.
type IssueCertificates struct{ Secrets []string }

func (IssueCertificates) isAction() {}

// String implements Action.
func (IssueCertificates) String() string { return "issue certificates" }

// Disruptive implements Action: no member stops.
func (IssueCertificates) Disruptive() bool { return false }

// after implements Action.
func (IssueCertificates) after(s *situation) { s.o.Certificates.Missing = nil }

// undo implements Action.
func (IssueCertificates) undo(s *situation) string { return s.undoMade() }

// WidenCertificates issues certificates anew that name too few members, by the
// authority that has signed them.
type WidenCertificates struct{ Secrets []string }

func (WidenCertificates) isAction() {}

// String implements Action.
func (WidenCertificates) String() string { return "widen certificates" }

// Disruptive implements Action: no member stops, for a certificate is loaded at
// each handshake.
func (WidenCertificates) Disruptive() bool { return false }

// after implements Action.
func (WidenCertificates) after(s *situation) { s.o.Certificates.Narrow = nil }

// undo implements Action.
func (WidenCertificates) undo(*situation) string {
	return harmless + ": the certificates name more members, and all that they named before"
}

// ApplyObject makes one Kubernetes object what quorate wants.
type ApplyObject struct{ Kind, Name string }

func (ApplyObject) isAction() {}

// String implements Action.
func (a ApplyObject) String() string { return fmt.Sprintf("apply %s %s", a.Kind, a.Name) }

// Disruptive implements Action: no member stops.
func (ApplyObject) Disruptive() bool { return false }

// after implements Action.
func (a ApplyObject) after(s *situation) {
	for i := range s.o.Objects {
		if s.o.Objects[i].Kind == a.Kind && s.o.Objects[i].Name == a.Name {
			s.o.Objects[i].State = ObjectInSync
		}
	}
}

// undo implements Action.
func (ApplyObject) undo(s *situation) string {
	if s.formed() {
		return anytime
	}
	return s.undoMade()
}

// CreateSet creates the StatefulSet, and with it the members' pods.
type CreateSet struct{ Replicas int32 }

func (CreateSet) isAction() {}

// String implements Action.
func (a CreateSet) String() string {
	if a.Replicas == 0 {
		return "create the StatefulSet, without members"
	}
	return "create " + members(int(a.Replicas))
}

// Disruptive implements Action: no member stops.
func (CreateSet) Disruptive() bool { return false }

// after implements Action.
func (a CreateSet) after(s *situation) {
	s.o.Set = &Set{
		UID: assumedCluster, Replicas: a.Replicas, Partition: a.Replicas, Template: s.d.Template, Version: s.d.Spec.Version,
		CurrentTemplate: s.d.Template, CurrentVersion: s.d.Spec.Version, Settled: true,
		ClaimSize: s.wantedSize(), ClaimClass: classOf(s.d.Spec.Storage),
	}
	s.settle()
}

// undo implements Action.
func (CreateSet) undo(s *situation) string {
	if !s.formed() {
		return final + ": a cluster whose file is gone is left running"
	}
	return s.undoMade()
}

// RecordFormed writes down the IDs of a cluster that has just formed.
type RecordFormed struct {
	ClusterID string
	Members   map[string]string
	// BornOn is the line of the oldest member, such as "3.6".
	BornOn string
}

func (RecordFormed) isAction() {}

// String implements Action.
func (a RecordFormed) String() string { return "record cluster " + a.ClusterID }

// Disruptive implements Action: no member stops.
func (RecordFormed) Disruptive() bool { return false }

// after implements Action.
func (a RecordFormed) after(s *situation) {
	s.o.Record.ClusterID, s.o.Record.Members, s.o.Record.BornOn = a.ClusterID, maps.Clone(a.Members), a.BornOn
}

// undo implements Action.
func (RecordFormed) undo(*situation) string { return onlyNotes }

// RecordApplied writes down that the spec has been carried out to its end.
type RecordApplied struct {
	SpecHash string
	// Settings is a hash of the part of the spec that makes the members what they
	// are.
	Settings        string
	Version, Commit string
}

func (RecordApplied) isAction() {}

// String implements Action.
func (a RecordApplied) String() string { return "record that " + a.Version + " is applied" }

// Disruptive implements Action: no member stops.
func (RecordApplied) Disruptive() bool { return false }

// after implements Action.
func (a RecordApplied) after(s *situation) {
	s.o.Record.Applied = &Applied{SpecHash: a.SpecHash, Settings: a.Settings, Version: a.Version, Commit: a.Commit}
	s.o.Record.Downgrade, s.o.Record.Nudged = nil, nil
	if ReadsLogs(a.Version) {
		s.o.Record.Flushed = maps.Clone(s.o.Record.Members)
	}
}

// undo implements Action.
func (RecordApplied) undo(*situation) string { return onlyNotes }
