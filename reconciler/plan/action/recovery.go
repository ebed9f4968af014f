package action

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// BeginRecovery records what a lost cluster is recovered from, and the identity
// that it will have, before anything is touched. A backup is read and checked
// first.
type BeginRecovery struct {
	// OneShot is what Git asks for, ClusterID the lost cluster.
	OneShot, ClusterID string
	// Member is the first member of the recovered cluster: the survivor, or for a
	// backup the one whose volume takes it. MemberID is its lost ID.
	Member, MemberID string
	// ObjectURL of the backup; empty for the survivor's own data.
	ObjectURL string
	// Revision that the survivor is at; 0 for a backup, which has it itself.
	Revision int64
	// Version that the members' pods will run.
	Version string
}

func (BeginRecovery) isAction() {}

// Kind implements Action.
func (BeginRecovery) Kind() string { return "BeginRecovery" }

// String implements Action.
func (a BeginRecovery) String() string {
	return fmt.Sprintf("begin to recover cluster %s from %s", a.ClusterID, recoverySource(a.Member, a.ObjectURL))
}

// Disruptive implements Action: a cluster without a quorum does not serve.
func (BeginRecovery) Disruptive() bool { return false }

// After implements Action.
func (a BeginRecovery) After(s *situation.Situation) {
	s.Observed.Record.Recovering = &state.Recovering{
		OneShot: a.OneShot, ClusterID: a.ClusterID, Member: a.Member, ObjectURL: a.ObjectURL, Revision: a.Revision,
		NewClusterID: "(new)", NewMemberID: "(new " + a.Member + ")", Since: s.Now,
	}
	s.Observed.Record.Joining, s.Observed.Record.Leaving, s.Observed.Record.Replacing, s.Observed.Record.FailedJoin = nil, nil, "", nil
}

// Undo implements Action.
func (BeginRecovery) Undo(*situation.Situation) Undo {
	return final("what only the lost members had is given up; their volumes are kept")
}

// RestoreVolume has a separate pod make the volume of the first member that of
// the recovered cluster. What was on it is kept beside the new data.
type RestoreVolume struct {
	Member string
	// Claim of its volume, and the claim's UID.
	Claim, ClaimUID string
	ClusterID       string
	// AcceptHashMismatch is the sha256 of the backup where Git says that it is restored
	// although etcd said another hash of its keys.
	AcceptHashMismatch string
}

func (RestoreVolume) isAction() {}

// Kind implements Action.
func (RestoreVolume) Kind() string { return "RestoreVolume" }

// String implements Action.
func (a RestoreVolume) String() string {
	if a.AcceptHashMismatch != "" {
		return "restore the volume of " + a.Member + ", whatever etcd said of the keys in the backup"
	}
	return "restore the volume of " + a.Member
}

// Disruptive implements Action: no member runs.
func (RestoreVolume) Disruptive() bool { return false }

// After implements Action.
func (RestoreVolume) After(s *situation.Situation) {
	s.Observed.Restore = state.Restore{State: state.RestoreDone}
}

// Undo implements Action.
func (RestoreVolume) Undo(*situation.Situation) Undo { return BeginRecovery{}.Undo(nil) }

// AdoptRecovery records the identity of the recovered cluster: from now on
// only its first member may start, and the others join it.
type AdoptRecovery struct{ From, ClusterID, Member, MemberID string }

func (AdoptRecovery) isAction() {}

// Kind implements Action.
func (AdoptRecovery) Kind() string { return "AdoptRecovery" }

// String implements Action.
func (a AdoptRecovery) String() string {
	if a.From == "" {
		return "record that the restored cluster is " + a.ClusterID
	}
	return fmt.Sprintf("record that cluster %s continues as %s", a.From, a.ClusterID)
}

// Disruptive implements Action: no member runs.
func (AdoptRecovery) Disruptive() bool { return false }

// After implements Action.
func (a AdoptRecovery) After(s *situation.Situation) {
	r := s.Observed.Record
	r.Kept = nil
	if a.From != "" {
		r.Kept = map[string]bool{}
	}
	s.Observed.Volumes = slices.Clone(s.Observed.Volumes)
	for i := range s.Observed.Volumes {
		if v := &s.Observed.Volumes[i]; r.Members[v.Member] != "" {
			v.Keeps = a.From
		}
	}
	for name := range r.Members {
		if name != a.Member {
			r.Kept[name] = true
		}
	}
	r.ClusterID, r.Members, r.Retired = a.ClusterID, map[string]string{a.Member: a.MemberID}, nil
}

// Undo implements Action.
func (AdoptRecovery) Undo(*situation.Situation) Undo { return BeginRecovery{}.Undo(nil) }

// EndRecovery records that a recovery is over, so that it never happens again;
// of a restore, whose ClusterID is empty, that the first member is what it should be.
type EndRecovery struct{ OneShot, ClusterID string }

func (EndRecovery) isAction() {}

// Kind implements Action.
func (EndRecovery) Kind() string { return "EndRecovery" }

// String implements Action.
func (a EndRecovery) String() string {
	if a.ClusterID == "" {
		return "record that the first member of the restored cluster is well"
	}
	return "record that cluster " + a.ClusterID + " was recovered"
}

// Disruptive implements Action: no member stops.
func (EndRecovery) Disruptive() bool { return false }

// After implements Action.
func (a EndRecovery) After(s *situation.Situation) {
	if a.ClusterID != "" {
		s.Observed.Record.Recovered = append(slices.Clip(s.Observed.Record.Recovered), state.Recovered{OneShot: a.OneShot, ClusterID: a.ClusterID, At: s.Now})
	}
	s.Observed.Record.Recovering = nil
}

// Undo implements Action.
func (EndRecovery) Undo(*situation.Situation) Undo { return onlyNotes() }

// RefuseRecovery records that a recovery stood in Git while the cluster had a quorum, or,
// without one, that none is there any more. One that has begun is taken back.
type RefuseRecovery struct{ OneShot string }

func (RefuseRecovery) isAction() {}

// Kind implements Action.
func (RefuseRecovery) Kind() string { return "RefuseRecovery" }

// String implements Action.
func (a RefuseRecovery) String() string {
	if a.OneShot == "" {
		return "forget the refused recovery"
	}
	return "refuse the recovery of " + a.OneShot
}

// Disruptive implements Action: no member stops.
func (RefuseRecovery) Disruptive() bool { return false }

// After implements Action.
func (a RefuseRecovery) After(s *situation.Situation) {
	s.Observed.Record.RefusedRecovery = a.OneShot
	if g := s.Observed.Record.Recovering; g != nil && g.OneShot == a.OneShot {
		s.Observed.Record.Recovering = nil
	}
}

// Undo implements Action.
func (RefuseRecovery) Undo(*situation.Situation) Undo { return onlyNotes() }

// recoverySource describes what a cluster is recovered from.
func recoverySource(member, objectURL string) string {
	if objectURL != "" {
		return "a backup, on the volume of " + member
	}
	return "what " + member + " has"
}
