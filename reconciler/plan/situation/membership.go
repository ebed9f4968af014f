package situation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

const (
	// joinTime is how long a learner may take to become a voter, and joinTimePerGiB
	// what each GiB of data adds to it.
	joinTime       = 10 * time.Minute
	joinTimePerGiB = 10 * time.Minute
)

// StillWanted reports whether a member whose removal has begun, but that etcd still
// lists, is wanted after all: Git has changed its mind, and its data is there.
func (s *Situation) StillWanted(l state.Leaving) bool {
	p := s.Observed.Pod(l.Member)
	return !l.Replace && s.WantsMember(l.Member) && (p == nil || s.LossOf(*p) == nil)
}

// Unremovable tells why the others cannot do without a member, or "". Etcd needs a
// quorum of the members that there are for the removal, and of the others after it.
func (s *Situation) Unremovable(r *state.Round, member string) string {
	voters, well, self := 0, 0, 0
	for _, m := range r.Members {
		switch {
		case m.Learner:
			return state.NameOf(m) + " is a learner, and one change at a time is enough"
		case m.Name == member:
			if m.Problem == "" {
				self = 1
			}
		case m.Problem == "" && s.keepsServing(m.Name):
			well++
		}
		voters++
	}
	switch now, after := state.Quorum(voters), state.Quorum(voters-1); {
	case voters < 2:
		return "it is the only member"
	case r.Leader() == nil:
		return "there is no leader"
	case well < after:
		return fmt.Sprintf("only %d of the %d others are healthy, and their quorum is %d", well, voters-1, after)
	case well+self < now:
		return fmt.Sprintf("only %d of %d members are healthy, and a quorum is %d", well+self, voters, now)
	}
	return ""
}

// keepsServing reports whether a member's pod keeps serving.
func (s *Situation) keepsServing(name string) bool {
	p := s.Observed.Pod(name)
	return p != nil && s.up(*p)
}

// OtherLearner is a learner that runs under another name, or "". One without a name
// may be the one that joins: etcd was asked, and its answer got lost.
func (s *Situation) OtherLearner(member string) string {
	for _, m := range s.Observed.Round().Members {
		if m.Learner && m.Name != "" && m.Name != member {
			return m.Name
		}
	}
	return ""
}

// Electable tells why a change of the member list would not get its quorum, or "".
func (s *Situation) Electable() string {
	voters, well := 0, 0
	for _, m := range s.Observed.Round().Members {
		if m.Learner {
			continue
		}
		voters++
		if m.Problem == "" {
			well++
		}
	}
	switch {
	case s.Observed.Round().Leader() == nil:
		return "there is no leader"
	case well < state.Quorum(voters):
		return fmt.Sprintf("only %d of %d members are healthy", well, voters)
	}
	return ""
}

// LearnerProblem is why a learner cannot be promoted yet.
func (s *Situation) LearnerProblem(j state.Joining, m state.Member) Remark {
	why := func(text, detail string) Remark { return Remark{j.Member, text, detail} }
	p := s.Observed.Pod(j.Member)
	switch {
	case p == nil:
		return why("its pod does not exist yet", "")
	case p.Terminating:
		return why("its pod is shutting down", "")
	case p.Trouble != "":
		return why(p.Trouble, "")
	case m.Problem != "":
		return why("it does not answer yet", m.Problem)
	case m.Name == "":
		return why("it has not started yet", "")
	}
	return Remark{}
}

// JoinTime is how long a learner may take, by the data that it has to get, and where it has to
// prove itself by the time for that.
func (s *Situation) JoinTime() time.Duration {
	largest := int64(0)
	for _, m := range s.Observed.Round().Members {
		largest = max(largest, m.DBSize)
	}
	most := joinTime + (time.Duration(largest>>20) * joinTimePerGiB >> 10).Round(time.Second)
	if s.Surging() {
		most += s.SoakTime(state.Pod{})
	}
	return most
}

// JoinsAsBefore reports whether a new member comes as what the others were before a
// roll that Git has given up: as what that roll would make of it, it may never start.
func (s *Situation) JoinsAsBefore() bool {
	j := s.Observed.Record.Joining
	return j != nil && j.ID != "" && s.RollAbandoned()
}

// RollAbandoned reports whether Git no longer wants what the StatefulSet would make of the
// next pod, and the cluster still takes what it was before.
func (s *Situation) RollAbandoned() bool {
	return !s.Started() && !state.Older(state.Minor(s.Observed.Set.CurrentVersion), state.Minor(s.ClusterVersion()))
}

// PodCount is how many pods there should be: up to the highest ordinal of those that
// are members, join, or are being replaced.
func (s *Situation) PodCount() int32 {
	r := s.Observed.Record
	switch {
	case r.Hibernated || r.Deleted:
		return 0
	case !s.Formed():
		return s.Founders()
	}
	highest := int32(-1)
	for name := range r.Members {
		highest = max(highest, naming.Ordinal(name))
	}
	if r.Joining != nil && r.Joining.ID != "" {
		highest = max(highest, naming.Ordinal(r.Joining.Member))
	}
	if r.Replacing != "" && s.WantsMember(r.Replacing) {
		highest = max(highest, naming.Ordinal(r.Replacing))
	}
	return highest + 1
}

// Founders is how many members the cluster begins with.
func (s *Situation) Founders() int32 {
	if s.Observed.Record != nil && s.Observed.Record.Founders > 0 {
		return s.Observed.Record.Founders
	}
	return s.Desired.Spec.Replicas
}

// MemberCount is how many members there are, by the record: a person may
// have scaled the StatefulSet manually.
func (s *Situation) MemberCount() int {
	if s.Formed() {
		return len(s.Observed.Record.Members)
	}
	return int(s.Founders())
}

// IsMember reports whether the record lists the name. Before the cluster has formed
// every pod is one.
func (s *Situation) IsMember(name string) bool {
	return !s.Formed() || s.Observed.Record.Members[name] != ""
}

// WantsMember reports whether Git wants a member of that name.
func (s *Situation) WantsMember(name string) bool {
	return naming.Ordinal(name) < s.Desired.Spec.Replicas
}

// Complete reports whether the members are exactly those that Git wants.
func (s *Situation) Complete() bool {
	if len(s.Observed.Record.Members) != int(s.Desired.Spec.Replicas) || s.Observed.Record.Joining != nil || s.Observed.Record.Leaving != nil {
		return false
	}
	return !s.TooMany()
}

// TooMany reports whether there are members that Git does not want.
func (s *Situation) TooMany() bool {
	for name := range s.Observed.Record.Members {
		if !s.WantsMember(name) {
			return true
		}
	}
	return false
}

// ByOrdinal are the recorded members, lowest ordinal first, as numbers: 9 before 10.
func (s *Situation) ByOrdinal() []string {
	return slices.SortedFunc(maps.Keys(s.Observed.Record.Members), func(a, b string) int {
		return cmp.Or(cmp.Compare(naming.Ordinal(a), naming.Ordinal(b)), cmp.Compare(a, b))
	})
}

// FailedJoins is how often in a row a member could not join.
func (s *Situation) FailedJoins(member string) int {
	if f := s.Observed.Record.FailedJoin; f != nil && f.Member == member {
		return max(f.Times, 1)
	}
	return 0
}

// TemplateFor is the template that a pod of the ordinal is made from now.
func (s *Situation) TemplateFor(ordinal int32) string {
	if ordinal < s.Observed.Set.Partition && s.Observed.Set.CurrentTemplate != "" {
		return s.Observed.Set.CurrentTemplate
	}
	return s.Observed.Set.Template
}
