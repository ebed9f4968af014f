package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Compact drops all history of the keys before a revision, on disk, too. The
// newest value of every key stays.
type Compact struct {
	// Member to ask, and its ID.
	Member, ID string
	// Revision from which on history is kept.
	Revision int64
}

func (Compact) isAction() {}

// String implements Action. The revision is left out: writers move it on, and it
// is the same step still.
func (Compact) String() string { return "compact the history" }

// Disruptive implements Action: no member stops.
func (Compact) Disruptive() bool { return false }

// after implements Action. How much room it makes nobody knows before: half of
// what is there is assumed.
func (a Compact) after(s *situation) {
	s.eachMember(func(m *Member) { m.CompactRevision, m.DBInUse = a.Revision, m.DBInUse/2 })
	s.o.Record.Compacted = &Compacted{Revision: a.Revision, At: s.now}
}

// undo implements Action.
func (Compact) undo(s *situation) string {
	if s.backedUpFor(forCompaction) {
		return final + ": old revisions are gone from the cluster; the backup that was taken before has them"
	}
	return final + ": old revisions are gone"
}

// Defragment writes the database of one member anew, without the room that it no
// longer needs. The member answers nobody meanwhile.
type Defragment struct {
	Member, ID string
}

func (Defragment) isAction() {}

// String implements Action.
func (a Defragment) String() string { return "defragment " + a.Member }

// Disruptive implements Action: the member answers nobody until it is done.
func (Defragment) Disruptive() bool { return true }

// after implements Action.
func (a Defragment) after(s *situation) {
	s.eachMember(func(m *Member) {
		if m.ID == a.ID {
			m.DBSize = m.DBInUse
		}
	})
	done := maps.Clone(s.o.Record.Defragmented)
	if done == nil {
		done = map[string]time.Time{}
	}
	done[a.Member] = s.now
	s.o.Record.Defragmented = done
}

// undo implements Action.
func (Defragment) undo(*situation) string {
	return harmless + ": the data stays what it is"
}

// Disarm ends one alarm, and sees whether the cluster takes writes again.
type Disarm struct {
	// Alarm is its kind, MemberID the member that it names.
	Alarm, MemberID string
}

func (Disarm) isAction() {}

// String implements Action.
func (a Disarm) String() string {
	return fmt.Sprintf("disarm %s", Alarm{a.Alarm, a.MemberID})
}

// Disruptive implements Action: no member stops.
func (Disarm) Disruptive() bool { return false }

// after implements Action.
func (a Disarm) after(s *situation) {
	for i := range s.o.Rounds {
		s.o.Rounds[i].Alarms = slices.DeleteFunc(slices.Clone(s.o.Rounds[i].Alarms), func(on Alarm) bool {
			return on == Alarm{a.Alarm, a.MemberID}
		})
	}
}

// undo implements Action.
func (Disarm) undo(*situation) string {
	return harmless + ": etcd raises the alarm again when there is cause"
}

// eachMember changes the members in every look.
func (s *situation) eachMember(change func(*Member)) {
	for i := range s.o.Rounds {
		s.o.Rounds[i].Members = slices.Clone(s.o.Rounds[i].Members)
		for j := range s.o.Rounds[i].Members {
			change(&s.o.Rounds[i].Members[j])
		}
	}
}
