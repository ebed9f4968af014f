package plan

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// compare wants the members to hold the same data before the first of them stops. Once a
// roll: to read all of it stops each member for a while (see compareHashes in
// reconciler/etcd). Behind that it is etcd's own check, InitialCorruptCheck, that finds
// members apart: before a restarted member serves, it compares its data with each of its
// peers, and ends where they differ, so that the roll stops at it. Where members have no
// such check, before 3.6 or because the file takes it away, each restart is compared, and
// so is a roll that has paused, or in which a peer was down as a member started.
func compare(s *situation.Situation) verdict.Verdict {
	t := s.NextRestart()
	if !s.Rolling() || t == nil || s.MemberCount() < 2 || !s.HealthyNow(*t) || s.ComparedLately() {
		return verdict.Pass()
	}
	return stopping(comparedFirst(s), t.Name)
}

// onCompared lets a step wait until the members' data was compared in this pass.
func onCompared(s *situation.Situation, v verdict.Verdict) verdict.Verdict {
	if first := comparedFirst(s); v.Step != nil && !first.Silent() {
		return first
	}
	return v
}

// stopping says which member stops, or leaves, after a comparison. A leader that hands over
// for its hash must not hand over to that one: the leadership would go back and forth.
func stopping(v verdict.Verdict, member string) verdict.Verdict {
	if v.Hold != nil {
		v.Hold.Stops = member
	}
	return v
}

// comparedFirst wants the members' data compared in this pass.
func comparedFirst(s *situation.Situation) verdict.Verdict {
	uncompared, why := s.Observed.Uncompared()
	if !uncompared || s.Alone() {
		return verdict.Pass()
	}
	what := "the members' data has not been compared yet"
	if why != "" {
		what = "the members' data could not be compared: " + why
	}
	v := verdict.ConfirmIn(state.Between, what)
	v.Hold.Compare = true
	return v
}
