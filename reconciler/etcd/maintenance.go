package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/state"
)

const (
	// maintenanceTimeout bounds a compaction or a defragmentation: etcd writes
	// some ten MiB a second on a slow disk, and 8 GiB are the most it advises.
	maintenanceTimeout = 30 * time.Minute
	// testTTL is how long the lease of a test write lives if it cannot be revoked.
	testTTL = 10 // seconds
)

// Compact drops the history before the revision, and returns when the space
// can be used again. That it was dropped before counts as done.
func (c *Client) Compact(ctx context.Context, cluster string, member Target, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	m, _, err := c.identify(ctx, cluster, member)
	if err != nil {
		return fmt.Errorf("compact through %s: %w", member.Member, err)
	}
	_, err = m.etcd.Compact(ctx, revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact through %s at revision %d: %w", member.Member, revision, plainError(err))
	}
	return nil
}

// Defragment rewrites the member's database.
func (c *Client) Defragment(ctx context.Context, cluster string, member Target) error {
	ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	m, _, err := c.identify(ctx, cluster, member)
	if err != nil {
		return fmt.Errorf("defragment %s: %w", member.Member, err)
	}
	if _, err := m.maintenance().Defragment(ctx, &pb.DefragmentRequest{}); err != nil {
		return fmt.Errorf("defragment %s: %w", member.Member, plainError(err))
	}
	return nil
}

// Disarm ends the alarm, and after the last one sees through every member that
// writes get through. An alarm that is off counts as done.
func (c *Client) Disarm(ctx context.Context, cluster string, members []Endpoint, alarm state.Alarm) error {
	if len(members) == 0 {
		return fmt.Errorf("disarm %s: no member has an address", alarm)
	}
	m, err := c.client(cluster, members[0])
	if err != nil {
		return fmt.Errorf("disarm %s: %w", alarm, err)
	}
	left, err := m.disarm(ctx, alarm)
	if err != nil {
		return fmt.Errorf("disarm %s through %s: %w", alarm, members[0].Member, err)
	}
	if left > 0 {
		return nil // writes are refused until the last of them is off
	}
	for _, e := range members {
		if err := c.tryWrite(ctx, cluster, e); err != nil {
			return fmt.Errorf("%s is disarmed, but %s takes no writes: %w", alarm, e.Member, err)
		}
	}
	return nil
}

// disarm ends an alarm that is on, and returns how many are left. The list tells
// whether it did: etcd answers that it has disarmed what was never there, too.
func (m *Conn) disarm(ctx context.Context, alarm state.Alarm) (left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	id, errID := strconv.ParseUint(alarm.MemberID, 16, 64)
	kind, known := pb.AlarmType_value[alarm.Kind]
	if errID != nil || !known {
		return 0, errors.New("etcd has no such alarm")
	}
	if left, on, err := m.alarms(ctx, id, pb.AlarmType(kind)); err != nil || !on {
		return left, err
	}
	// Not the client's own method: that one takes an empty member for all.
	_, err = m.maintenance().Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: id, Alarm: pb.AlarmType(kind)})
	if err != nil {
		return 0, plainError(err)
	}
	left, on, err := m.alarms(ctx, id, pb.AlarmType(kind))
	if err == nil && on {
		err = errors.New("it is still on")
	}
	return left, err
}

// alarms counts the alarms that are on, and reports whether one of them is.
func (m *Conn) alarms(ctx context.Context, id uint64, kind pb.AlarmType) (all int, on bool, err error) {
	list, err := m.etcd.AlarmList(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("alarm list: %w", plainError(err))
	}
	return len(list.Alarms), slices.ContainsFunc(list.Alarms, func(a *pb.AlarmMember) bool {
		return a.MemberID == id && a.Alarm == kind
	}), nil
}

// tryWrite asks for a lease and gives it back: etcd refuses that like any write
// while an alarm is on or the member is over its quota, and no key is touched.
// That quorate may not do so says nothing about space.
func (c *Client) tryWrite(ctx context.Context, cluster string, e Endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	m, err := c.client(cluster, e)
	if err != nil {
		return err
	}
	lease, err := m.etcd.Grant(ctx, testTTL)
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return nil
	case err != nil:
		return plainError(err)
	}
	// A lease that is not revoked expires.
	_, _ = m.etcd.Revoke(ctx, lease.ID)
	return nil
}

// identify asks a member which it is, just before something is done to it, and
// returns its answer where it is the expected one.
func (c *Client) identify(ctx context.Context, cluster string, t Target) (*Conn, *pb.StatusResponse, error) {
	m, err := c.client(cluster, t.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	status, err := m.identify(ctx, t)
	return m, status, err
}

// Identify asks the member which it is: the error tells that it is not the one that is
// meant, ErrOtherCluster where it is of another cluster.
func (m *Conn) Identify(ctx context.Context, t Target) error {
	_, err := m.identify(ctx, t)
	return err
}

func (m *Conn) identify(ctx context.Context, t Target) (*pb.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := m.maintenance().Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return nil, fmt.Errorf("status: %w", plainError(err))
	}
	switch of, id := hexID(status.Header.ClusterId), hexID(status.Header.MemberId); {
	case of != t.ClusterID:
		return nil, fmt.Errorf("%w: it answers for cluster %s, not %s", ErrOtherCluster, of, t.ClusterID)
	case id != t.ID:
		return nil, fmt.Errorf("it answers as member %s, not %s; quorate retries", id, t.ID)
	}
	return checkStatus(status), nil
}

func (m *Conn) maintenance() pb.MaintenanceClient {
	return pb.NewMaintenanceClient(m.etcd.ActiveConnection())
}
