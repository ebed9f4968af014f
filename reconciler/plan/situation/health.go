package situation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// HealthChoices is what a person can do about a member that is not well. One that
// does not run keeps its data and its place, whatever the reason is.
func (s *Situation) HealthChoices(problem Remark) string {
	for _, p := range s.Observed.Pods {
		if p.Trouble == "" || !s.IsMember(p.Name) || problem.Member != p.Name {
			continue
		}
		if next := s.NextRestart(); s.Rolling() && next != nil && next.Name != p.Name {
			return fmt.Sprintf("what Git asks for would reach %s first, which serves; bring %s back by other means, and the rollout continues", next.Name, p.Name)
		}
		if s.MemberCount() > 2 && !s.Rolling() {
			return fmt.Sprintf("%s comes back once the cause is fixed; if its data is not needed, delete its pod and its volume claim %s, and a new member takes its place",
				p.Name, s.Claim(p.Name))
		}
	}
	if problem == s.strayDowngrade(s.Observed.Round()) {
		return fmt.Sprintf("find out who has begun it: `etcdctl downgrade cancel` ends it; or restore ConfigMap %s as it was last, and quorate cancels what it began itself", naming.Record(s.Desired.Name))
	}
	if id := s.strayLearner(); id != "" {
		return fmt.Sprintf("where that learner is not wanted, remove it with `etcdctl member remove %s`", id)
	}
	if gone := s.removedByHand(); gone != "" && s.MemberCount() > 2 {
		return fmt.Sprintf("%s was removed manually: delete its pod and its volume claim %s, which etcd no longer uses, and a new member takes its place",
			gone, s.Claim(gone))
	}
	if problem.Member != "" {
		return "check the member named here"
	}
	return "check the pods of its members"
}

// strayLearner is the ID of a learner that the record does not speak of, or "": somebody has
// added it, or a call that quorate gave up took effect all the same.
func (s *Situation) strayLearner() string {
	for _, m := range s.Observed.Round().Members {
		if m.Learner {
			return m.ID
		}
	}
	return ""
}

// removedByHand is the recorded member that the list no longer has, where it has
// exactly all the others, or "".
func (s *Situation) removedByHand() string {
	r, gone := s.Observed.Round(), ""
	if r.Problem != "" || r.ClusterID != s.Observed.Record.ClusterID || len(r.Members) != len(s.Observed.Record.Members)-1 {
		return ""
	}
	for name, id := range s.Observed.Record.Members {
		switch m := r.ByID(id); {
		case m == nil:
			gone = name
		case m.Name != name:
			return ""
		}
	}
	return gone
}

// Doubtful is a member that only one round has seen, that did not answer in it, and
// that would count as broken if it did not in the next one either; empty for none.
func (s *Situation) Doubtful() string {
	if len(s.Observed.Rounds) > 1 {
		return ""
	}
	for _, p := range s.Outdated() {
		if p.Ready && !p.Terminating && !s.HealthyNow(p) && p.Template != s.Observed.Set.CurrentTemplate {
			return p.Name
		}
	}
	return ""
}

// HealthProblem is what is wrong with the cluster in one round.
func (s *Situation) HealthProblem(r *state.Round) Remark {
	exempt := s.Exempt()
	for _, check := range []func(*state.Round, string) Remark{
		s.listProblem, s.answerProblem, s.leaderProblem, s.alarmProblem, s.versionProblem, s.QuorumProblem,
	} {
		if problem := check(r, exempt); !problem.None() {
			return problem
		}
	}
	return Remark{}
}

// Exempt is the name of the member that the gate ignores, or "".
func (s *Situation) Exempt() string {
	if v := s.MendedByRoll(); v != nil {
		return v.Name
	}
	return ""
}

// listProblem compares the member list with the record.
func (s *Situation) listProblem(r *state.Round, _ string) Remark {
	if r.Problem != "" {
		return Remark{Text: "the members cannot be listed", Detail: r.Problem}
	}
	if r.ClusterID != s.Observed.Record.ClusterID {
		return Remark{Text: fmt.Sprintf("the members say that they are cluster %s, the record says %s", r.ClusterID, s.Observed.Record.ClusterID)}
	}
	listed := map[string]string{}
	for _, m := range r.Members {
		if m.Learner {
			return Remark{Member: state.NameOf(m), Text: state.NameOf(m) + " is a learner that quorate did not add"}
		}
		listed[m.Name] = m.ID
	}
	if !maps.Equal(listed, s.Observed.Record.Members) {
		return Remark{
			Member: firstDifference(listed, s.Observed.Record.Members),
			Text:   fmt.Sprintf("the member list (%s) is not the recorded one (%s)", roster(listed), roster(s.Observed.Record.Members)),
		}
	}
	return Remark{}
}

// firstDifference is the first name that two member lists do not have in common.
func firstDifference(a, b map[string]string) string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range names {
		if a[name] != b[name] {
			return name
		}
	}
	return ""
}

// PodProblem wants Kubernetes to think well of every member, too.
func (s *Situation) PodProblem() Remark {
	exempt := s.Exempt()
	for _, p := range s.Observed.Pods {
		if s.IsMember(p.Name) && p.Name != exempt && (!p.Ready || p.Terminating) {
			return Remark{Member: p.Name, Text: strings.TrimSuffix("the pod of "+p.Name+" is not ready: "+beside(p), ": ")}
		}
	}
	return Remark{}
}

