package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/recorded"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
)

const (
	// rejoinAfter is how long a join that failed is left alone, times the number
	// of failures in a row, and rejoinLatest the longest such time.
	rejoinAfter  = 10 * time.Minute
	rejoinLatest = 2 * time.Hour
)

// membership finishes a change of the member list that has begun, whatever
// happened in between: what the record intends and what etcd lists say together
// how far it has come.
//
//	record   etcd lists the member   then
//	leaving  yes                     leadership away, remove
//	leaving  no                      record that it has left
//	joining  no, no ID yet           add as a learner; too late: give up for a while
//	joining  as a learner            pod, catch up, promote; too late: remove it
//	joining  as a voter              record that it is a member
//	joining  no, although it was     give up
func membership(s *situation.Situation) verdict.Verdict {
	switch {
	case !s.Formed() || s.Observed.Set == nil:
		return verdict.Pass()
	case s.Observed.Record.Leaving != nil:
		return leave(s, *s.Observed.Record.Leaving)
	case s.Observed.Record.Joining != nil:
		return join(s, *s.Observed.Record.Joining)
	}
	return verdict.Pass()
}

// leave brings a removal that has begun to its end.
func leave(s *situation.Situation, l state.Leaving) verdict.Verdict {
	if v := listed(s); !v.Silent() {
		return v
	}
	if v := foreignVolume(s, s.Observed.Pod(l.Member)); !v.Silent() {
		return v
	}
	r := s.Observed.Round()
	m := r.ByID(l.ID)
	if m == nil {
		return verdict.Do(action.EndLeave{Member: l.Member, ID: l.ID, Replace: l.Replace}, "the member list no longer has it")
	}
	if s.StillWanted(l) || surge.Cancelled(s.Desired, s.Observed, l) {
		return verdict.Do(action.CancelLeave{Member: l.Member, ID: l.ID}, "Git wants it to be a member, and its data is there")
	}
	// One that is removed because it was taken for lost, and that Git wants.
	forLost := !l.Serving && s.WantsMember(l.Member)
	if by := s.Observed.Serving(l.ID); by != "" && forLost {
		return verdict.Do(action.CancelLeave{Member: l.Member, ID: l.ID}, "it was taken for lost, but "+by)
	}
	if lost := losses(s); l.Asked && len(lost) > 0 && !lost[0].Asked {
		return verdict.Do(action.CancelLeave{Member: l.Member, ID: l.ID}, describeLosses(lost).Text+", and that comes first").About(describeLosses(lost))
	}
	if problem := s.Unremovable(r, l.Member); problem != "" {
		if lost := losses(s); !l.Replace && len(lost) > 0 && !situation.ContainsLoss(lost, l.Member) {
			return verdict.Do(action.CancelLeave{Member: l.Member, ID: l.ID}, describeLosses(lost).Text+", and that comes first").About(describeLosses(lost))
		}
		return verdict.Unhealthy(fmt.Sprintf("%s will be removed (%s), but %s", l.Member, l.Why, problem),
			"nothing is removed until the others are healthy; check the members named here").At(l.Member)
	}
	if v := volumes.Stay(s, l.Member); !v.Silent() && !l.Replace {
		return v
	}
	if v := unserving(s, situation.Loss{Member: l.Member, Why: l.Why, Serving: !forLost}); !v.Silent() {
		return v
	}
	if v := clientsLeave(s, l); !v.Silent() {
		return v
	}
	if v := seenTwice(s, l.Member); !v.Silent() {
		return v
	}
	before := &s.Observed.Rounds[len(s.Observed.Rounds)-2]
	if problem := s.CatchUpProblem(before, r, l.Member); !problem.None() {
		return verdict.ConfirmIn(state.Between, problem.Text).About(problem)
	}
	if problem := hashProblem(s); !problem.None() && (!l.Replace || l.Asked) {
		return verdict.Unhealthy(fmt.Sprintf("%s will be removed (%s), but %s, and it is not known yet which is right", l.Member, l.Why, problem.Text),
			"find out whose data is wrong: `etcdctl endpoint hashkv --cluster` shows what each has; nothing is removed until then").About(problem)
	}
	if lead := r.Leader(); lead.ID == l.ID {
		transferee := s.Transferee(l.Member) // there is one: the others are a quorum that is well
		return verdict.Do(action.MoveLeader{From: lead.Name, FromID: lead.ID, To: transferee.Name, ToID: transferee.ID},
			l.Member+" is about to leave, and moving the leader first avoids an election")
	}
	remove := verdict.Do(action.RemoveMember{Member: l.Member, ID: l.ID}, l.Why)
	if l.Replace && (!l.Asked || comparedThen(s, l)) {
		return remove
	}
	return stopping(onCompared(s, remove), l.Member)
}

