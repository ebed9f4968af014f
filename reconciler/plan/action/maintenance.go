package action

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
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

// Kind implements Action.
func (Compact) Kind() string { return "Compact" }

// String implements Action. The revision is left out: writers move it on, and it
// is the same step still.
func (Compact) String() string { return "compact the history" }

// Disruptive implements Action: no member stops.
func (Compact) Disruptive() bool { return false }

// After implements Action. How much room it makes is unknown before: half of
// what is there is assumed.
func (a Compact) After(s *situation.Situation) {
	outlook.EachMember(s, func(m *state.Member) { m.CompactRevision, m.DBInUse = a.Revision, m.DBInUse/2 })
	s.Observed.Record.Compacted = &state.Compacted{Revision: a.Revision, At: s.Now}
}

// Undo implements Action.
func (Compact) Undo(s *situation.Situation) Undo {
	if situation.BackupFor(s, state.ForCompaction) != nil {
		return final("old revisions are gone from the cluster; the backup that was taken before has them")
	}
	return final("old revisions are gone")
}

// Defragment rewrites the database of one member, without the room that it no
// longer needs. The member does not answer meanwhile.
type Defragment struct {
	Member, ID string
}

func (Defragment) isAction() {}

// Kind implements Action.
func (Defragment) Kind() string { return "Defragment" }

// String implements Action.
func (a Defragment) String() string { return "defragment " + a.Member }

// Disruptive implements Action: the member does not answer until it is done.
func (Defragment) Disruptive() bool { return true }

// After implements Action.
func (a Defragment) After(s *situation.Situation) {
	outlook.EachMember(s, func(m *state.Member) {
		if m.ID == a.ID {
			m.DBSize = m.DBInUse
		}
	})
	done := maps.Clone(s.Observed.Record.Defragmented)
	if done == nil {
		done = map[string]time.Time{}
	}
	done[a.Member] = s.Now
	s.Observed.Record.Defragmented = done
}

// Undo implements Action.
func (Defragment) Undo(*situation.Situation) Undo {
	return harmless("the data stays what it is")
}

// Disarm ends one alarm, and sees whether the cluster takes writes again.
type Disarm struct {
	// Alarm is its kind, MemberID the member that it names.
	Alarm, MemberID string
}

func (Disarm) isAction() {}

// Kind implements Action.
func (Disarm) Kind() string { return "Disarm" }

// String implements Action.
func (a Disarm) String() string {
	return fmt.Sprintf("disarm %s", state.Alarm{Kind: a.Alarm, MemberID: a.MemberID})
}

// Disruptive implements Action: no member stops.
func (Disarm) Disruptive() bool { return false }

// After implements Action.
func (a Disarm) After(s *situation.Situation) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Alarms = slices.DeleteFunc(slices.Clone(s.Observed.Rounds[i].Alarms), func(on state.Alarm) bool {
			return on == state.Alarm{Kind: a.Alarm, MemberID: a.MemberID}
		})
	}
}

// Undo implements Action.
func (Disarm) Undo(*situation.Situation) Undo {
	return harmless("etcd raises the alarm again when there is cause")
}
