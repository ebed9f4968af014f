package action

import (
	"maps"

	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// ForceSnapshot adds entries to the members' log that touch no key, and records
// before how often each of them has saved its state so far.
type ForceSnapshot struct {
	// Member that is asked, and its ID.
	Member, MemberID string
	// Template that every pod has.
	Template string
}

func (ForceSnapshot) isAction() {}

// Kind implements Action.
func (ForceSnapshot) Kind() string { return "Nudge" }

// String implements Action.
func (ForceSnapshot) String() string { return "add to the log" }

// Disruptive implements Action: no member stops.
func (ForceSnapshot) Disruptive() bool { return false }

// After implements Action.
func (a ForceSnapshot) After(s *situation.Situation) {
	s.Observed.Record.Forced = &state.ForcedSnapshot{Template: a.Template, Since: s.Now, Time: s.Now, Before: map[string]int64{}}
	for name := range s.Observed.Record.Members {
		s.Observed.Record.Forced.Before[name] = 0
	}
	outlook.Settle(s)
	for i := range s.Observed.Rounds {
		for j := range s.Observed.Rounds[i].Members {
			s.Observed.Rounds[i].Members[j].Snapshots = 1
		}
	}
}

// Undo implements Action.
func (ForceSnapshot) Undo(*situation.Situation) Undo { return harmless("no key is touched") }

// RecordFlushed records of which members the log holds nothing that the next minor cannot
// read: of all, or of none.
type RecordFlushed struct {
	// Members are their IDs by name.
	Members map[string]string
	// BornOn is the lowest minor that the cluster has run, such as "3.5"; "" for unknown.
	BornOn string
}

func (RecordFlushed) isAction() {}

// Kind implements Action.
func (RecordFlushed) Kind() string { return "RecordFlushed" }

// String implements Action.
func (a RecordFlushed) String() string {
	if len(a.Members) == 0 {
		return "record that the members' logs hold entries of " + a.BornOn
	}
	return "record that every member has saved its state"
}

// Disruptive implements Action: no member stops.
func (RecordFlushed) Disruptive() bool { return false }

// After implements Action.
func (a RecordFlushed) After(s *situation.Situation) {
	s.Observed.Record.BornOn, s.Observed.Record.Flushed, s.Observed.Record.Forced = a.BornOn, maps.Clone(a.Members), nil
}

// Undo implements Action.
func (RecordFlushed) Undo(*situation.Situation) Undo { return onlyNotes() }

// EnableDowngrade tells the cluster, through etcd's downgrade API, that it goes
// to the minor below. The cluster version goes down at once, the members bring
// their storage down, and none of them stops.
type EnableDowngrade struct {
	// Member that is asked, and its ID.
	Member, MemberID string
	// From and To are minors, such as "3.7" and "3.6".
	From, To string
	// Backup is what the backup was taken for that this rests on; "" for none.
	Backup state.Purpose
}

func (EnableDowngrade) isAction() {}

// Kind implements Action.
func (EnableDowngrade) Kind() string { return "EnableDowngrade" }

// String implements Action.
func (a EnableDowngrade) String() string { return "enable the downgrade " + Change(a.From, a.To) }

// Disruptive implements Action: no member stops.
func (EnableDowngrade) Disruptive() bool { return false }

// After implements Action.
func (a EnableDowngrade) After(s *situation.Situation) {
	s.Observed.Record.Downgrade = &state.Downgrade{Minor: a.To, Since: s.Now}
	s.Observed.Record.BornOn, s.Observed.Record.Flushed = LogsAfter(s.Observed.Record.BornOn, s.Observed.Record.Members, a.From, a.To)
	for i := range s.Observed.Rounds {
		r := &s.Observed.Rounds[i]
		r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, a.To, a.To+".0"
	}
	outlook.Settle(s)
}

// Undo implements Action.
func (EnableDowngrade) Undo(s *situation.Situation) Undo {
	return untilLast(s.Desired.Spec.Version, ": that cancels the downgrade; after it the revert is an upgrade")
}

// CancelDowngrade tells the cluster that it does not go down after all.
type CancelDowngrade struct {
	// Member that is asked, and its ID.
	Member, MemberID string
	// Minor is where the downgrade goes to.
	Minor string
}

func (CancelDowngrade) isAction() {}

// Kind implements Action.
func (CancelDowngrade) Kind() string { return "CancelDowngrade" }

// String implements Action.
func (a CancelDowngrade) String() string { return "cancel the downgrade to " + a.Minor }

// Disruptive implements Action: no member stops.
func (CancelDowngrade) Disruptive() bool { return false }

// After implements Action.
func (CancelDowngrade) After(s *situation.Situation) {
	s.Observed.Record.Downgrade = nil
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Downgrading, s.Observed.Rounds[i].DowngradeTarget = false, ""
	}
	outlook.Settle(s)
}

// Undo implements Action.
func (CancelDowngrade) Undo(*situation.Situation) Undo { return anytime("") }

// LogsAfter is what is known of the members' logs once a cluster goes down from
// one minor to another: the lowest that it has run, and the members whose logs
// hold nothing that is too old. A minor that would have panicked at such an entry
// has seen that there is none; the older minor may write new ones.
func LogsAfter(bornOn string, members map[string]string, from, to string) (string, map[string]string) {
	if bornOn != "" && state.Older(to, bornOn) {
		bornOn = to
	}
	if oldest := oldestLog(from + ".0"); oldest != "" && !state.Older(to, oldest) {
		return bornOn, maps.Clone(members)
	}
	return bornOn, nil
}

// ReadsLogs reports whether a member that runs a version has seen, when it started,
// that its log holds nothing that the version's minor cannot read.
func ReadsLogs(version string) bool { return oldestLog(version) != "" }

// oldestLog is the oldest minor whose log a version reads, or "" for any.
func oldestLog(version string) string {
	v, err := release.Parse(version)
	if err != nil {
		return ""
	}
	minor, _ := release.OldestLog(v)
	return minor
}
