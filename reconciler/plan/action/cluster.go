package action

import (
	"fmt"
	"maps"

	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// CreateRecord writes the cluster's record with a fresh token and its first owner.
// It never overwrites a record.
type CreateRecord struct {
	Owner state.Owner
	// Founders is how many members the cluster begins with. That does not change
	// before it has formed, whatever Git says meanwhile: members that disagree
	// about it form two clusters.
	Founders int32
}

func (CreateRecord) isAction() {}

// Kind implements Action.
func (CreateRecord) Kind() string { return "CreateRecord" }

// String implements Action.
func (CreateRecord) String() string { return "create the record" }

// Disruptive implements Action: no member stops.
func (CreateRecord) Disruptive() bool { return false }

// After implements Action.
func (a CreateRecord) After(s *situation.Situation) {
	s.Observed.Record = &state.Record{Founders: a.Founders}
	if !a.Owner.Nobody() {
		s.Observed.Record.Owner = &a.Owner
	}
}

// Undo implements Action.
func (CreateRecord) Undo(s *situation.Situation) Undo { return undoMade(s) }

// IssueCertificates makes the Secrets that are missing. It changes none.
type IssueCertificates struct{ Secrets []string }

func (IssueCertificates) isAction() {}

// Kind implements Action.
func (IssueCertificates) Kind() string { return "IssueCertificates" }

// String implements Action.
func (IssueCertificates) String() string { return "issue certificates" }

// Disruptive implements Action: no member stops.
func (IssueCertificates) Disruptive() bool { return false }

// After implements Action.
func (IssueCertificates) After(s *situation.Situation) {
	s.Observed.Certificates.Missing = nil
	if i := s.Observed.Certificates.Issuers; i != nil && len(i.Missing) > 0 {
		i.Missing, i.Both, i.Alone, i.Told = nil, "(both issuers)", "(quorate's authorities)", false
	}
}

// Undo implements Action.
func (IssueCertificates) Undo(s *situation.Situation) Undo { return undoMade(s) }

// ReissueCertificates reissues certificates that name too few members, by the
// authority that has signed them.
type ReissueCertificates struct{ Secrets []string }

func (ReissueCertificates) isAction() {}

// Kind implements Action.
func (ReissueCertificates) Kind() string { return "WidenCertificates" }

// String implements Action.
func (ReissueCertificates) String() string { return "widen certificates" }

// Disruptive implements Action: no member stops, for a certificate is loaded at
// each handshake.
func (ReissueCertificates) Disruptive() bool { return false }

// After implements Action.
func (ReissueCertificates) After(s *situation.Situation) {
	s.Observed.Certificates.MissingSANs = nil
	if i := s.Observed.Certificates.Issuers; i != nil {
		i.MissingSANs = nil
	}
}

// Undo implements Action.
func (ReissueCertificates) Undo(*situation.Situation) Undo {
	return harmless("the certificates name more members, and all that they named before")
}

// RenewCertificates issues certificates again that grow old, by the authority that has
// signed them.
type RenewCertificates struct{ Secrets []string }

func (RenewCertificates) isAction() {}

// Kind implements Action.
func (RenewCertificates) Kind() string { return "RenewCertificates" }

// String implements Action.
func (RenewCertificates) String() string { return "renew certificates" }

// Disruptive implements Action: no member stops, for a certificate is loaded at
// each handshake.
func (RenewCertificates) Disruptive() bool { return false }

// After implements Action.
func (RenewCertificates) After(s *situation.Situation) {
	s.Observed.Certificates.Due = nil
	if i := s.Observed.Certificates.Issuers; i != nil {
		i.Due = nil
	}
}

// Undo implements Action.
func (RenewCertificates) Undo(*situation.Situation) Undo {
	return harmless("the certificates name what they named before, and live longer")
}

// IssueClientCertificates issues the certificates of applications in the Secrets of these
// names, new ones and in place of others.
type IssueClientCertificates struct{ Secrets []string }

func (IssueClientCertificates) isAction() {}

// Kind implements Action.
func (IssueClientCertificates) Kind() string { return "IssueClientCertificates" }

// String implements Action.
func (IssueClientCertificates) String() string { return "issue certificates of clients" }

// Disruptive implements Action: no member stops, and no member reads them.
func (IssueClientCertificates) Disruptive() bool { return false }

// After implements Action.
func (IssueClientCertificates) After(s *situation.Situation) {
	s.Observed.Certificates.Clients = nil
	if i := s.Observed.Certificates.Issuers; i != nil {
		i.Clients = nil
	}
}

// Undo implements Action.
func (IssueClientCertificates) Undo(*situation.Situation) Undo {
	return harmless("members accept the certificates before and after, until each expires")
}

// ApplyObject makes one Kubernetes object what quorate wants.
type ApplyObject struct{ ObjectKind, Name string }

func (ApplyObject) isAction() {}

// Kind implements Action.
func (ApplyObject) Kind() string { return "ApplyObject" }

// String implements Action.
func (a ApplyObject) String() string { return fmt.Sprintf("apply %s %s", a.ObjectKind, a.Name) }

// Disruptive implements Action: no member stops.
func (ApplyObject) Disruptive() bool { return false }

// After implements Action.
func (a ApplyObject) After(s *situation.Situation) { applied(s, a.ObjectKind, a.Name) }

// applied has an object be what quorate wants of it.
func applied(s *situation.Situation, kind, name string) {
	for i := range s.Observed.Objects {
		if s.Observed.Objects[i].Kind == kind && s.Observed.Objects[i].Name == name {
			s.Observed.Objects[i].State = state.ObjectInSync
		}
	}
}

// Undo implements Action.
func (ApplyObject) Undo(s *situation.Situation) Undo {
	if s.Formed() {
		return anytime("")
	}
	return undoMade(s)
}

// CreateSet creates the StatefulSet, and with it the members' pods.
type CreateSet struct{ Replicas int32 }

func (CreateSet) isAction() {}

// Kind implements Action.
func (CreateSet) Kind() string { return "CreateSet" }

// String implements Action.
func (a CreateSet) String() string {
	if a.Replicas == 0 {
		return "create the StatefulSet, without members"
	}
	return "create " + state.Plural(int(a.Replicas), "member")
}

// Disruptive implements Action: no member stops.
func (CreateSet) Disruptive() bool { return false }

// After implements Action.
func (a CreateSet) After(s *situation.Situation) {
	s.Observed.Set = &state.Set{
		UID: outlook.AssumedCluster, Replicas: a.Replicas, Partition: a.Replicas, Template: s.Desired.Template, Version: s.Desired.Spec.Version,
		CurrentTemplate: s.Desired.Template, CurrentVersion: s.Desired.Spec.Version, Settled: true,
		ClaimSize: s.WantedSize(), ClaimClass: state.StorageClass(s.Desired.Spec.Storage),
	}
	outlook.Settle(s)
}

// Undo implements Action.
func (CreateSet) Undo(s *situation.Situation) Undo {
	if !s.Formed() {
		return final("a cluster whose file is gone is left running")
	}
	return undoMade(s)
}

// RecordFormed records the IDs of a cluster that has just formed.
type RecordFormed struct {
	ClusterID string
	Members   map[string]string
	// BornOn is the minor of the oldest member, such as "3.6".
	BornOn string
}

func (RecordFormed) isAction() {}

// Kind implements Action.
func (RecordFormed) Kind() string { return "RecordFormed" }

// String implements Action.
func (a RecordFormed) String() string { return "record cluster " + a.ClusterID }

// Disruptive implements Action: no member stops.
func (RecordFormed) Disruptive() bool { return false }

// After implements Action.
func (a RecordFormed) After(s *situation.Situation) {
	s.Observed.Record.ClusterID, s.Observed.Record.Members, s.Observed.Record.BornOn = a.ClusterID, maps.Clone(a.Members), a.BornOn
}

// Undo implements Action.
func (RecordFormed) Undo(*situation.Situation) Undo { return onlyNotes() }

// RecordApplied records that the spec has been applied completely.
type RecordApplied struct {
	SpecHash string
	// Settings is a hash of the part of the spec that makes the members what they
	// are.
	Settings        string
	Version, Commit string
}

func (RecordApplied) isAction() {}

// Kind implements Action.
func (RecordApplied) Kind() string { return "RecordApplied" }

// String implements Action.
func (a RecordApplied) String() string { return "record that " + a.Version + " is applied" }

// Disruptive implements Action: no member stops.
func (RecordApplied) Disruptive() bool { return false }

// After implements Action.
func (a RecordApplied) After(s *situation.Situation) {
	s.Observed.Record.Applied = &state.Applied{SpecHash: a.SpecHash, Settings: a.Settings, Version: a.Version, Commit: a.Commit}
	s.Observed.Record.Downgrade, s.Observed.Record.Forced = nil, nil
	if ReadsLogs(a.Version) {
		s.Observed.Record.Flushed = maps.Clone(s.Observed.Record.Members)
	}
}

// Undo implements Action.
func (RecordApplied) Undo(*situation.Situation) Undo { return onlyNotes() }
