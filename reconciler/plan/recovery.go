package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// recovery speaks when what is left of the members is no quorum. It lists what
// is there, so that a person can choose, and does nothing by itself: whatever
// goes on from less than a quorum may lose what was acknowledged. What it does is
// what spec.recovery says, once.
func recovery(s *situation) verdict {
	if !s.formed() {
		return pass()
	}
	oneShot := s.wishedRecovery()
	switch {
	case s.o.Set == nil:
		return pass()
	case oneShot == "" && s.o.Record.RefusedRecovery != "":
		return do(RefuseRecovery{}, "Git no longer asks for it")
	case !s.quorumLost(oneShot != ""):
		return s.needlessRecovery(oneShot)
	case oneShot != "":
		return s.begin(oneShot)
	}
	return unhealthy(s.inventory(), s.choices())
}

// choices is what a person can do about a lost quorum.
func (s *situation) choices() string {
	id := s.o.Record.ClusterID
	var from []string
	if best := s.furthest(); best != "" {
		from = append(from, fmt.Sprintf("{clusterID: %q, member: %s}", id, best))
	}
	from = append(from, fmt.Sprintf("{clusterID: %q, objectURL: the URL of a backup}", id))
	return "bring back a node or a volume of those that are missing, and the cluster goes on by itself; " +
		"or, to give up what only they have, commit spec.recovery: " + strings.Join(from, " or ")
}

// furthest is the member that answers and that no other one is ahead of, or "".
func (s *situation) furthest() string {
	var best *Member
	for _, m := range s.remnants() {
		if m.member != nil && (best == nil || ahead(m.member, best)) {
			best = m.member
		}
	}
	if best == nil {
		return ""
	}
	return best.Name
}

// remnant is what is left of one member.
type remnant struct {
	name string
	// member is what it says of itself; nil when it does not answer.
	member *Member
	// why it does not answer.
	why string
	// starting says that it may come back without anybody's help.
	starting bool
}

// quorumLost says whether too few members are left to agree on anything, and no
// more are on their way back. A list of the members is an agreement: with one,
// there is a quorum. A roll of a cluster that cannot keep its quorum without one
// member is no loss, unless somebody asks for a recovery.
func (s *situation) quorumLost(asked bool) bool {
	r := s.o.round()
	if r == nil || r.Problem == "" {
		return false
	}
	if !asked && s.small() && s.rolled() {
		return false
	}
	left := 0
	for _, m := range s.remnants() {
		if m.member != nil || m.starting {
			left++
		}
	}
	return left < quorumOf(s.remnants())
}

// rolled says whether a roll is under way, or has just restarted the last member.
func (s *situation) rolled() bool {
	return s.rolling() || s.o.Set.CurrentTemplate != s.d.Template
}

// quorumOf is how many of the members must agree.
func quorumOf(voters []remnant) int { return len(voters)/2 + 1 }

// remnants are the members with a vote, by their ordinals.
func (s *situation) remnants() []remnant {
	var all []remnant
	for _, name := range s.byOrdinal() {
		all = append(all, s.remnant(name, s.o.Record.Members[name]))
	}
	// One that may have been promoted may have a vote.
	if j := s.o.Record.Joining; j != nil && j.Promoting && s.o.Record.Members[j.Member] == "" {
		all = append(all, s.remnant(j.Member, j.ID))
	}
	return all
}

// remnant is one member. Only one that has its recorded ID is the member: who
// answers in its place under another ID has other data.
func (s *situation) remnant(name, id string) remnant {
	left := remnant{name: name}
	p, m := s.o.pod(name), s.o.round().member(name)
	switch {
	case p == nil:
		left.why = "it has no pod"
	case p.Terminating:
		left.why = "its pod is shutting down"
	case m != nil && m.ID == id:
		left.member = m
	case m != nil && m.ID != "":
		left.why = "its pod answers as member " + m.ID
	default:
		left.why = cmp.Or(p.Trouble, problemOf(m), "its pod has no address yet")
		left.starting = s.starting(*p)
	}
	return left
}

// starting says whether a pod that is not ready may only need some time. One that
// was ready, and ceased to be although its etcd runs on, does not just start.
func (s *situation) starting(p Pod) bool {
	if !p.UnreadySince.IsZero() {
		return s.now.Sub(p.UnreadySince) < trouble
	}
	age := s.now.Sub(p.Created)
	return age < trouble || (age < comeback && p.Trouble == "")
}

// problemOf is why a member did not answer, or "".
func problemOf(m *Member) string {
	if m == nil {
		return ""
	}
	return m.Problem
}

// inventory lists what is left: members with what they hold, those that do not
// answer and why, volumes, and the last verified backup.
func (s *situation) inventory() string {
	var answering, silent []string
	all := s.remnants()
	for _, m := range all {
		if m.member == nil {
			silent = append(silent, fmt.Sprintf("%s does not answer: %s", m.name, m.why))
			continue
		}
		answering = append(answering, fmt.Sprintf("%s answers, at revision %d, raft term %d and index %d",
			m.name, m.member.Revision, m.member.Term, m.member.Applied))
	}
	lines := slices.Concat(answering, silent, []string{s.claimsLeft(), s.backupLeft()})
	return fmt.Sprintf("the quorum is lost: it takes %d of %s, and %d answer (%s)",
		quorumOf(all), members(len(all)), len(answering), strings.Join(lines, "; "))
}

// claimsLeft lists the volume claims that exist. What is on them nobody can say
// before a member starts.
func (s *situation) claimsLeft() string {
	if len(s.o.Volumes) == 0 {
		return "no volume claim is left"
	}
	var claims []string
	for _, v := range slices.SortedFunc(slices.Values(s.o.Volumes), func(a, b Volume) int { return cmp.Compare(a.Ordinal, b.Ordinal) }) {
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
func (s *situation) backupLeft() string {
	b := s.o.Record.Backup
	if b == nil || b.ClusterID != s.o.Record.ClusterID {
		return "no verified backup is on record"
	}
	object, _, _ := strings.Cut(b.URL, "?")
	age := strings.TrimSuffix(s.now.Sub(b.Time).Round(time.Minute).String(), "0s")
	return fmt.Sprintf("the last verified backup is %s, %s old", object, age)
}
