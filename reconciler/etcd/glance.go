package etcd

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/state"
)

// Glance asks each member for its status alone, and tells whether that is as in an earlier round in
// which all was well: then the answer is that round with what a member at work changes, which are
// its indexes, revision and sizes. A status has the alarms that are on, and no leader where there
// is no quorum. What it has not is the member list, the cluster's version, and whether a
// linearizable read succeeds.
func (c *Client) Glance(ctx context.Context, cluster string, members []Endpoint, last state.Round) (now state.Round, same bool) {
	if !settled(last) || len(members) != len(last.Members) {
		return last, false
	}
	at := time.Now()
	answers := make([]*answer, len(members))
	eachMember(len(members), func(i int) { answers[i] = c.askOne(ctx, cluster, members[i], (*answer).askStatus) })
	now = last
	now.At, now.Members = at, slices.Clone(last.Members)
	for i := range now.Members {
		m := &now.Members[i]
		j := slices.IndexFunc(answers, func(a *answer) bool { return a.endpoint.Member == m.Name })
		if j < 0 || !answers[j].resembles(last) {
			return last, false
		}
		before := *m
		if describe(m, answers[j]); !alike(before, *m) {
			return last, false
		}
	}
	return now, true
}

// settled reports whether nothing in a round needs to be asked again.
func settled(r state.Round) bool {
	return r.Problem == "" && len(r.Alarms) == 0 && len(r.Members) > 0 && !slices.ContainsFunc(r.Members, func(m state.Member) bool {
		return m.Problem != "" || m.Learner || m.Leader == "" || len(m.Errors) > 0
	})
}

// resembles reports whether a status is of the cluster of a round, and says nothing of it that the
// round does not.
func (a *answer) resembles(r state.Round) bool {
	if a.problem != "" || hexID(a.status.Header.ClusterId) != r.ClusterID {
		return false
	}
	target := ""
	if a.status.GetDowngradeInfo().GetEnabled() {
		target = downgradeLine(a.status)
	}
	return a.status.GetDowngradeInfo().GetEnabled() == r.Downgrading && target == r.DowngradeTarget
}

// alike reports whether a member differs in nothing but what changes while it works.
func alike(a, b state.Member) bool {
	return a.Problem == b.Problem && a.Learner == b.Learner && a.Version == b.Version && a.StorageVersion == b.StorageVersion &&
		a.Leader == b.Leader && a.Term == b.Term && a.Quota == b.Quota && len(b.Errors) == 0
}
