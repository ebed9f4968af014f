package plan

import (
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// backup lets no upgrade begin without a verified backup of this cluster, taken
// for this target. A failure blocks for ever: only a commit can say otherwise.
func backup(s *situation.Situation) verdict.Verdict {
	if !s.NeedsBackup() || s.HasBackup() {
		return verdict.Pass()
	}
	way, noun := action.Change(s.FromVersion(), s.Desired.Spec.Version), "upgrade"
	if s.GoesDown() || s.Descending() {
		noun = "downgrade"
	}
	return onCompared(s, takeBackup(s, backupNeed{
		what: "the " + noun, setting: "spec.upgrade.backup", purpose: s.Purpose(), why: noun + " " + way,
		reason: "before " + way + ", so that there is a way back that does not depend on the members",
	}))
}

// backupNeed returns what a backup is wanted for.
type backupNeed struct {
	// avoid is a member whose data is not to be trusted; empty for none.
	avoid string
	// what needs it, as the subject of a sentence, and the setting that lets it
	// go without.
	what, setting string
	// purpose and why are TakeBackup's For and Why, reason is the step's.
	purpose     state.Purpose
	why, reason string
}

// backupFirst takes a backup unless the policy goes without, or one for that
// purpose was taken a moment ago.
func backupFirst(s *situation.Situation, policy schema.BackupPolicy, w backupNeed) verdict.Verdict {
	if b := situation.BackupFor(s, w.purpose); policy == schema.BackupSkip || (b != nil && s.Now.Sub(b.Time) <= situation.BackupFresh) {
		return verdict.Pass()
	}
	return takeBackup(s, w)
}

// takeBackup takes a backup through the leader.
func takeBackup(s *situation.Situation, w backupNeed) verdict.Verdict {
	if s.Desired.BackupURL == "" {
		return verdict.Refuse(w.what+" needs a backup first, and no place for it is set",
			"set spec.backup.destination.objectURLTemplate (or the daemon's --backup-url), or "+w.setting+": Skip to go without")
	}
	m := s.BackupMember(w.avoid)
	switch {
	case m == nil && s.Observed.Record.Hibernated:
		return verdict.Refuse(w.what+" needs a backup first, and members that sleep give none",
			"set spec.state: Running to wake them for it, or "+w.setting+": Skip to go without")
	case m == nil:
		return verdict.Refuse(w.what+" needs a backup first, and no member can give one", "revert the commit to go back to where the cluster was")
	}
	return verdict.Do(action.TakeBackup{
		Member: m.Name, MemberID: m.ID, ClusterID: s.Observed.Record.ClusterID, For: w.purpose, Why: w.why,
	}, w.reason).Otherwise(w.setting + ": Skip lets " + w.what + " go on without it")
}