// comparedThen reports whether the comparison counts that was made when it was decided that a
// member with which nothing is wrong leaves: one of the last hour, unless etcd has found since
// that data differs.
func comparedThen(s *situation.Situation, l state.Leaving) bool {
	return s.Now.Sub(l.Since) < time.Hour && !s.Observed.Round().Alarmed(state.Corrupt)
}

// listed wants a fresh member list of this very cluster.
func listed(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Round()
	switch {
	case r == nil || s.Now.Sub(r.At) > fresh:
		return verdict.ConfirmIn(verdict.Instantly, "the members have not been asked a moment ago")
	case r.Problem != "":
		return verdict.Unhealthy("the members cannot be listed", "nothing changes among the members until they answer; check their pods").Measured("%s", r.Problem)
	}
	return verdict.OneOf(s, recorded.Identity, recorded.Voters)
}

// join brings a join that has begun to its end, or takes it back.
func join(s *situation.Situation, j state.Joining) verdict.Verdict {
	if v := listed(s); !v.Silent() {
		return v
	}
	m := s.Observed.Round().ByID(j.ID)
	switch {
	case m != nil && !m.Learner:
		return verdict.Do(action.EndJoin{Member: j.Member, ID: j.ID}, "etcd counts it as a voter")
	case !s.WantsMember(j.Member):
		return verdict.Do(action.NewDropLearner(s, j, false), fmt.Sprintf("Git wants %s, so %s is not to join any more", state.Plural(int(s.Desired.Spec.Replicas), "member"), j.Member))
	case j.ID == "" && s.Now.Sub(j.Since) >= s.JoinTime():
		return verdict.Do(action.NewDropLearner(s, j, true), fmt.Sprintf("etcd has not added it within %s", s.JoinTime()))
	case j.ID == "" && s.OtherLearner(j.Member) != "":
		return verdict.Unhealthy(fmt.Sprintf("%s is about to join, but %s is a learner, and one change at a time is enough", j.Member, s.OtherLearner(j.Member)),
			"where that learner is not wanted, remove it with `etcdctl member remove`").At(s.OtherLearner(j.Member))
	case j.ID == "":
		if problem := s.Electable(); problem != "" {
			return verdict.Unhealthy(j.Member+" is about to join, but "+problem, "check the members named here").At(j.Member)
		}
		return verdict.Do(action.AddLearner{Member: j.Member}, "a learner has no vote, so that it cannot harm the quorum while it catches up")
	case m == nil && !missedBefore(s, j):
		return verdict.ConfirmIn(state.Between, "that the member list no longer has "+j.Member+" counts when it was seen twice").At(j.Member)
	case m == nil:
		return verdict.Do(action.NewDropLearner(s, j, true), "the member list no longer has it: it was removed manually")
	case volumes.Unmade(s, s.Observed.Volume(j.Member)):
		return verdict.Do(action.NewDropLearner(s, j, false), "no volume was ever made for it, and Git now asks for another one")
	}
	return catchUp(s, j, *m)
}

// missedBefore reports whether the round before the last one lacks a learner, too: one answer
// may be older than the learner is.
func missedBefore(s *situation.Situation, j state.Joining) bool {
	if len(s.Observed.Rounds) < 2 {
		return false
	}
	before := &s.Observed.Rounds[len(s.Observed.Rounds)-2]
	return before.Problem == "" && before.ByID(j.ID) == nil && before.At.After(j.Since) && s.Observed.Round().At.Sub(before.At) >= state.Between
}

