package plan

import (
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
	way, noun := change(s.from(), s.d.Spec.Version), "upgrade"
	if s.goesDown() || s.descending() {
		noun = "downgrade"
	}
	return s.takeBackup(backupWish{
		what: "the " + noun, setting: "spec.upgrade.backup", purpose: s.purpose(), why: noun + " " + way,
		reason: "before " + way + ", so that there is a way back that does not depend on the members",
	})
}

// purpose is what the backup of this roll is taken for. One from before an upgrade
// to a release is none from before a downgrade to it.
func (s *situation) purpose() string {
	if s.goesDown() || s.descending() {
		return DowngradeTo(s.d.Spec.Version)
	}
	return s.d.Spec.Version
}

// DowngradeTo is what a backup before a downgrade to a version is taken for.
func DowngradeTo(version string) string { return "downgrade to " + version }

// backupWish says what a backup is wanted for.
type backupWish struct {
	// avoid is a member whose data is not to be trusted; empty for none.
	avoid string
	// what needs it, as the subject of a sentence, and the setting that lets it
	// go without.
	what, setting string
	// purpose and why are TakeBackup's For and Why, reason is the step's.
	purpose, why, reason string
}

// backupFirst takes a backup unless the policy goes without, or one for that
// purpose was taken a moment ago.
func (s *situation) backupFirst(policy schema.BackupPolicy, w backupWish) verdict {
	if policy == schema.BackupSkip || (s.backedUpFor(w.purpose) && s.now.Sub(s.o.Record.Backup.Time) <= backupFresh) {
		return pass()
	}
	return s.takeBackup(w)
}

// takeBackup takes a backup through the leader.
func (s *situation) takeBackup(w backupWish) verdict {
	if s.d.BackupURL == "" {
		return refuse(w.what+" needs a backup first, and nothing says where to put it",
			"set spec.backup.destination.objectURLTemplate (or the daemon's --backup-url), or "+w.setting+": Skip to go without")
	}
	m := s.source(w.avoid)
	switch {
	case m == nil && s.formed() && s.o.Record.Hibernated:
		return refuse(w.what+" needs a backup first, and members that sleep give none",
			"set spec.state: Running to wake them for it, or "+w.setting+": Skip to go without")
	case m == nil:
		return refuse(w.what+" needs a backup first, and no member can give one", "revert the commit to go back to where the cluster was")
	}
	return do(TakeBackup{
		Member: m.Name, MemberID: m.ID, ClusterID: s.o.Record.ClusterID, For: w.purpose, Why: w.why,
	}, w.reason)
}

// needsBackup says whether this roll is a change of version that must have one.
// Giving a roll up goes back to what was there: its backup has been taken. Where
// the cluster version has moved meanwhile, going back is a downgrade like any.
func (s *situation) needsBackup() bool {
	back := s.rollback() && !s.goesDown() && !s.descending()
	return s.rolling() && s.versioned() && !back && s.d.Spec.Upgrade.Backup != schema.BackupSkip
}

// hasBackup says whether the recorded backup is the one that this roll needs. It
// may be older once the roll has begun: a way down begins when etcd is told of it,
// whatever template an earlier try has left behind.
func (s *situation) hasBackup() bool {
	begun := s.descending() || (s.started() && !s.goesDown())
	return (s.backedUp() && (begun || s.now.Sub(s.o.Record.Backup.Time) <= backupFresh)) || s.endedEarly()
}

// endedEarly says whether etcd has ended the downgrade that this roll is, before
// its last member went down: a leader of etcd 3.5 does, as it looks at the cluster
// version where it should look at what every member runs (isMatchedVersions of
// etcdserver/cluster_util.go). The roll goes on, and its backup is the same.
func (s *situation) endedEarly() bool {
	d := s.o.Record.Downgrade
	return s.started() && !s.goesDown() && d != nil && d.Line == s.wanted().Line() && s.backedUpFor(DowngradeTo(s.d.Spec.Version))
}

// backedUp says whether a backup of this cluster was taken for this target,
// however long ago.
func (s *situation) backedUp() bool { return s.backedUpFor(s.purpose()) }

// backedUpFor says whether the recorded backup is of this cluster and was taken
// for that purpose, however long ago.
func (s *situation) backedUpFor(purpose string) bool {
	b := s.o.Record.Backup
	return b != nil && b.ClusterID == s.o.Record.ClusterID && b.For == purpose
}

// source is the member that a backup is taken from: the leader, or another one
// that answers where the leader is the one to avoid. Nil when there is none.
func (s *situation) source(avoid string) *Member {
	l := s.o.round().leader()
	if l == nil || l.Name != avoid {
		return l
	}
	return s.find(func(m Member) bool { return m.Name != avoid && m.Problem == "" && !m.Learner && m.Name != "" })
}
