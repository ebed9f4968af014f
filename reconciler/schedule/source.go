package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/state"
)

// Source chooses the member that a backup is taken from while nothing else
// is about to happen: a voter that answers, follows the leader and has caught up; a
// follower where there is one, for the leader has enough to do. Another member
// being down is no reason to go without a backup.
//
// members are the recorded IDs by name and clusterID is the recorded one; both are
// empty for a cluster that has no record. Where no member will do, problem says
// why: data that may be wrong makes no backup, for it would take the place of a
// good one.
func Source(clusterID string, members map[string]string, r state.Round) (source state.Member, problem string) {
	if problem := doubtfulData(clusterID, r); problem != "" {
		return state.Member{}, problem
	}
	leader, goal := leading(r)
	var fit []state.Member
	var unfit []string
	for _, m := range r.Members {
		if why := unfitSource(m, members, leader, goal); why != "" {
			unfit = append(unfit, state.NameOf(m)+" "+why)
			continue
		}
		fit = append(fit, m)
	}
	if len(fit) == 0 {
		return state.Member{}, "no member can give a backup: " + strings.Join(unfit, "; ")
	}
	return slices.MinFunc(fit, func(a, b state.Member) int {
		return cmp.Or(cmp.Compare(loads(a), loads(b)), cmp.Compare(b.AppliedIndex, a.AppliedIndex), cmp.Compare(a.Name, b.Name))
	}), ""
}

// loads is 1 for the leader, 0 for another member.
func loads(m state.Member) int {
	if m.ID == m.Leader {
		return 1
	}
	return 0
}

// doubtfulData says why nobody's data is to be trusted, or "".
func doubtfulData(clusterID string, r state.Round) string {
	switch {
	case r.Problem != "":
		return "the members cannot be listed: " + r.Problem
	case clusterID != "" && r.ClusterID != clusterID:
		return fmt.Sprintf("the members say that they are cluster %s, the record says %s", r.ClusterID, clusterID)
	}
	for _, a := range r.Alarms {
		if a.Kind == state.Corrupt {
			return "etcd has raised the alarm CORRUPT, and nobody knows yet whose data is right"
		}
	}
	if a, b := r.Differing(); a != nil {
		return fmt.Sprintf("%s and %s hold different data at revision %d, and nobody knows yet whose is right", a.Name, b.Name, a.HashRevision)
	}
	return ""
}

// leading is the ID of the member that those who answer follow in the newest term,
// and the highest index that any of them knows to be committed.
func leading(r state.Round) (leader string, goal uint64) {
	var term uint64
	for _, m := range r.Members {
		if m.Problem != "" || m.Learner {
			continue
		}
		goal = max(goal, m.CommitIndex)
		if m.Term >= term && m.Leader != "" {
			leader, term = m.Leader, m.Term
		}
	}
	return leader, goal
}

// unfitSource says why a member gives no backup, or "".
func unfitSource(m state.Member, members map[string]string, leader string, goal uint64) string {
	switch {
	case m.Learner:
		return "is a learner"
	case m.Problem != "":
		return "does not answer: " + m.Problem
	case len(members) > 0 && members[m.Name] != m.ID:
		return "is not the recorded member"
	case m.Leader == "" || m.Leader != leader:
		return "follows no leader, or another one"
	case m.AppliedIndex+state.MaxLag < goal:
		return fmt.Sprintf("is %d entries behind", goal-m.AppliedIndex)
	}
	return ""
}