// catchUp promotes a learner that has what the leader had a moment ago, and
// removes one that does not get there in time.
func catchUp(s *situation.Situation, j state.Joining, m state.Member) verdict.Verdict {
	problem := s.LearnerProblem(j, m)
	if problem.None() {
		if len(s.Observed.Rounds) < 2 {
			return verdict.ConfirmIn(verdict.Instantly, "that a learner has caught up is seen in two checks").At(j.Member)
		}
		before := &s.Observed.Rounds[len(s.Observed.Rounds)-2]
		if lead := before.Leader(); lead == nil || m.AppliedIndex < lead.CommitIndex {
			problem.Text = "it has not applied yet what the leader had committed"
		} else if s.Observed.Round().At.Sub(before.At) < state.Between {
			return verdict.ConfirmIn(state.Between, "the two checks of the members were too close to each other")
		}
	}
	if problem.None() {
		problem.Text = cmp.Or(s.Electable(), provesItself(s, j))
	}
	if problem.None() {
		return verdict.Do(action.PromoteMember{Member: j.Member, ID: j.ID}, "it has caught up with the leader")
	}
	// That the list still calls it a learner is proof that it has no vote, whatever
	// was recorded before it was promoted.
	p := s.Observed.Pod(j.Member)
	if p != nil && p.Damage != "" {
		return verdict.Do(action.NewDropLearner(s, j, true), fmt.Sprintf("its volume is not what it was (%s): %s", p.Damage, problem.Text)).About(problem)
	}
	if s.Now.Sub(j.Since) >= s.JoinTime() {
		problem.Detail = strings.TrimPrefix(problem.Detail+"; after "+s.JoinTime().String(), "; ")
		return verdict.Do(action.NewDropLearner(s, j, true), "it did not become a member in time: "+problem.Text).About(problem)
	}
	return verdict.WaitUntil(j.Member+" joins: "+problem.Text, j.Since).About(situation.Remark{Member: j.Member, Detail: problem.Detail})
}

// resize gives the StatefulSet as many pods as there are members, whatever else is
// under way: the members are in the record, and pods that are missing or too many
// block everything.
func resize(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Set == nil {
		return verdict.Pass()
	}
	if v := fromNothing(s); !v.Silent() {
		return v
	}
	return resizeTo(s)
}

// resizeTo sets the number of pods to the highest ordinal of a member. The partition
// of an open roll stays where it is, so that what comes back is what the
// roll has made of it, and how far it came is not forgotten; else it is above every pod.
func resizeTo(s *situation.Situation) verdict.Verdict {
	from, to := s.Observed.Set.Replicas, s.PodCount()
	if from == to {
		return verdict.Pass()
	}
	if v := recorded.Places(s, to); to < from && !v.Silent() {
		return v
	}
	partition := min(s.Observed.Set.Partition, to)
	forgets := from > 0 || !s.Observed.Midway()
	if s.Observed.Set.Partition >= from && forgets && (!s.RollOpen() || s.JoinsAsBefore()) {
		partition = to
	}
	detail, reason := "", fmt.Sprintf("its pods are those of %s", state.Plural(len(s.Observed.Record.Members), "member"))
	switch j := s.Observed.Record.Joining; {
	case s.Observed.Set.ScaledBy != "":
		reason = fmt.Sprintf("another writer has set it to %d (%s), and the members are in the record, not there", from, s.Observed.Set.ScaledBy)
		if at := s.Observed.Set.ScaledAt; !at.IsZero() {
			detail = "at " + at.UTC().Format(time.RFC3339)
		}
	case j != nil && j.ID != "":
		reason = j.Member + " is a learner now and gets its pod"
	}
	v := verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: from, To: to, Partition: partition}, reason).Measured("%s", detail)
	if s.Observed.Set.ScaledBy != "" && from < to {
		return v.AtOnce()
	}
	return v
}

// rejoin begins to add a member: nothing of an earlier one of its name may be
// left, and a join that failed is left alone for a while.
func rejoin(s *situation.Situation, member, reason string, replace bool) verdict.Verdict {
	if v := volumes.Clear(s, member); !v.Silent() {
		return v
	}
	if times := s.FailedJoins(member); times > 0 {
		f, pause := s.Observed.Record.FailedJoin, min(time.Duration(times)*rejoinAfter, rejoinLatest)
		if left := pause - s.Now.Sub(f.At); left > 0 {
			return verdict.Verdict{Hold: &decision.Hold{
				Kind: decision.Stopped, Member: member, Since: f.At, Again: min(left, verdict.Rarely),
				Message: fmt.Sprintf("%s could not join, %s in a row; the next try is %s after the last", member, state.Plural(times, "time"), pause),
				Do:      "check its pod and its node meanwhile; where it cannot start with what Git asks for, revert the commit",
			}}
		}
	}
	return verdict.Do(action.BeginJoin{Member: member, Replace: replace}, reason)
}
