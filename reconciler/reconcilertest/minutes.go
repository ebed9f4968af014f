package reconcilertest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/state"
)

// Minute is what quorate does in one minute.
type Minute struct {
	// Requests to the API server without the watches, and the Writes among them.
	Requests, Writes int
	// Rounds of questions to all members, and the Deep ones among them, with hashes.
	Rounds, Deep int
	// Calls are what members were asked besides, and Snapshots those for a stream.
	Calls, Snapshots int
	Events, Lines    int
}

// Running is quorate as the daemon runs it.
type Running struct {
	w     *World
	asked *counted
}

// Running lets quorate run as the daemon does, while during.
func (w *World) Running(during func(r Running)) {
	w.Helper()
	r := Running{w, &counted{Members: w.members}}
	w.Ask(r.asked)
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.R.Run(ctx)
	}()
	w.R.SetDesired([]desired.Cluster{w.Wish})
	during(r)
	stop()
	<-ended
}

// Minute lets a minute pass, and counts.
func (r Running) Minute() Minute {
	r.w.Helper()
	r.w.API.ClearActions()
	r.w.Log.Reset()
	r.asked.take()
	events := 0
	for range 60 {
		time.Sleep(time.Second)
		r.w.Settle()
		events += len(r.w.DrainEvents())
	}
	m := r.asked.take()
	m.Events, m.Lines = events, bytes.Count(r.w.Log.Bytes(), []byte("\n"))
	for _, request := range r.w.API.Requests() {
		m.Requests++
		if !strings.HasPrefix(request, "get ") && !strings.HasPrefix(request, "list ") {
			m.Writes++
		}
	}
	return m
}

// moment is how long members take to answer.
const moment = 50 * time.Millisecond

// counted counts what members are asked.
type counted struct {
	reconciler.Members
	mu sync.Mutex
	m  Minute
}

// take returns what was counted, and counts from zero again.
func (c *counted) take() Minute {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.m
	c.m = Minute{}
	return m
}

func (c *counted) count(add func(m *Minute)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.m)
}

func (c *counted) call() { c.count(func(m *Minute) { m.Calls++ }) }

func (c *counted) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	c.count(func(m *Minute) {
		m.Rounds++
		if deep {
			m.Deep++
		}
	})
	time.Sleep(moment) // else a loop without a wait stops the clock
	return c.Members.Round(ctx, cluster, members, deep)
}

func (c *counted) Snapshot(ctx context.Context, cluster string, member etcd.Target) (io.ReadCloser, error) {
	c.count(func(m *Minute) { m.Calls, m.Snapshots = m.Calls+1, m.Snapshots+1 })
	return c.Members.Snapshot(ctx, cluster, member)
}

func (c *counted) SnapshotCount(ctx context.Context, cluster string, member etcd.Endpoint) (int64, error) {
	c.call()
	return c.Members.SnapshotCount(ctx, cluster, member)
}

func (c *counted) Auth(ctx context.Context, cluster string, members []etcd.Endpoint, q etcd.AuthQuestion) state.Auth {
	c.call()
	return c.Members.Auth(ctx, cluster, members, q)
}

func (c *counted) ChangeAuth(ctx context.Context, cluster string, members []etcd.Endpoint, work etcd.AuthWork) error {
	c.call()
	return c.Members.ChangeAuth(ctx, cluster, members, work)
}

func (c *counted) MoveLeader(ctx context.Context, cluster string, leader etcd.Target, toID string) error {
	c.call()
	return c.Members.MoveLeader(ctx, cluster, leader, toID)
}

func (c *counted) AddLearner(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, peerURL string) (string, error) {
	c.call()
	return c.Members.AddLearner(ctx, cluster, clusterID, members, peerURL)
}

func (c *counted) PromoteMember(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id string) error {
	c.call()
	return c.Members.PromoteMember(ctx, cluster, clusterID, members, id)
}

func (c *counted) MoveMember(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id string, peerURLs []string) error {
	c.call()
	return c.Members.MoveMember(ctx, cluster, clusterID, members, id, peerURLs)
}

func (c *counted) RemoveMember(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id string) error {
	c.call()
	return c.Members.RemoveMember(ctx, cluster, clusterID, members, id)
}

func (c *counted) RemoveLearner(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id, peerURL string) error {
	c.call()
	return c.Members.RemoveLearner(ctx, cluster, clusterID, members, id, peerURL)
}

func (c *counted) Compact(ctx context.Context, cluster string, member etcd.Target, revision int64) error {
	c.call()
	return c.Members.Compact(ctx, cluster, member, revision)
}

func (c *counted) Defragment(ctx context.Context, cluster string, member etcd.Target) error {
	c.call()
	return c.Members.Defragment(ctx, cluster, member)
}

func (c *counted) Disarm(ctx context.Context, cluster string, members []etcd.Endpoint, alarm state.Alarm) error {
	c.call()
	return c.Members.Disarm(ctx, cluster, members, alarm)
}

func (c *counted) EnableDowngrade(ctx context.Context, cluster string, member etcd.Target, line string) error {
	c.call()
	return c.Members.EnableDowngrade(ctx, cluster, member, line)
}

func (c *counted) CancelDowngrade(ctx context.Context, cluster string, member etcd.Target) error {
	c.call()
	return c.Members.CancelDowngrade(ctx, cluster, member)
}

func (c *counted) AppendNoops(ctx context.Context, cluster string, member etcd.Target) error {
	c.call()
	return c.Members.AppendNoops(ctx, cluster, member)
}
