package situation

import (
	"time"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// BackupFresh is how old a backup may be when the upgrade that it was taken for
// begins.
const BackupFresh = 15 * time.Minute

// Purpose is what the backup of this roll is taken for. One from before an upgrade
// to a release is none from before a downgrade to it.
func (s *Situation) Purpose() state.Purpose {
	if s.GoesDown() || s.Descending() {
		return state.ForDowngrade(s.Desired.Spec.Version)
	}
	return state.ForUpgrade(s.Desired.Spec.Version)
}

// NeedsBackup reports whether this roll is a change of version that must have one.
// Giving a roll up goes back to what was there: its backup has been taken. Where
// the cluster version has moved meanwhile, going back is a downgrade like any.
func (s *Situation) NeedsBackup() bool {
	back := s.GivingUp() && !s.GoesDown() && !s.Descending()
	return s.Rolling() && s.Versioned() && !back && s.Desired.Spec.Upgrade.Backup != schema.BackupSkip
}

// HasBackup reports whether a recorded backup is the one that this roll needs. It
// may be older once the roll has begun: a downgrade begins when it is enabled in etcd,
// whatever template an earlier try has left behind.
func (s *Situation) HasBackup() bool {
	begun := s.Descending() || (s.Started() && !s.GoesDown())
	b := BackupFor(s, s.Purpose())
	return (b != nil && (begun || s.Now.Sub(b.Time) <= BackupFresh)) || s.endedEarly()
}

// endedEarly reports whether etcd has ended the downgrade that this roll is, before
// its last member went down: a leader of etcd 3.5 does, as it reads the cluster
// version where it should read what every member runs (isMatchedVersions of
// etcdserver/cluster_util.go). The roll continues, and its backup is the same.
func (s *Situation) endedEarly() bool {
	d := s.Observed.Record.Downgrade
	return s.Started() && !s.GoesDown() && d != nil && d.Minor == s.WantedVersion().Line() && BackupFor(s, state.ForDowngrade(s.Desired.Spec.Version)) != nil
}

// BackupFor is the recorded backup of this cluster that was taken for a purpose, however
// long ago; nil for none.
func BackupFor(s *Situation, purpose state.Purpose) *state.Backup {
	r := s.Observed.Record
	for _, b := range []*state.Backup{r.Backup, r.RollBackup} {
		if b != nil && b.ClusterID == r.ClusterID && b.For == purpose {
			return b
		}
	}
	return nil
}

// BackupMember is the member that a backup is taken from: the leader, or another one
// that answers where the leader is the one to avoid. Nil when there is none.
func (s *Situation) BackupMember(avoid string) *state.Member {
	l := s.Observed.Round().Leader()
	if l == nil || l.Name != avoid {
		return l
	}
	return s.FindMember(func(m state.Member) bool { return m.Name != avoid && m.Problem == "" && !m.Learner && m.Name != "" })
}
