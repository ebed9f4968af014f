package state

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Suspicious reports whether a round has a sign of members that hold different data:
// then the data is compared once more.
func Suspicious(r Round) bool {
	a, _ := r.Differing()
	return a != nil || r.Alarmed(Corrupt)
}

// Differing returns the first two members that are known to hold different data, or nil.
// The second one is the leader where that is one of them.
func (r *Round) Differing() (a, b *Member) {
	if !r.Deep {
		return nil, nil
	}
	if l := r.Leader(); l != nil {
		if m := r.differsFrom(l); m != nil {
			return m, l
		}
	}
	for i := range r.Members {
		if m := r.differsFrom(&r.Members[i]); m != nil {
			return &r.Members[i], m
		}
	}
	return nil, nil
}

// differsFrom returns the first member that is known to hold other data than one, or nil.
func (r *Round) differsFrom(one *Member) *Member {
	for i := range r.Members {
		if m := &r.Members[i]; Comparable(*m, *one) && m.Hash != one.Hash {
			return m
		}
	}
	return nil
}

// Compared are the rounds that compared the data of the members that could be asked.
func (o *Observed) Compared() []*Round {
	var looks []*Round
	for i := range o.Rounds {
		if r := &o.Rounds[i]; r.Deep && r.Problem == "" {
			looks = append(looks, r)
		}
	}
	return looks
}

// AssumeCompared takes the data of the members for compared, and the same, in the first of the
// last two rounds: what a plan that is not carried out goes by. Under the alarm CORRUPT the
// data is not the same.
func (o *Observed) AssumeCompared() {
	if len(o.Rounds) < 2 || o.Round().Alarmed(Corrupt) {
		return
	}
	o.Rounds[len(o.Rounds)-2].Deep = true
}

// Uncompared reports whether no round has compared the data, and why: "" where none has
// tried. A round that has left out a voter that answers by now has compared nothing: who
// does not answer at all is not waited for.
func (o *Observed) Uncompared() (uncompared bool, why string) {
	for _, r := range o.Compared() {
		if why = r.Incomparable; why == "" {
			why = r.leftOut(o.Round())
		}
		if why == "" {
			return false, ""
		}
	}
	return true, why
}

// leftOut tells of a voter that could not be asked for its data in this round, and answers
// in the last one; "" for none.
func (r *Round) leftOut(last *Round) string {
	for _, m := range last.Members {
		if then := r.ByID(m.ID); m.Problem == "" && !m.Learner && then != nil && then.Problem != "" {
			return NameOf(m) + ": " + then.Problem
		}
	}
	return ""
}

// Hashes lists the hash of each member.
func (r *Round) Hashes() string {
	var texts []string
	for _, m := range r.Members {
		texts = append(texts, fmt.Sprintf("%s %08x", m.Name, m.Hash))
	}
	return strings.Join(texts, ", ")
}

// Peers is what the leader knows of a member that does not answer quorate: that it is out of
// our reach does not mean that it is out of the leader's.
type Peers string

// What the leader knows of another member.
const (
	// PeersUnknown means that the leader was not asked, or has not said it.
	PeersUnknown Peers = ""
	// PeersApart means that the leader has heard nothing from it.
	PeersApart Peers = "apart"
	// PeersLinked means that the leader hears it: it runs.
	PeersLinked Peers = "linked"
)

// Listening is how long the leader must have heard nothing from a member before that says
// anything. It hears from each at every heartbeat, which is 100 ms unless set otherwise.
const Listening = 3 * time.Second

// Listen tells from an earlier round, at least Listening ago, whom the leader hears of those
// that do not answer.
func (r *Round) Listen(before *Round) {
	r.Listened = true
	for i := range r.Members {
		m, then := &r.Members[i], before.ByID(r.Members[i].ID)
		switch {
		case m.Problem == "" || r.HeardBy == "" || r.HeardBy != before.HeardBy || then == nil || then.Problem == "":
		case then.Heard == m.Heard:
			m.Peers = PeersApart
		default:
			m.Peers = PeersLinked
		}
	}
}

// Serving tells by what a member is known to serve, or to have served a moment ago, whatever
// Kubernetes says of its pod and its node; "" for nothing. A node that does not report,
// and one that quorate does not reach, may run it all the same.
func (o *Observed) Serving(id string) string {
	for i := range o.Rounds {
		switch m := o.Rounds[i].ByID(id); {
		case m == nil:
		case m.Problem == "":
			return "it answers"
		case m.Version != "": // its status, under its ID
			return "it answers (" + m.Problem + ")"
		case m.Peers == PeersLinked:
			return "the leader hears it"
		}
	}
	return ""
}

// Quorum is how many of n voters must agree.
func Quorum(n int) int { return n/2 + 1 }

// Comparable reports whether the hashes of two members are of the same thing.
func Comparable(a, b Member) bool {
	return a.HashRevision == b.HashRevision && a.CompactRevision == b.CompactRevision
}

// Between is the least time between the two rounds that confirm health.
const Between = 200 * time.Millisecond

// The limits of the health gate.
const (
	// MaxLag is how many raft entries a healthy member may be behind the leader.
	MaxLag = 1000
)

// NameOf is the member's name, or its ID while it has none.
func NameOf(m Member) string {
	if m.Name == "" {
		return m.ID
	}
	return m.Name
}

// Alarmed reports whether an alarm of that kind is on.
func (r *Round) Alarmed(kind string) bool {
	return slices.ContainsFunc(r.Alarms, func(a Alarm) bool { return a.Kind == kind })
}

// Keep takes over what a member holds from an earlier round: that all is well
// otherwise makes no database smaller.
func (m *Member) Keep(before *Member) {
	if before != nil {
		m.DBSize, m.DBInUse, m.Quota, m.Revision = before.DBSize, before.DBInUse, before.Quota, before.Revision
		m.Hash, m.HashRevision, m.CompactRevision, m.Keys = before.Hash, before.HashRevision, before.CompactRevision, before.Keys
	}
}
