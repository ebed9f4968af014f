// Package rounds has members asked apart from what is decided about them: a pass that asks is
// aside, so that no worker waits for a member, and those who answer late have places of their own,
// so that they cost no other cluster its answer. Those at rest are asked one question, not all.
package rounds

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/starvation"
)

// Patience is how long the members of a cluster may take to answer before they count as late. It
// is many times what they take, and short beside what they are given.
const Patience = 250 * time.Millisecond

// Lanes bound how many clusters are asked at the same time. Which lane a cluster is in says how
// long it may have to wait, and nothing about what it is.
type Lanes struct {
	// swift has the places of clusters whose members answered in time when they were asked last,
	// and late those of the others.
	swift, late chan struct{}
	// lates are the clusters whose members were late.
	lates memo.Map[bool]
}

// late is how many times as many places those have that answer late: they take no processor while
// they are waited for.
const late = 8

// NewLanes returns lanes with so many places for clusters that answer in time, and eight times as many
// for the others.
func NewLanes(places int) *Lanes {
	return &Lanes{swift: make(chan struct{}, places), late: make(chan struct{}, late*places)}
}

// Ask calls ask, once there is a place for the cluster. While it asks, the pass with this ctx is
// aside. For a place among the swift it waits with its worker, so that the others wait in the queue, in
// its order; one that is late waits aside, too. No cluster is asked in a place among the swift for longer than
// Patience: so many clusters that fall silent at once hold up the others for no longer than it takes to
// find that out. When ctx ends, ask need not wait for a place.
//
// The place is left once it is the turn of the pass to go on, so that no more answers wait for that than
// there are places. What counts is the time that the process has had: where it is short of the processor
// all answers are late, and to ask more at a time for that would make them later still.
func (l *Lanes) Ask(ctx context.Context, cluster string, ask func()) {
	pause, isLate := queue.BeginPause(ctx), l.lates.Get(cluster)
	var leave func()
	if isLate {
		pause.Aside()
		leave = enter(ctx, l.late)
	} else {
		leave = enter(ctx, l.swift)
		pause.Aside()
		defer starvation.AfterFunc(Patience, leave)()
	}
	defer leave()
	defer func() { pause.End(isLate) }()
	begun := starvation.Begin()
	ask()
	if isLate = begun.Elapsed() >= Patience; isLate {
		l.lates.Put(cluster, true)
	} else {
		l.lates.Forget(cluster)
	}
}

// spacing is the least time between two looks at clusters that are late, whichever they are.
const spacing = 40 * time.Millisecond

// maxSpacing is the longest time that a late cluster waits for that.
const maxSpacing = time.Minute

// Spaced is how long a cluster waits for its next look that is due after wait. Where many are late, as in a
// zone that is down, they are looked at less often: to find out again and again that they do not answer takes
// the processor, and the API server, that the others need. A cluster that answers waits for none of them.
func (l *Lanes) Spaced(cluster string, wait time.Duration) time.Duration {
	if !l.lates.Get(cluster) {
		return wait
	}
	return max(wait, min(time.Duration(l.lates.Len())*spacing, maxSpacing))
}

// enter takes a place, unless ctx ends before. It is left once.
func enter(ctx context.Context, lane chan struct{}) (leave func()) {
	left := sync.OnceFunc(func() { <-lane })
	select {
	case lane <- struct{}{}:
		return left
	default: // none is free
	}
	select {
	case lane <- struct{}{}:
		return left
	case <-ctx.Done():
		return func() {}
	}
}

// Forget drops what is remembered of a cluster.
func (l *Lanes) Forget(cluster string) { l.lates.Forget(cluster) }
