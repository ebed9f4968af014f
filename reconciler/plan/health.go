package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Between is the least time between the two looks that confirm health.
const Between = 200 * time.Millisecond

// The limits of the health gate.
const (
	// lag is how many raft entries a healthy member may be behind the leader.
	lag = 1000
	// fresh is how old a look may be that an action builds on.
	fresh = 15 * time.Second
)

// health is the gate: nothing below it happens while a member is not well. The
// one exception is the member that an abandoned roll broke, see victim.
func health(s *situation) verdict {
	if !s.formed() || s.alone() {
		return pass()
	}
	if len(s.o.Rounds) == 0 {
		return confirmIn(instant, "no member was asked yet")
	}
	if name := s.doubtful(); name != "" {
		return confirmIn(Between, name+" did not answer, and whether the abandoned roll broke it is seen in two looks")
	}
	problem := s.gate(s.o.round())
	if problem == "" {
		problem = s.podsReady()
	}
	for i := range s.o.Rounds {
		// Data that once differed at a revision does not get better by itself.
		if problem == "" {
			problem = s.hashes(&s.o.Rounds[i])
		}
	}
	if problem != "" {
		return unhealthy(problem, "nothing is restarted until the cluster is healthy; "+s.healthChoices(problem))
	}
	return pass()
}

// healthChoices is what a person can do about a member that is not well. One that
// does not run keeps its data and its place, whatever the reason is.
func (s *situation) healthChoices(problem string) string {
	for _, p := range s.o.Pods {
		if p.Trouble == "" || !s.isMember(p.Name) || !strings.HasPrefix(problem, p.Name+" ") {
			continue
		}
		if next := s.target(); s.rolling() && next != nil && next.Name != p.Name {
			return fmt.Sprintf("what Git asks for would reach %s first, which serves; bring %s back by other means, and the roll goes on", next.Name, p.Name)
		}
		if s.memberCount() > 2 && !s.rolling() {
			return fmt.Sprintf("%s comes back by itself once the cause is mended; if its data is worth nothing, delete its pod and its volume claim %s, and a new member takes its place",
				p.Name, s.claim(p.Name))
		}
	}
	if gone := s.removedByHand(); gone != "" && s.memberCount() > 2 {
		return fmt.Sprintf("somebody has removed %s: delete its pod and its volume claim %s, which are worth nothing to etcd any more, and a new member takes its place",
			gone, s.claim(gone))
	}
	return "look at " + s.concerned(problem)
}

// removedByHand is the recorded member that the list no longer has, where it has
// exactly all the others, or "".
func (s *situation) removedByHand() string {
	r, gone := s.o.round(), ""
	if r.Problem != "" || r.ClusterID != s.o.Record.ClusterID || len(r.Members) != len(s.o.Record.Members)-1 {
		return ""
	}
	for name, id := range s.o.Record.Members {
		switch m := r.byID(id); {
		case m == nil:
			gone = name
		case m.Name != name:
			return ""
		}
	}
	return gone
}

// concerned is whom a person looks at because of a problem.
func (s *situation) concerned(problem string) string {
	for name, id := range s.o.Record.Members {
		if strings.Contains(problem, name) || strings.Contains(problem, id) {
			return "the member named here"
		}
	}
	return "the pods of its members"
}

// doubtful is a member that only one look has seen, that did not answer in it, and
// that would be a victim if it did not in the next one either; empty for none.
func (s *situation) doubtful() string {
	if len(s.o.Rounds) > 1 {
		return ""
	}
	for _, p := range s.outdated() {
		if p.Ready && !p.Terminating && !s.wellNow(p) && p.Template != s.o.Set.CurrentTemplate {
			return p.Name
		}
	}
	return ""
}

// confirm wants the gate to hold twice in a row, the first time with hashes, and
// every member to have applied by the second look what the leader had committed
// at the first.
func confirm(s *situation) verdict {
	if !s.unfinished() || s.alone() {
		return pass()
	}
	return s.twice()
}

// twice is what confirm wants, for whoever else is about to touch a member.
func (s *situation) twice() verdict {
	last := s.o.round()
	if s.now.Sub(last.At) > fresh {
		return confirmIn(instant, "the last look at the members is too old to act on")
	}
	if len(s.o.Rounds) < 2 {
		return confirmIn(instant, "health counts when it was seen twice")
	}
	before := &s.o.Rounds[len(s.o.Rounds)-2]
	if !before.Deep {
		return confirmIn(instant, "the members' data has not been compared yet")
	}
	if last.At.Sub(before.At) < Between {
		return confirmIn(Between, "the two looks at the members were too close to each other")
	}
	if problem := s.gate(before); problem != "" {
		return confirmIn(Between, "healthy now, but a moment ago: "+problem)
	}
	if problem := s.behind(before, last, ""); problem != "" {
		return confirmIn(Between, problem)
	}
	return pass()
}

// confirmIn asks for another look.
func confirmIn(wait time.Duration, message string) verdict {
	return verdict{hold: &Hold{Kind: HoldConfirm, Message: message, Again: wait}}
}

// gate says what is wrong with the cluster in one look, or "".
func (s *situation) gate(r *Round) string {
	exempt := s.exemptName()
	for _, check := range []func(*Round, string) string{
		s.identity, s.answers, s.agreement, s.troubles, s.versionsMatch, s.quorum,
	} {
		if problem := check(r, exempt); problem != "" {
			return problem
		}
	}
	return ""
}

// exemptName is the name of the member that the gate looks past, or "".
func (s *situation) exemptName() string {
	if v := s.rollVictim(); v != nil {
		return v.Name
	}
	return ""
}

