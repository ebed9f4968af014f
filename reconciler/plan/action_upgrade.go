package plan

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/schema/release"
)

// Nudge adds entries to the members' log that touch no key, and writes down
// before how often each of them has saved its state so far.
type Nudge struct {
	// Member that is asked, and its ID.
	Member, MemberID string
	// Template that every pod has.
	Template string
}

func (Nudge) isAction() {}

// String implements Action.
func (Nudge) String() string { return "add to the log" }

// Disruptive implements Action: no member stops.
func (Nudge) Disruptive() bool { return false }

// after implements Action.
func (a Nudge) after(s *situation) {
	s.o.Record.Nudged = &Nudged{Template: a.Template, Since: s.now, Time: s.now, Before: map[string]int64{}}
	for name := range s.o.Record.Members {
		s.o.Record.Nudged.Before[name] = 0
	}
	s.settle()
	for i := range s.o.Rounds {
		for j := range s.o.Rounds[i].Members {
			s.o.Rounds[i].Members[j].Snapshots = 1
		}
	}
}

// undo implements Action.
func (Nudge) undo(*situation) string { return harmless + ": no key is touched" }

// RecordFlushed writes down that no member's log holds anything that the next
// minor cannot read.
type RecordFlushed struct{ Members map[string]string }

func (RecordFlushed) isAction() {}

// String implements Action.
func (RecordFlushed) String() string { return "record that every member has saved its state" }

// Disruptive implements Action: no member stops.
func (RecordFlushed) Disruptive() bool { return false }

// after implements Action.
func (a RecordFlushed) after(s *situation) {
	s.o.Record.Flushed, s.o.Record.Nudged = maps.Clone(a.Members), nil
}

// undo implements Action.
func (RecordFlushed) undo(*situation) string { return onlyNotes }

// EnableDowngrade tells the cluster, through etcd's downgrade API, that it goes
// to the minor below. The cluster version goes down at once, the members bring
// their storage down, and none of them stops.
type EnableDowngrade struct {
	// Member that is asked, and its ID.
	Member, MemberID string
	// From and To are lines, such as "3.7" and "3.6".
	From, To string
	// Backup is what the backup was taken for that this rests on; "" for none.
	Backup string
}

func (EnableDowngrade) isAction() {}

// String implements Action.
func (a EnableDowngrade) String() string { return "enable the downgrade " + change(a.From, a.To) }

// Disruptive implements Action: no member stops.
func (EnableDowngrade) Disruptive() bool { return false }

// after implements Action.
func (a EnableDowngrade) after(s *situation) {
	s.o.Record.Downgrade = &Downgrade{Line: a.To, Since: s.now}
	s.o.Record.BornOn, s.o.Record.Flushed = LogsAfter(s.o.Record.BornOn, s.o.Record.Members, a.From, a.To)
	for i := range s.o.Rounds {
		r := &s.o.Rounds[i]
		r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, a.To, a.To+".0"
	}
	s.settle()
}

// undo implements Action.
func (EnableDowngrade) undo(s *situation) string {
	return until + s.d.Spec.Version + ": that cancels the downgrade; after it the revert is an upgrade"
}

// CancelDowngrade tells the cluster that it does not go down after all.
type CancelDowngrade struct {
	// Member that is asked, and its ID.
	Member, MemberID string
	// Line is where the downgrade goes to.
	Line string
}

func (CancelDowngrade) isAction() {}

// String implements Action.
func (a CancelDowngrade) String() string { return "cancel the downgrade to " + a.Line }

// Disruptive implements Action: no member stops.
func (CancelDowngrade) Disruptive() bool { return false }

// after implements Action.
func (CancelDowngrade) after(s *situation) {
	s.o.Record.Downgrade = nil
	for i := range s.o.Rounds {
		s.o.Rounds[i].Downgrading, s.o.Rounds[i].DowngradeTarget = false, ""
	}
	s.settle()
}

// undo implements Action.
func (CancelDowngrade) undo(*situation) string { return anytime }

// LogsAfter is what is known of the members' logs once a cluster goes down from
// one line to another: the lowest line that it has run, and the members whose logs
// hold nothing that is too old. A minor that would have panicked at such an entry
// has seen that there is none; the older minor may write new ones.
func LogsAfter(bornOn string, members map[string]string, from, to string) (string, map[string]string) {
	if bornOn != "" && older(to, bornOn) {
		bornOn = to
	}
	if oldest := oldestLog(from + ".0"); oldest != "" && !older(to, oldest) {
		return bornOn, maps.Clone(members)
	}
	return bornOn, nil
}

// ReadsLogs says whether a member that runs a version has seen, when it started,
// that its log holds nothing that the version's minor cannot read.
func ReadsLogs(version string) bool { return oldestLog(version) != "" }

// oldestLog is the oldest line whose log a version reads, or "" for any.
func oldestLog(version string) string {
	v, err := release.Parse(version)
	if err != nil {
		return ""
	}
	line, _ := release.OldestLog(v)
	return line
}

// descent keeps, in a forecast, a downgrade that is not over: it ends by itself
// when every member runs the line that it goes to.
func (s *situation) descent(r *Round) {
	last := s.o.round()
	if last == nil || !last.Downgrading {
		return
	}
	target := last.DowngradeTarget
	if !slices.ContainsFunc(r.Members, func(m Member) bool { return line(m.Version) != target }) {
		return
	}
	r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, target, target+".0"
	for i := range r.Members {
		r.Members[i].StorageVersion = target + ".0"
	}
}