// answerProblem wants every member to answer for itself.
func (s *Situation) answerProblem(r *state.Round, exempt string) Remark {
	for _, m := range r.Members {
		if m.Name == exempt {
			continue
		}
		if p := s.Observed.Pod(m.Name); p != nil && p.Trouble != "" && !p.Ready {
			return Remark{Member: m.Name, Text: fmt.Sprintf("%s does not run: %s", m.Name, p.Trouble)}
		}
		if m.Problem != "" {
			return Remark{Member: m.Name, Text: m.Name + " does not answer", Detail: m.Problem}
		}
	}
	return Remark{}
}

// leaderProblem wants one leader, followed by all in one term, and none far behind.
func (s *Situation) leaderProblem(r *state.Round, exempt string) Remark {
	leader := r.Leader()
	if leader == nil {
		return Remark{Text: "there is no leader"}
	}
	for _, m := range r.Members {
		switch {
		case m.Name == exempt:
		case m.Leader != leader.ID || m.Term != leader.Term:
			return Remark{Member: m.Name, Text: fmt.Sprintf("%s does not follow the leader %s", m.Name, leader.Name)}
		case m.AppliedIndex+state.MaxLag < leader.CommitIndex:
			return Remark{Member: m.Name, Text: m.Name + " is far behind the leader", Detail: fmt.Sprintf("%d entries", leader.CommitIndex-m.AppliedIndex)}
		}
	}
	return Remark{}
}

// alarmProblem are what etcd itself complains of.
func (s *Situation) alarmProblem(r *state.Round, exempt string) Remark {
	tolerated := s.toleratesNoSpace(r)
	if len(r.Alarms) > 0 && !tolerated {
		return Remark{Member: nameOf(s.Observed.Record.Members, r.Alarms[0].MemberID), Text: "alarm: " + AlarmList(r.Alarms)}
	}
	if problem := s.strayDowngrade(r); !problem.None() {
		return problem
	}
	for _, m := range r.Members {
		switch {
		case m.Name == exempt:
		case len(m.Errors) > 0 && (!tolerated || !onlyOf(m.Errors, state.NoSpace)):
			return Remark{Member: m.Name, Text: fmt.Sprintf("%s reports: %s", m.Name, errorTexts(m.Errors))}
		case m.Quota > 0 && m.DBSize >= m.Quota && !tolerated:
			return Remark{Member: m.Name, Text: fmt.Sprintf("the database of %s has reached its quota", m.Name)}
		}
	}
	return Remark{}
}

// strayDowngrade is about a downgrade that neither Git nor the record speaks of: a person is in
// the middle of it, or the record is older than it. So it is not cancelled without being asked.
func (s *Situation) strayDowngrade(r *state.Round) Remark {
	if !r.Downgrading || s.ours(r) {
		return Remark{}
	}
	return Remark{Text: fmt.Sprintf("a downgrade to %s is in progress, which Git does not ask for and the record does not know", cmp.Or(r.DowngradeTarget, "another release"))}
}

// nameOf is the name of the member with an ID, or "".
func nameOf(members map[string]string, id string) string {
	for name, known := range members {
		if known == id {
			return name
		}
	}
	return ""
}

// versionProblem wants every member to run what its pod was made for.
func (s *Situation) versionProblem(r *state.Round, exempt string) Remark {
	for _, m := range r.Members {
		p := s.Observed.Pod(m.Name)
		if m.Name != exempt && p != nil && m.Version != p.Version {
			return Remark{Member: m.Name, Text: fmt.Sprintf("%s runs etcd %s, but its pod was made for %s: the image is not what its tag says", m.Name, m.Version, p.Version)}
		}
	}
	return Remark{}
}

// HashProblem wants members that can be compared to hold the same data.
func (s *Situation) HashProblem(r *state.Round) Remark {
	a, b := r.Differing()
	if a == nil {
		return Remark{}
	}
	return Remark{
		Member: a.Name, Text: fmt.Sprintf("%s and %s hold different data", a.Name, b.Name),
		Detail: fmt.Sprintf("compared at revision %d", a.HashRevision),
	}
}

// QuorumProblem is why the others would lose their quorum while the target is down. One or two
// members never can, and their owner has chosen that.
func (s *Situation) QuorumProblem(r *state.Round, exempt string) Remark {
	t := s.Restarting(exempt)
	if t == "" || s.Small() {
		return Remark{}
	}
	others := 0
	for _, m := range r.Members {
		if m.Name != t && m.Problem == "" && !m.Learner {
			others++
		}
	}
	if need := state.Quorum(len(r.Members)); others < need {
		return Remark{Member: t, Text: fmt.Sprintf("without %s only %d of %d members would be left, and a quorum is %d", t, others, len(r.Members), need)}
	}
	return Remark{}
}

// Restarting is the member that the roll takes next, or "".
func (s *Situation) Restarting(exempt string) string {
	if exempt != "" {
		return exempt
	}
	if t := s.NextRestart(); s.Rolling() && t != nil {
		return t.Name
	}
	return ""
}

// CatchUpProblem is about a member that has not yet applied what the leader had
// committed before; one that does not answer at all is the business of the gate, and
// one that leaves need not catch up.
func (s *Situation) CatchUpProblem(before, last *state.Round, leaves string) Remark {
	goal := before.Leader().CommitIndex
	for _, m := range last.Members {
		if m.Problem == "" && m.AppliedIndex < goal && m.Name != leaves {
			return Remark{
				Member: m.Name, Text: m.Name + " has not applied yet what the leader had committed",
				Detail: fmt.Sprintf("%d of %d entries", m.AppliedIndex, goal),
			}
		}
	}
	return Remark{}
}

// roster is a member list as text, in a fixed order.
func roster(members map[string]string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		names = append(names, name+"="+members[name])
	}
	return strings.Join(names, " ")
}
