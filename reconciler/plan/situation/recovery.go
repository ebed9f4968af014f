package situation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/state"
)

// Choices is what a person can do about a lost quorum.
func (s *Situation) Choices() string {
	id := s.Observed.Record.ClusterID
	var from []string
	if best := s.furthest(); best != "" {
		from = append(from, fmt.Sprintf("{clusterID: %q, member: %s}", id, best))
	}
	from = append(from, fmt.Sprintf("{clusterID: %q, objectURL: the URL of a backup}", id))
	return "bring back a node or a volume of those that are missing, and the cluster goes on by itself; " +
		"or, to give up what only they have, commit spec.recovery: " + strings.Join(from, " or ")
}

// furthest is the member that answers and that no other one is ahead of, or "".
func (s *Situation) furthest() string {
	var best *state.Member
	for _, m := range s.Remnants() {
		if m.Member != nil && (best == nil || Ahead(m.Member, best)) {
			best = m.Member
		}
	}
	if best == nil {
		return ""
	}
	return best.Name
}

// Remnant is what is left of one member.
type Remnant struct {
	Name string
	// member is what it says of itself; nil when it does not answer.
	Member *state.Member
	// why it does not answer.
	Why string
	// starting says that it may come back without anybody's help.
	starting bool
}

// QuorumLost says whether too few members are left to agree on anything, and no
// more are on their way back. A list of the members is an agreement: with one,
// there is a quorum. A roll of a cluster that cannot keep its quorum without one
// member is no loss, unless somebody asks for a recovery.
func (s *Situation) QuorumLost(asked bool) bool {
	r := s.Observed.Round()
	if r == nil || r.Problem == "" {
		return false
	}
	if !asked && s.Small() && s.rolled() {
		return false
	}
	left := 0
	for _, m := range s.Remnants() {
		if m.Member != nil || m.starting {
			left++
		}
	}
	return left < quorumOf(s.Remnants())
}

// rolled says whether a roll is under way, or has just restarted the last member.
func (s *Situation) rolled() bool {
	return s.Rolling() || s.Observed.Set.CurrentTemplate != s.Desired.Template
}

// quorumOf is how many of the members must agree.
func quorumOf(voters []Remnant) int { return len(voters)/2 + 1 }

// Remnants are the members with a vote, by their ordinals.
func (s *Situation) Remnants() []Remnant {
	var all []Remnant
	for _, name := range s.ByOrdinal() {
		all = append(all, s.Remnant(name, s.Observed.Record.Members[name]))
	}
	// One that may have been promoted may have a vote.
	if j := s.Observed.Record.Joining; j != nil && j.Promoting && s.Observed.Record.Members[j.Member] == "" {
		all = append(all, s.Remnant(j.Member, j.ID))
	}
	return all
}

// Remnant is one member. Only one that has its recorded ID is the member: who
// answers in its place under another ID has other data.
func (s *Situation) Remnant(name, id string) Remnant {
	left := Remnant{Name: name}
	p, m := s.Observed.Pod(name), s.Observed.Round().Member(name)
	switch {
	case p == nil:
		left.Why = "it has no pod"
	case p.Terminating:
		left.Why = "its pod is shutting down"
	case m != nil && m.ID == id:
		left.Member = m
	case m != nil && m.ID != "":
		left.Why = "its pod answers as member " + m.ID
	default:
		left.Why = cmp.Or(p.Trouble, problemOf(m), "its pod has no address yet")
		left.starting = s.starting(*p)
	}
	return left
}

// starting says whether a pod that is not ready may only need some time. One that
// was ready, and ceased to be although its etcd runs on, does not just start.
func (s *Situation) starting(p state.Pod) bool {
	if !p.UnreadySince.IsZero() {
		return s.Now.Sub(p.UnreadySince) < TroubleGrace
	}
	age := s.Now.Sub(p.Created)
	return age < TroubleGrace || (age < ComebackTime && p.Trouble == "")
}

// problemOf is why a member did not answer, or "".
func problemOf(m *state.Member) string {
	if m == nil {
		return ""
	}
	return m.Problem
}

