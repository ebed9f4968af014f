package rounds

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/state"
)

// Glance asks members only whether they are as in an earlier round, and returns that round as it
// is now if so; etcd.Client does.
type Glance func(ctx context.Context, cluster string, members []etcd.Endpoint, last state.Round) (now state.Round, same bool)

// glancing is for how long after a round in full its members are only glanced at: so much later, and
// a look, is seen at most what a glance does not show.
const glancing = 110 * time.Second

// Rests are the last rounds in full of clusters at rest, to which members are compared. Once Git wants
// something else, a cluster is not at rest: a glance at it would be one question more.
type Rests struct {
	// Glance is nil where members are asked everything each time.
	Glance Glance
	last   memo.Map[rest]
}

// rest is a round in full in which nothing was to be done for the wish of a digest, and which members
// were asked.
type rest struct {
	digest  string
	round   state.Round
	members []string
}

// Look glances at members that were at rest a moment ago, where a glance is enough, and returns their
// round if they are as they were.
func (r *Rests) Look(ctx context.Context, c desired.Cluster, members []etcd.Endpoint, enough bool) (now []state.Round, same bool) {
	last := r.last.Get(c.Key())
	if !enough || r.Glance == nil || last.digest != c.Digest || time.Since(last.round.At) >= glancing || !slices.Equal(last.members, incarnations(members)) {
		return nil, false
	}
	round, same := r.Glance(ctx, c.Key(), members, last.round)
	return []state.Round{round}, same
}

// Keep notes a round in full in which nothing is to be done.
func (r *Rests) Keep(c desired.Cluster, members []etcd.Endpoint, round state.Round) {
	if r.Glance != nil {
		r.last.Put(c.Key(), rest{c.Digest, round, incarnations(members)})
	}
}

// Forget drops what is kept of a cluster.
func (r *Rests) Forget(cluster string) { r.last.Forget(cluster) }

// incarnations tell members from others at their addresses.
func incarnations(endpoints []etcd.Endpoint) (all []string) {
	for _, e := range endpoints {
		all = append(all, e.Member+" "+e.Incarnation)
	}
	slices.Sort(all)
	return all
}