// identity compares the member list with the record.
func (s *situation) identity(r *Round, _ string) string {
	if r.Problem != "" {
		return "the members cannot be listed: " + r.Problem
	}
	if r.ClusterID != s.o.Record.ClusterID {
		return fmt.Sprintf("the members say that they are cluster %s, the record says %s", r.ClusterID, s.o.Record.ClusterID)
	}
	listed := map[string]string{}
	for _, m := range r.Members {
		if m.Learner {
			return nameOf(m) + " is a learner, which nobody asked for"
		}
		listed[m.Name] = m.ID
	}
	if !maps.Equal(listed, s.o.Record.Members) {
		return fmt.Sprintf("the member list (%s) is not the recorded one (%s)", roster(listed), roster(s.o.Record.Members))
	}
	return ""
}

// podsReady wants Kubernetes to think well of every member, too.
func (s *situation) podsReady() string {
	exempt := s.exemptName()
	for _, p := range s.o.Pods {
		if s.isMember(p.Name) && p.Name != exempt && (!p.Ready || p.Terminating) {
			return "the pod of " + p.Name + " is not ready"
		}
	}
	return ""
}

// answers wants every member to answer for itself.
func (s *situation) answers(r *Round, exempt string) string {
	for _, m := range r.Members {
		if m.Name == exempt {
			continue
		}
		if p := s.o.pod(m.Name); p != nil && p.Trouble != "" && !p.Ready {
			return fmt.Sprintf("%s does not run: %s", m.Name, p.Trouble)
		}
		if m.Problem != "" {
			return fmt.Sprintf("%s does not answer: %s", m.Name, m.Problem)
		}
	}
	return ""
}

// agreement wants one leader, followed by all in one term, and nobody far behind.
func (s *situation) agreement(r *Round, exempt string) string {
	leader := r.leader()
	if leader == nil {
		return "there is no leader"
	}
	for _, m := range r.Members {
		switch {
		case m.Name == exempt:
		case m.Leader != leader.ID || m.Term != leader.Term:
			return fmt.Sprintf("%s does not follow the leader %s", m.Name, leader.Name)
		case m.Applied+lag < leader.Commit:
			return fmt.Sprintf("%s is %d entries behind the leader", m.Name, leader.Commit-m.Applied)
		}
	}
	return ""
}

// troubles are what etcd itself complains of.
func (s *situation) troubles(r *Round, exempt string) string {
	pardoned := s.pardons(r)
	if len(r.Alarms) > 0 && !pardoned {
		return "alarm: " + alarmList(r.Alarms)
	}
	if r.Downgrading && !s.ours(r) {
		return fmt.Sprintf("a downgrade to %s is in progress, which nobody asked for in Git; `etcdctl downgrade cancel` ends it", cmp.Or(r.DowngradeTarget, "another release"))
	}
	for _, m := range r.Members {
		switch {
		case m.Name == exempt:
		case len(m.Errors) > 0 && (!pardoned || !onlyOf(m.Errors, NoSpace)):
			return fmt.Sprintf("%s reports: %s", m.Name, strings.Join(m.Errors, ", "))
		case m.Quota > 0 && m.DBSize >= m.Quota && !pardoned:
			return fmt.Sprintf("the database of %s has reached its quota", m.Name)
		}
	}
	return ""
}

// versionsMatch wants every member to run what its pod was made for.
func (s *situation) versionsMatch(r *Round, exempt string) string {
	for _, m := range r.Members {
		p := s.o.pod(m.Name)
		if m.Name != exempt && p != nil && m.Version != p.Version {
			return fmt.Sprintf("%s runs etcd %s, but its pod was made for %s: the image is not what its tag says", m.Name, m.Version, p.Version)
		}
	}
	return ""
}

// hashes wants members that can be compared to hold the same data.
func (s *situation) hashes(r *Round) string {
	leader := r.leader()
	if !r.Deep || leader == nil {
		return ""
	}
	for _, m := range r.Members {
		alike := m.HashRevision == leader.HashRevision && m.CompactRevision == leader.CompactRevision
		if alike && m.Hash != leader.Hash {
			return fmt.Sprintf("%s and %s hold different data at revision %d", m.Name, leader.Name, m.HashRevision)
		}
	}
	return ""
}

// quorum wants the others to keep a quorum while the target is down. One or two
// members never can, and their owner has chosen that.
func (s *situation) quorum(r *Round, exempt string) string {
	t := s.restarting(exempt)
	if t == "" || s.small() {
		return ""
	}
	others := 0
	for _, m := range r.Members {
		if m.Name != t && m.Problem == "" && !m.Learner {
			others++
		}
	}
	if need := len(r.Members)/2 + 1; others < need {
		return fmt.Sprintf("without %s only %d of %d members would be left, and a quorum is %d", t, others, len(r.Members), need)
	}
	return ""
}

// restarting is the member that the roll takes next, or "".
func (s *situation) restarting(exempt string) string {
	if exempt != "" {
		return exempt
	}
	if t := s.target(); s.rolling() && t != nil {
		return t.Name
	}
	return ""
}

// behind says who has not yet applied what the leader had committed before; who
// does not answer at all is the gate's business, and one that leaves need not
// catch up.
func (s *situation) behind(before, last *Round, leaves string) string {
	goal := before.leader().Commit
	for _, m := range last.Members {
		if m.Problem == "" && m.Applied < goal && m.Name != leaves {
			return fmt.Sprintf("%s has applied %d of %d entries", m.Name, m.Applied, goal)
		}
	}
	return ""
}

// roster is a member list as text, in a fixed order.
func roster(members map[string]string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		names = append(names, name+"="+members[name])
	}
	return strings.Join(names, " ")
}

// nameOf is the member's name, or its ID while it has none.
func nameOf(m Member) string {
	if m.Name == "" {
		return m.ID
	}
	return m.Name
}