// Inventory lists what is left: members with what they hold, those that do not
// answer and why, volumes, and the last verified backup.
func (s *Situation) Inventory() string {
	var answering, silent []string
	all := s.Remnants()
	for _, m := range all {
		if m.Member == nil {
			silent = append(silent, fmt.Sprintf("%s does not answer: %s", m.Name, m.Why))
			continue
		}
		answering = append(answering, fmt.Sprintf("%s answers, at revision %d, raft term %d and index %d",
			m.Name, m.Member.Revision, m.Member.Term, m.Member.AppliedIndex))
	}
	lines := slices.Concat(answering, silent, []string{s.claimsLeft(), s.backupLeft()})
	return fmt.Sprintf("the quorum is lost: it takes %d of %s, and %d answer (%s)",
		quorumOf(all), state.Plural(len(all), "member"), len(answering), strings.Join(lines, "; "))
}

// claimsLeft lists the volume claims that exist. What is on them nobody can say
// before a member starts.
func (s *Situation) claimsLeft() string {
	if len(s.Observed.Volumes) == 0 {
		return "no volume claim is left"
	}
	var claims []string
	for _, v := range slices.SortedFunc(slices.Values(s.Observed.Volumes), func(a, b state.Volume) int { return cmp.Compare(a.Ordinal, b.Ordinal) }) {
		switch {
		case v.Terminating:
			claims = append(claims, v.Claim+" (being deleted)")
		case v.Trouble != "":
			claims = append(claims, v.Claim+" ("+v.Trouble+")")
		default:
			claims = append(claims, v.Claim)
		}
	}
	return "volume claims: " + strings.Join(claims, ", ")
}

// backupLeft is the last verified backup of this cluster, and its age.
func (s *Situation) backupLeft() string {
	b := s.Observed.Record.Backup
	if b == nil || b.ClusterID != s.Observed.Record.ClusterID {
		return "no verified backup is on record"
	}
	object, _, _ := strings.Cut(b.URL, "?")
	age := strings.TrimSuffix(s.Now.Sub(b.Time).Round(time.Minute).String(), "0s")
	return fmt.Sprintf("the last verified backup is %s, %s old", object, age)
}

// RequestedRecovery is the recovery that Git asks for and that has not been done, in
// words; "" for none. It is once and for all: the words name the lost cluster.
func (s *Situation) RequestedRecovery() string {
	r := s.Desired.Spec.Recovery
	if r.Source() == "" {
		return ""
	}
	oneShot := r.ClusterID + " from " + r.Source()
	if slices.ContainsFunc(s.Observed.Record.Recovered, func(done state.Recovered) bool { return done.OneShot == oneShot }) {
		return ""
	}
	return oneShot
}

// Ahead says whether a has something that b lacks.
func Ahead(a, b *state.Member) bool {
	return a.Revision > b.Revision || (a.Revision == b.Revision && a.AppliedIndex > b.AppliedIndex)
}

// RecoveryBump is by how many revisions a recovered cluster is ahead, at least:
// see reconciler/restore.
const RecoveryBump = 1_000_000_000

// FirstMemberProblem says why the first member does not yet answer as what it should be, or "".
func (s *Situation) FirstMemberProblem(r state.Recovering) string {
	p, round := s.Observed.Pod(r.Member), s.Observed.Round()
	m := round.Member(r.Member)
	switch {
	case p == nil:
		return "it has no pod yet"
	case p.Trouble != "":
		return p.Trouble
	case round == nil:
		return "it was not asked yet"
	case m == nil || round.Problem != "":
		return cmp.Or(round.Problem, "it does not answer yet")
	case m.Problem != "":
		return m.Problem
	case round.ClusterID != r.NewClusterID || m.ID != r.NewMemberID:
		return fmt.Sprintf("it answers as member %s of cluster %s", m.ID, round.ClusterID)
	case len(round.Members) != 1 || m.Learner:
		return fmt.Sprintf("it lists %s", state.Plural(len(round.Members), "member"))
	case m.Leader != m.ID:
		return "it does not lead yet"
	case !p.Ready:
		return "its pod is not ready yet"
	}
	return ""
}

// RecoverOn lets what a recovery waits for come true, for a forecast.
func (s *Situation) RecoverOn() {
	if s.Observed.Record == nil || s.Observed.Record.Recovering == nil || s.Observed.Set == nil {
		return
	}
	s.Observed.Pods = slices.DeleteFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Ordinal >= s.Observed.Set.Replicas })
	if s.Observed.Restore.State == state.RestoreRunning {
		s.Observed.Restore.State = state.RestoreDone
	}
}
