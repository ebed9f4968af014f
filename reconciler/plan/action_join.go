package plan

import "maps"

// BeginJoin writes down that a member is being added, before etcd is asked.
type BeginJoin struct {
	Member string
	// Replace says that it takes the place of a member that was removed.
	Replace bool
}

func (BeginJoin) isAction() {}

// String implements Action.
func (a BeginJoin) String() string { return "write down that " + a.Member + " joins" }

// Disruptive implements Action: no member stops.
func (BeginJoin) Disruptive() bool { return false }

// after implements Action.
func (a BeginJoin) after(s *situation) {
	s.o.Record.Joining, s.o.Record.Replacing = &Joining{Member: a.Member, Replace: a.Replace, Since: s.now}, ""
}

// undo implements Action.
func (BeginJoin) undo(*situation) string { return anytime }

// AddLearner has etcd add the member that joins as a learner, and writes down
// the ID that it got.
type AddLearner struct{ Member string }

func (AddLearner) isAction() {}

// String implements Action.
func (a AddLearner) String() string { return "add " + a.Member + " as a learner" }

// Disruptive implements Action: no member stops.
func (AddLearner) Disruptive() bool { return false }

// after implements Action.
func (a AddLearner) after(s *situation) {
	j := *s.o.Record.Joining
	j.ID, s.o.Record.Joining = "(new "+a.Member+")", &j
	s.settle()
}

// undo implements Action.
func (AddLearner) undo(*situation) string { return anytime }

// PromoteMember makes a learner a voter. That it may be one is written down
// first.
type PromoteMember struct{ Member, ID string }

func (PromoteMember) isAction() {}

// String implements Action.
func (a PromoteMember) String() string { return "promote " + a.Member }

// Disruptive implements Action: no member stops.
func (PromoteMember) Disruptive() bool { return false }

// after implements Action.
func (a PromoteMember) after(s *situation) {
	j := *s.o.Record.Joining
	j.Promoting, s.o.Record.Joining = true, &j
	s.settle()
}

// undo implements Action.
func (PromoteMember) undo(*situation) string { return anytime }

// EndJoin writes down that a learner has become a member.
type EndJoin struct{ Member, ID string }

func (EndJoin) isAction() {}

// String implements Action.
func (a EndJoin) String() string { return "record " + a.Member + " as a member" }

// Disruptive implements Action: no member stops.
func (EndJoin) Disruptive() bool { return false }

// after implements Action.
func (a EndJoin) after(s *situation) {
	r := s.o.Record
	r.Members, r.Retired = maps.Clone(r.Members), maps.Clone(r.Retired)
	delete(r.Retired, a.Member)
	r.Members[a.Member], r.Joining, r.FailedJoin = a.ID, nil, nil
}

// undo implements Action.
func (EndJoin) undo(*situation) string { return onlyNotes }

// DropLearner takes a learner back that did not become a voter.
type DropLearner struct {
	// Member and its ID; no ID when etcd was perhaps not even asked.
	Member, ID string
	// Retire says that what is on its volume is the learner's, and worth nothing
	// without it.
	Retire bool
	// Failed says that it had its chance: the next try waits for a while.
	Failed bool
	// Replace says that the member is still to be replaced.
	Replace bool
}

func (DropLearner) isAction() {}

// String implements Action.
func (a DropLearner) String() string { return "remove the learner " + a.Member }

// Disruptive implements Action: no member stops.
func (DropLearner) Disruptive() bool { return false }

// after implements Action.
func (a DropLearner) after(s *situation) {
	r := s.o.Record
	if r.Joining = nil; a.Failed {
		r.FailedJoin = &FailedJoin{Member: a.Member, At: s.now, Times: 1}
	}
	if a.Retire {
		r.Retired = maps.Clone(r.Retired)
		if r.Retired == nil {
			r.Retired = map[string]string{}
		}
		r.Retired[a.Member] = a.ID
	}
	if a.Replace {
		r.Replacing = a.Member
	}
	s.unlist(a.ID)
}

// undo implements Action.
func (DropLearner) undo(*situation) string { return harmless + ": a learner has no vote" }
