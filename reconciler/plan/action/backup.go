package action

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// TakeBackup stores and verifies a snapshot of the cluster.
type TakeBackup struct {
	// Member to read from, and its ID.
	Member, MemberID string
	ClusterID        string
	For              state.Purpose
	// Why is the same for people, for the backup's manifest.
	Why string
}

func (TakeBackup) isAction() {}

// Kind implements Action.
func (TakeBackup) Kind() string { return "TakeBackup" }

// String implements Action.
func (a TakeBackup) String() string { return "back up through " + a.Member }

// Disruptive implements Action: no member stops.
func (TakeBackup) Disruptive() bool { return false }

// After implements Action.
func (a TakeBackup) After(s *situation.Situation) {
	s.Observed.Record.NoteBackup(state.Backup{ClusterID: a.ClusterID, For: a.For, Time: s.Now})
}

// Undo implements Action.
func (TakeBackup) Undo(*situation.Situation) Undo { return harmless("a backup only reads") }
