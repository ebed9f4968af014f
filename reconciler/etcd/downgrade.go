package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/starvation"
)

// downgradeTimeout bounds a question about a downgrade: the member asks the
// others before it answers.
const downgradeTimeout = 10 * askTimeout / 3

// EnableDowngrade tells the cluster that it goes down to a line, such as
// "3.6". That it does so already is success. The member is asked first whether it may be.
func (c *Client) EnableDowngrade(ctx context.Context, cluster string, member Target, line string) error {
	ctx, cancel := context.WithTimeout(ctx, downgradeTimeout)
	defer cancel()
	m, status, err := c.identify(ctx, cluster, member)
	if err != nil {
		return fmt.Errorf("downgrade to %s through %s: %w", line, member.Member, err)
	}
	if downgradeLine(status) == line {
		return nil
	}
	for _, action := range []pb.DowngradeRequest_DowngradeAction{pb.DowngradeRequest_VALIDATE, pb.DowngradeRequest_ENABLE} {
		if _, err := m.maintenance().Downgrade(ctx, &pb.DowngradeRequest{Action: action, Version: line + ".0"}); err != nil {
			return fmt.Errorf("downgrade to %s: %s through %s: %w", line, strings.ToLower(action.String()), member.Member, plainError(err))
		}
	}
	return nil
}

// CancelDowngrade tells it that it does not. That it never did is success.
func (c *Client) CancelDowngrade(ctx context.Context, cluster string, member Target) error {
	ctx, cancel := context.WithTimeout(ctx, downgradeTimeout)
	defer cancel()
	m, status, err := c.identify(ctx, cluster, member)
	if err != nil {
		return fmt.Errorf("cancel the downgrade through %s: %w", member.Member, err)
	}
	if downgradeLine(status) == "" {
		return nil
	}
	if _, err := m.maintenance().Downgrade(ctx, &pb.DowngradeRequest{Action: pb.DowngradeRequest_CANCEL}); err != nil {
		return fmt.Errorf("cancel the downgrade through %s: %w", member.Member, plainError(err))
	}
	return nil
}

// downgradeLine is the line of a downgrade that is under way, such as "3.6", or
// "". etcd says "3.6.0" of it.
func downgradeLine(s *pb.StatusResponse) string {
	if !s.GetDowngradeInfo().GetEnabled() {
		return ""
	}
	parts := strings.SplitN(s.GetDowngradeInfo().GetTargetVersion(), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// noops is how many entries a Nudge adds to the log. With snapshot-count=1 two
// are enough for a snapshot.
const noops = 5

// AppendNoops adds entries to the log of every member that change nothing. Its entries touch no key, no revision, and nothing
// that a watcher sees: it asks for the end of a lease that
// cannot exist, which etcd decides through its log, with authentication on, too.
func (c *Client) AppendNoops(ctx context.Context, cluster string, member Target) error {
	m, _, err := c.identify(ctx, cluster, member)
	if err != nil {
		return fmt.Errorf("add to the log through %s: %w", member.Member, err)
	}
	for range noops {
		if err := m.appendNoop(ctx); err != nil {
			return fmt.Errorf("add to the log through %s: %w", member.Member, plainError(err))
		}
	}
	return nil
}

// appendNoop adds one entry. With authentication on, a member asks for a user before
// it takes the end of a lease into the log; a key it takes first, and each member
// refuses it when the entry is applied.
func (m *Conn) appendNoop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := m.etcd.Revoke(ctx, clientv3.NoLease)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return nil
	case !errors.Is(err, rpctypes.ErrUserEmpty):
		return err
	}
	_, err = m.etcd.Put(ctx, noopKey, "")
	if errors.Is(err, rpctypes.ErrUserEmpty) {
		return nil
	}
	if err == nil { // authentication was turned off a moment ago
		_, err = m.etcd.Delete(ctx, noopKey)
	}
	return err
}

// noopKey is asked to be written where that will be refused.
const noopKey = "quorate.dev/nudge"

// snapshotMetric counts the snapshots that a member has saved since it started.
const snapshotMetric = "etcd_snap_fsync_duration_seconds_count"

// SnapshotCount is how often a member has saved its state since it started, by its own
// metrics.
func (c *Client) SnapshotCount(ctx context.Context, cluster string, member Endpoint) (int64, error) {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := c.client(cluster, member)
	if err != nil {
		return 0, fmt.Errorf("metrics of %s: %w", member.Member, err)
	}
	n, err := m.metric(ctx, snapshotMetric)
	if err != nil {
		return 0, fmt.Errorf("metrics of %s: %w", member.Member, err)
	}
	return n, nil
}

// metric reads one counter without labels.
func (m *Conn) metric(ctx context.Context, name string) (int64, error) {
	value, found := "", false
	err := m.eachMetric(ctx, func(line string) bool {
		value, found = strings.CutPrefix(line, name+" ")
		return !found
	})
	switch {
	case err != nil:
		return 0, err
	case !found:
		return 0, fmt.Errorf("there is no %s", name)
	}
	return strconv.ParseInt(value, 10, 64)
}

// eachMetric reads the member's own metrics line by line, until it is told to stop.
func (m *Conn) eachMetric(ctx context.Context, next func(line string) bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(m.versionURL, "/version")+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", sentence(resp.Status))
	}
	lines := bufio.NewScanner(&bounded{resp.Body, maxMetrics, ErrTooLarge})
	for lines.Scan() {
		if !next(lines.Text()) {
			return nil
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return ErrTooLarge
	}
	return lines.Err()
}
