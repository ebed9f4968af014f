package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
)

// backupFresh is how old a backup may be when the upgrade that it was taken for
// begins.
const backupFresh = 15 * time.Minute

// backup lets no upgrade begin without a verified backup of this cluster, taken
// for this target. A failure blocks for ever: only a commit can say otherwise.
func backup(s *situation) verdict {
	if !s.needsBackup() || s.hasBackup() {
		return pass()
	}
	if s.d.BackupURL == "" {
		return refuse("the upgrade needs a backup first, and nothing says where to put it",
			"set spec.backup.destination.objectURLTemplate (or the daemon's --backup-url), or spec.upgrade.backup: Skip to go without")
	}
	m := s.o.round().leader()
	if m == nil {
		return refuse("the upgrade needs a backup first, and no member can give one", "revert the commit to go back to where the cluster was")
	}
	return do(TakeBackup{
		Member: m.Name, MemberID: m.ID, ClusterID: s.o.Record.ClusterID,
		From: s.from(), Target: s.d.Spec.Version,
	}, fmt.Sprintf("before %s, so that there is a way back that does not depend on the members", change(s.from(), s.d.Spec.Version)))
}

// needsBackup says whether this roll is an upgrade that must have one. Giving a
// roll up goes back to what was there: its backup has been taken.
func (s *situation) needsBackup() bool {
	return s.rolling() && s.versioned() && !s.rollback() && s.d.Spec.Upgrade.Backup != schema.BackupSkip
}

// hasBackup says whether the recorded backup is the one that this roll needs.
func (s *situation) hasBackup() bool {
	return s.backedUp() && (s.started() || s.now.Sub(s.o.Record.Backup.Time) <= backupFresh)
}

// backedUp says whether a backup of this cluster was taken for this target,
// however long ago.
func (s *situation) backedUp() bool {
	b := s.o.Record.Backup
	return b != nil && b.ClusterID == s.o.Record.ClusterID && b.Target == s.d.Spec.Version
}
