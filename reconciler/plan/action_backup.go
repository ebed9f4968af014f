package plan

// TakeBackup stores and verifies a snapshot of the cluster.
type TakeBackup struct {
	// Member to read from, and its ID.
	Member, MemberID string
	ClusterID        string
	// For is what the backup is taken for: the version that an upgrade goes to,
	// or a few words such as "hibernation". What rests on a backup wants one
	// that was taken for it.
	For string
	// Why is the same for people, for the backup's manifest.
	Why string
}

func (TakeBackup) isAction() {}

// String implements Action.
func (a TakeBackup) String() string { return "back up through " + a.Member }

// Disruptive implements Action: no member stops.
func (TakeBackup) Disruptive() bool { return false }

// after implements Action.
func (a TakeBackup) after(s *situation) {
	s.o.Record.Backup = &Backup{ClusterID: a.ClusterID, For: a.For, Time: s.now}
}

// undo implements Action.
func (TakeBackup) undo(*situation) string { return harmless + ": a backup only reads" }
