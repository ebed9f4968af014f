package plan

import (
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// surges begins each half of a surge, where the rules that bring changes of the member list to
// their end do the rest: a second member joins, and then the first one leaves, when the data of
// both was seen to be the same. That the first one joins again, and the second one leaves, is
// what these rules want of any cluster.
func surges(s *situation.Situation) verdict.Verdict {
	if !s.Surging() {
		return verdict.Pass()
	}
	first, second, why := naming.Member(s.Desired.Name, 0), naming.Member(s.Desired.Name, 1), surge.Goes(s.Desired, s.Observed)
	if !s.IsMember(second) {
		return rejoin(s, second, why+"; "+second+" serves meanwhile", false)
	}
	if p := s.Observed.Pod(second); p != nil && p.Crashed {
		if v := soaking(s, p.Template); !v.Silent() {
			return v
		}
	}
	leave := verdict.Do(action.BeginLeave{Member: first, ID: s.Observed.Record.Members[first], Why: why, Replace: true, Serving: true, Asked: true},
		why+"; "+second+" serves by now, and with two voters both are needed, so it leaves at once, and joins again")
	return stopping(onCompared(s, leave), first)
}

// provesItself wants the second member to have run for as long as a restarted one soaks before
// it is a voter: until then it harms nobody if it ends.
func provesItself(s *situation.Situation, j state.Joining) string {
	p := s.Observed.Pod(j.Member)
	if !s.Surging() || p == nil || !p.RunsSince.IsZero() && s.Now.Sub(p.RunsSince) >= s.SoakTime(*p) {
		return ""
	}
	return "it soaks for " + s.SoakTime(*p).String()
}

// clientsLeave waits until no new connection comes to the member that leaves.
func clientsLeave(s *situation.Situation, l state.Leaving) verdict.Verdict {
	if left := surge.LeaveTime - s.Now.Sub(l.Since); surge.Begun(s.Git.Spec, s.Observed.Record) && left > 0 {
		return verdict.WaitUntil("clients are led to the member that stays, and "+l.Member+" leaves then", l.Since).At(l.Member).Again(left)
	}
	return verdict.Pass()
}
