package execute

import (
	"context"
	"fmt"
	"io"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/state"
)

// Members is what actions ask of etcd's members; etcd.Client does it.
type Members interface {
	// Round asks every member once. What cannot be seen is in the Round as a
	// problem: there is no error beside it.
	Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round
	// Snapshot streams the member's database. The caller closes it.
	Snapshot(ctx context.Context, cluster string, member etcd.Target) (io.ReadCloser, error)
	Leadership
	Membership
	Maintenance
	Downgrades
	Auth
}

// Leadership moves the leadership.
type Leadership interface {
	// MoveLeader asks the leader to hand over to the member with the ID.
	MoveLeader(ctx context.Context, cluster string, leader etcd.Target, toID string) error
}

// Membership changes etcd's member list. What is so already is success, and an answer
// that got lost is no reason to ask twice.
type Membership interface {
	AddLearner(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, peerURL string) (id string, err error)
	PromoteMember(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id string) error
	RemoveMember(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id string) error
	RemoveLearner(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id, peerURL string) error
	MoveMember(ctx context.Context, cluster, clusterID string, members []etcd.Endpoint, id string, peerURLs []string) error
}

// Maintenance keeps the database small, and ends alarms.
type Maintenance interface {
	Compact(ctx context.Context, cluster string, member etcd.Target, revision int64) error
	Defragment(ctx context.Context, cluster string, member etcd.Target) error
	Disarm(ctx context.Context, cluster string, members []etcd.Endpoint, alarm state.Alarm) error
}

// Downgrades is what a change of minor asks of the members.
type Downgrades interface {
	EnableDowngrade(ctx context.Context, cluster string, member etcd.Target, line string) error
	CancelDowngrade(ctx context.Context, cluster string, member etcd.Target) error
	AppendNoops(ctx context.Context, cluster string, member etcd.Target) error
	SnapshotCount(ctx context.Context, cluster string, member etcd.Endpoint) (int64, error)
}

// target is the member that something is about to be done to, with the ID that the
// decision was made on.
func target(v *observe.View, member, id, doing string) (etcd.Target, error) {
	t, err := v.Target(member, id)
	if err != nil {
		return t, fmt.Errorf("%s: %w", doing, err)
	}
	return t, nil
}
