package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// nudgeAgain is how long a member has to save its state before more is added to
// the log.
const nudgeAgain = 5 * time.Second

// flush sees to it, at a stop that is there for that, that every member saves its
// state beside its log: what the log holds from before is then never read again.
// Saved counts what a member says of itself, after entries that came when every
// member ran the release of the stop with the flag for it.
func flush(s *situation) verdict {
	if !s.formed() || !s.stop().Flush || s.rolling() || s.o.Set.CurrentTemplate != s.d.Template {
		return pass()
	}
	n := s.o.Record.Nudged
	if n == nil || n.Template != s.d.Template {
		return s.nudge("every member runs with snapshot-count=1; a few entries that touch no key have each of them save its state beside its log")
	}
	waiting := s.unsaved(n)
	switch {
	case waiting == "":
		return do(RecordFlushed{Members: maps.Clone(s.o.Record.Members)},
			"every member has saved its state beside its log since; what 3.5 may have written there is never read again")
	case s.now.Sub(n.Time) >= nudgeAgain:
		return s.nudge(waiting + " has not saved its state beside its log since the last entries; a few more are added")
	}
	v := wait(waiting+" saves its state beside its log, which takes a moment", n.Since)
	if s.now.Sub(n.Since) > comeback {
		v.hold.Do = "look at the log of " + waiting + ": it does not save snapshots; nothing goes to the next minor before that"
	}
	return v
}

// nudge adds entries to the log.
func (s *situation) nudge(reason string) verdict {
	l := s.o.round().leader()
	if l == nil {
		return unhealthy("there is no leader to add entries to the log", "")
	}
	return do(Nudge{Member: l.Name, MemberID: l.ID, Template: s.d.Template}, reason)
}

// unsaved is the first member that has not saved its state since the last nudge,
// or "". One that has started anew counts from nothing, and is nudged again.
func (s *situation) unsaved(n *Nudged) string {
	for _, name := range slices.Sorted(maps.Keys(s.o.Record.Members)) {
		m := s.o.round().member(name)
		before, known := n.Before[name]
		if m == nil || m.Problem != "" || !known || m.Snapshots <= before {
			return name
		}
	}
	return ""
}

// flushReason is why a roll that changes no version is needed before the next
// minor.
func (s *situation) flushReason() string {
	return fmt.Sprintf("before %s: the logs may hold entries of 3.5, at which 3.7 panics, so each member first saves its state beside its log (snapshot-count=1)",
		s.stops[1].Version)
}
