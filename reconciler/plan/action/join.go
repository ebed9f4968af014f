package action

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// BeginJoin records that a member is being added, before etcd is asked.
type BeginJoin struct {
	Member string
	// Replace says that it takes the place of a member that was removed.
	Replace bool
}

func (BeginJoin) isAction() {}

// Kind implements Action.
func (BeginJoin) Kind() string { return "BeginJoin" }

// String implements Action.
func (a BeginJoin) String() string { return "write down that " + a.Member + " joins" }

// Disruptive implements Action: no member stops.
func (BeginJoin) Disruptive() bool { return false }

// After implements Action.
func (a BeginJoin) After(s *situation.Situation) {
	s.Observed.Record.Joining, s.Observed.Record.Replacing = &state.Joining{Member: a.Member, Replace: a.Replace, Since: s.Now}, ""
}

// Undo implements Action.
func (BeginJoin) Undo(*situation.Situation) Undo { return anytime("") }

// AddLearner has etcd add the member that joins as a learner, and records
// the ID that it got.
type AddLearner struct{ Member string }

func (AddLearner) isAction() {}

// Kind implements Action.
func (AddLearner) Kind() string { return "AddLearner" }

// String implements Action.
func (a AddLearner) String() string { return "add " + a.Member + " as a learner" }

// Disruptive implements Action: no member stops.
func (AddLearner) Disruptive() bool { return false }

// After implements Action.
func (a AddLearner) After(s *situation.Situation) {
	j := *s.Observed.Record.Joining
	j.ID, s.Observed.Record.Joining = "(new "+a.Member+")", &j
	outlook.Settle(s)
}

// Undo implements Action.
func (AddLearner) Undo(*situation.Situation) Undo { return anytime("") }

// PromoteMember makes a learner a voter. That it may be one is recorded
// first.
type PromoteMember struct{ Member, ID string }

func (PromoteMember) isAction() {}

// Kind implements Action.
func (PromoteMember) Kind() string { return "PromoteMember" }

// String implements Action.
func (a PromoteMember) String() string { return "promote " + a.Member }

// Disruptive implements Action: no member stops.
func (PromoteMember) Disruptive() bool { return false }

// After implements Action.
func (a PromoteMember) After(s *situation.Situation) {
	j := *s.Observed.Record.Joining
	j.Promoting, s.Observed.Record.Joining = true, &j
	outlook.Settle(s)
}

// Undo implements Action.
func (PromoteMember) Undo(*situation.Situation) Undo { return anytime("") }

// EndJoin records that a learner has become a member.
type EndJoin struct{ Member, ID string }

func (EndJoin) isAction() {}

// Kind implements Action.
func (EndJoin) Kind() string { return "EndJoin" }

// String implements Action.
func (a EndJoin) String() string { return "record " + a.Member + " as a member" }

// Disruptive implements Action: no member stops.
func (EndJoin) Disruptive() bool { return false }

// After implements Action.
func (a EndJoin) After(s *situation.Situation) {
	r := s.Observed.Record
	r.Members, r.Retired = maps.Clone(r.Members), maps.Clone(r.Retired)
	delete(r.Retired, a.Member)
	r.Members[a.Member], r.Joining, r.FailedJoin = a.ID, nil, nil
}

// Undo implements Action.
func (EndJoin) Undo(*situation.Situation) Undo { return onlyNotes() }

// DropLearner takes a learner back that did not become a voter.
type DropLearner struct {
	// Member and its ID; no ID when etcd was perhaps not even asked.
	Member, ID string
	// Retire says that what is on its volume is the learner's, and worth nothing
	// without it.
	Retire bool
	// Keeps is the ID of the lost cluster whose data may be aside on its volume although its
	// claim does not say so: that is noted there before the volume is retired. Else empty.
	Keeps string
	// Failed says that it had its chance: the next try waits for a while.
	Failed bool
	// Replace says that the member is still to be replaced.
	Replace bool
}

func (DropLearner) isAction() {}

// Kind implements Action.
func (DropLearner) Kind() string { return "DropLearner" }

// String implements Action.
func (a DropLearner) String() string { return "remove the learner " + a.Member }

// Disruptive implements Action: no member stops.
func (DropLearner) Disruptive() bool { return false }

// After implements Action.
func (a DropLearner) After(s *situation.Situation) {
	r := s.Observed.Record
	r.Joining = nil
	if a.Failed {
		r.FailedJoin = &state.FailedJoin{Member: a.Member, At: s.Now, Times: 1}
	}
	if a.Retire {
		r.Retired = maps.Clone(r.Retired)
		if r.Retired == nil {
			r.Retired = map[string]string{}
		}
		r.Retired[a.Member] = a.ID
	}
	if v := s.Observed.Volume(a.Member); v != nil && a.Keeps != "" {
		s.Observed.Volumes = slices.Clone(s.Observed.Volumes)
		s.Observed.Volume(a.Member).Keeps = a.Keeps
	}
	if a.Replace {
		r.Replacing = a.Member
	}
	outlook.Unlist(s, a.ID)
}

// Undo implements Action.
func (DropLearner) Undo(*situation.Situation) Undo { return harmless("a learner has no vote") }
