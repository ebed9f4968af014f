package situation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/state"
)

// Choices is what a person can do about a lost quorum.
func (s *Situation) Choices() string {
	return "bring back a node or a volume of those that are missing, and the cluster continues; " +
		"or, to give up what only they have, " + Recoveries(s)
}

// Recoveries are what spec.recovery could say, and what each gives up.
func Recoveries(s *Situation) string {
	id := s.Observed.Record.ClusterID
	var from []string
	if best := s.furthest(); best != "" {
		from = append(from, fmt.Sprintf("{clusterID: %q, member: %s}", id, best))
	}
	from = append(from, fmt.Sprintf("{clusterID: %q, objectURL: the URL of a backup}", id))
	return "commit spec.recovery: " + strings.Join(from, " or ")
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
	// member is what it reports about itself; nil when it does not answer.
	Member *state.Member
	// Why it does not answer.
	Why Remark
	// starting says that it may come back without help.
	starting bool
}

// QuorumLost reports whether too few members are left to agree on anything, and no
// more are on their way back. A list of the members is an agreement: with one,
// there is a quorum. A roll of a cluster that cannot keep its quorum without one
// member is no loss, unless a recovery is asked for.
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
	return left < state.Quorum(len(s.Remnants()))
}

// rolled reports whether a roll is under way, or has just restarted the last member.
func (s *Situation) rolled() bool {
	return s.Rolling() || s.Observed.Set.CurrentTemplate != s.Desired.Template
}

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

// Remnant is one member. Only one that has its recorded ID is the member: what
// answers in its place under another ID has other data.
func (s *Situation) Remnant(name, id string) Remnant {
	left := Remnant{Name: name, Why: Remark{Member: name}}
	p, m := s.Observed.Pod(name), s.Observed.Round().Member(name)
	switch {
	case p == nil:
		left.Why.Text = "it has no pod"
	case p.Terminating:
		left.Why.Text = "its pod is shutting down"
	case m != nil && m.ID == id:
		left.Member = m
	case m != nil && m.ID != "":
		left.Why.Text = "its pod answers as member " + m.ID
	case p.Trouble != "":
		left.Why.Text, left.starting = p.Trouble, s.Starting(*p)
	case m != nil && m.Problem != "":
		left.Why.Detail, left.starting = m.Problem, s.Starting(*p)
	default:
		left.Why.Text, left.starting = "its pod has no address yet", s.Starting(*p)
	}
	return left
}

// Starting reports whether a pod that is not ready may only need some time. One that
// was ready, and ceased to be although its etcd runs on, does not just start.
func (s *Situation) Starting(p state.Pod) bool {
	if !p.UnreadySince.IsZero() {
		return s.Now.Sub(p.UnreadySince) < TroubleGrace
	}
	age := s.Now.Sub(p.Created)
	return age < TroubleGrace || (age < ComebackTime && p.Trouble == "")
}

// Inventory lists what is left: members with what they hold, those that do not
// answer and why, volumes, and the last verified backup.
func (s *Situation) Inventory() Remark {
	var answering, silent, measured []string
	all := s.Remnants()
	for _, m := range all {
		switch {
		case m.Member != nil:
			answering = append(answering, m.Name+" answers")
			measured = append(measured, fmt.Sprintf("%s is at revision %d, raft term %d and index %d", m.Name, m.Member.Revision, m.Member.Term, m.Member.AppliedIndex))
		case m.Why.None():
			silent = append(silent, m.Name+" does not answer")
		default:
			silent = append(silent, fmt.Sprintf("%s does not answer: %s", m.Name, m.Why.Text))
		}
		if m.Why.Detail != "" {
			measured = append(measured, m.Name+": "+m.Why.Detail)
		}
	}
	backup := s.backupLeft()
	if backup.Detail != "" {
		measured = append(measured, backup.Detail)
	}
	lines := slices.Concat(answering, silent, []string{s.claimsLeft(), backup.Text})
	return Remark{
		Text: fmt.Sprintf("the quorum is lost: it takes %d of %s, and %d answer; %s",
			state.Quorum(len(all)), state.Plural(len(all), "member"), len(answering), strings.Join(lines, "; ")),
		Detail: strings.Join(measured, "; "),
	}
}

// claimsLeft lists the volume claims that exist. What is on them is unknown
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
func (s *Situation) backupLeft() Remark {
	b := s.Observed.Record.Backup
	if b == nil || b.ClusterID != s.Observed.Record.ClusterID {
		return Remark{Text: "no verified backup is on record"}
	}
	object, _, _ := strings.Cut(b.URL, "?")
	age, known := clock.Age(b.Time, s.Now)
	if !known {
		return Remark{Text: "the last verified backup is " + object + ", of unknown age"}
	}
	return Remark{Text: "the last verified backup is " + object, Detail: "the backup is " + strings.TrimSuffix(age.Round(time.Minute).String(), "0s") + " old"}
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

// Ahead reports whether a has something that b lacks.
func Ahead(a, b *state.Member) bool {
	return a.Revision > b.Revision || (a.Revision == b.Revision && a.AppliedIndex > b.AppliedIndex)
}

// FirstMemberProblem is why the first member does not yet answer as what it should be.
func (s *Situation) FirstMemberProblem(r state.Recovering) Remark {
	why := func(text, detail string) Remark { return Remark{r.Member, text, detail} }
	p, round := s.Observed.Pod(r.Member), s.Observed.Round()
	m := round.Member(r.Member)
	switch {
	case p == nil:
		return why("it has no pod yet", "")
	case p.Trouble != "":
		return why(p.Trouble, "")
	case round == nil:
		return why("it was not asked yet", "")
	case m == nil || round.Problem != "":
		return why("it does not answer yet", round.Problem)
	case m.Problem != "":
		return why("it does not answer yet", m.Problem)
	case round.ClusterID != r.NewClusterID || m.ID != r.NewMemberID:
		return why(fmt.Sprintf("it answers as member %s of cluster %s", m.ID, round.ClusterID), "")
	case len(round.Members) != 1 || m.Learner:
		return why(fmt.Sprintf("it lists %s", state.Plural(len(round.Members), "member")), "")
	case m.Leader != m.ID:
		return why("it does not lead yet", "")
	case !p.Ready:
		return why("its pod is not ready yet", "")
	}
	return Remark{}
}
