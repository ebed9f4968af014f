package etcd

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/needs"
)

// lineage are members whose binaries change under the same data.
type lineage struct {
	*etcdServers
	flags     []func() []string
	processes []*exec.Cmd
	said      []*bytes.Buffer
}

// startLineage starts n members, in clear text, as the first release.
func startLineage(t *testing.T, n int, version string) *lineage {
	t.Helper()
	l := &lineage{etcdServers: &etcdServers{Servers: &etcdtest.Servers{T: t}, clients: New()}}
	t.Cleanup(func() { l.clients.Forget("shop/orders") })
	c := clustertest.Orders(clustertest.SetReplicas(int32(n)))
	var initial, peers []string
	for i := range n {
		peers = append(peers, "http://"+backuptest.FreeAddress(t))
		initial = append(initial, naming.Member(c.Metadata.Name, int32(i))+"="+peers[i])
	}
	for i := range n {
		e := Endpoint{Member: naming.Member(c.Metadata.Name, int32(i)), Host: naming.MemberHost(c, naming.Member(c.Metadata.Name, int32(i))), Address: backuptest.FreeAddress(t), Incarnation: "1"}
		dir := t.TempDir()
		l.flags = append(l.flags, func() []string {
			return []string{
				"--name=" + e.Member, "--data-dir=" + dir, "--listen-client-urls=http://" + e.Address,
				"--advertise-client-urls=http://" + e.Host + ":2379", "--listen-peer-urls=" + peers[i], "--initial-advertise-peer-urls=" + peers[i],
				"--initial-cluster=" + strings.Join(initial, ","), "--initial-cluster-token=" + t.Name(), "--logger=zap", "--log-level=error",
				"--heartbeat-interval=100", "--election-timeout=1000",
			}
		})
		l.Register(e.Member, e.Host, e.Address)
		l.endpoints, l.processes, l.said = append(l.endpoints, e), append(l.processes, nil), append(l.said, nil)
	}
	for i := range n {
		l.run(i, version)
	}
	l.awaitWell()
	return l
}

// run gives a member another binary, and ends the one that it has.
func (l *lineage) run(i int, version string, flags ...string) {
	l.Helper()
	path := etcdtest.Binary(l, version)
	if old := l.processes[i]; old != nil {
		_ = old.Process.Signal(syscall.SIGTERM)
		_ = old.Wait()
	}
	cmd, said := exec.Command(path, append(l.flags[i](), flags...)...), &bytes.Buffer{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.processes[i], l.said[i] = cmd, said
	l.Cleanup(func() {
		etcdtest.Kill(cmd)
		if l.Failed() {
			l.Logf("%s said:\n%s", l.endpoints[i].Member, said)
		}
	})
}

// rollTo gives every member another binary, one by one.
func (l *lineage) rollTo(version string, flags ...string) {
	l.Helper()
	for i := range l.processes {
		l.run(i, version, flags...)
		l.awaitWell()
	}
}

func (l *lineage) awaitWell() state.Round {
	l.Helper()
	return l.await("every member to be well", func(r state.Round) bool { return len(r.Members) == len(l.endpoints) && troubleOf(r) == "" })
}

func (l *lineage) awaitVersion(version string) state.Round {
	l.Helper()
	return l.await("the cluster version "+version, func(r state.Round) bool { return r.ClusterVersion == version && troubleOf(r) == "" })
}

// snapshots is what the first member says of how often it saved its state.
func (l *lineage) snapshots() int64 {
	l.Helper()
	n, err := l.clients.SnapshotCount(l.Context(), "shop/orders", l.endpoints[0])
	if err != nil {
		l.Fatal(err)
	}
	return n
}

// exited waits for a member to end on its own, and returns what it said.
func (l *lineage) exited(i int) string {
	l.Helper()
	done := make(chan error, 1)
	go func() { done <- l.processes[i].Wait() }()
	select {
	case <-done:
		return l.said[i].String()
	case <-time.After(30 * time.Second):
		l.Fatal("the member runs on")
	}
	return ""
}

// The trap: what 3.5 has written into the log of a quiet cluster, 3.7 cannot
// read, although 3.6 ran between. And the way round it, which changes no key.
func TestTheLogOf35And37(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	l := startLineage(t, 1, etcdtest.V35)
	l.MustPut("greeting", "hello")
	l.awaitVersion("3.5.0")
	l.run(0, etcdtest.V36)
	l.awaitVersion("3.6.0")
	if n := l.snapshots(); n != 0 {
		t.Fatalf("a quiet 3.6 has saved %d snapshots: there is no trap to see", n)
	}
	l.run(0, etcdtest.V37)
	if said := l.exited(0); !strings.Contains(said, "unmarshal should never fail") {
		t.Fatalf("3.7 ended for another reason: %s", said)
	}

	l.run(0, etcdtest.V36, "--snapshot-count=1")
	r, had := l.awaitWell(), l.snapshots()
	before := r.Members[0].Revision
	for range 2 {
		if err := l.clients.AppendNoops(t.Context(), "shop/orders", l.target(r, l.endpoints[0])); err != nil {
			t.Fatal(err)
		}
	}
	l.await("a snapshot", func(state.Round) bool { return l.snapshots() > had })
	if after := l.awaitWell().Members[0].Revision; after != before {
		t.Errorf("the revision went from %d to %d: the keys were touched", before, after)
	}
	l.run(0, etcdtest.V37)
	l.awaitVersion("3.7.0")
}

// A nudge needs nobody's permission. Only who the member is, a user alone is told.
func TestNudgeWithAuthentication(t *testing.T) {
	t.Parallel()
	l := startLineage(t, 1, etcdtest.V36)
	first := l.target(l.awaitWell(), l.endpoints[0])
	m, err := l.clients.client("shop/orders", l.endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { _, err := m.etcd.UserAdd(t.Context(), "root", "secret"); return err },
		func() error { _, err := m.etcd.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := m.etcd.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	// Status is for users only, now. The metrics are not.
	entries := func() int64 {
		n, err := m.metric(t.Context(), "etcd_server_proposals_applied_total")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := entries()
	for range noops {
		if err := m.appendNoop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := entries(); after < before+noops {
		t.Errorf("%d entries applied before, %d after", before, after)
	}
	backuptest.WantError(t, l.clients.AppendNoops(t.Context(), "shop/orders", first), "add to the log through orders-0: status", "user name is empty")
	if r := l.clients.Round(t.Context(), "shop/orders", l.endpoints, false); len(r.Members) == 0 || !r.Members[0].Denied {
		t.Errorf("members that want a user: %+v", r.Members)
	}
	backuptest.WantError(t, l.clients.EnableDowngrade(t.Context(), "shop/orders", first, "3.5"), "downgrade to 3.5", "user name is empty")
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + first.Address}, Username: "root", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	m.etcd.KV = turningOff{m.etcd.KV, root}
	if err := m.appendNoop(t.Context()); err != nil {
		t.Errorf("authentication is turned off meanwhile: %v", err)
	}
	if got, err := m.etcd.Get(t.Context(), noopKey); err != nil || got.Count != 0 || got.Header.Revision < 3 {
		t.Errorf("%s is left behind: %v, %v", noopKey, got, err)
	}
	nudgesTouchNoKey(t, m)
}

// nudgesTouchNoKey has a nudge fail in either of its two ways: that is told, and
// nothing more is asked of a member that takes no users.
func nudgesTouchNoKey(t *testing.T, m *Conn) {
	t.Helper()
	kv := m.etcd.KV
	if off, ok := kv.(turningOff); ok {
		kv = off.KV
	}
	before, err := kv.Get(t.Context(), noopKey)
	if err != nil {
		t.Fatal(err)
	}
	m.etcd.KV = kv
	if err := m.appendNoop(t.Context()); err != nil {
		t.Errorf("without authentication: %v", err)
	}
	lease := m.etcd.Lease
	m.etcd.Lease = stubborn{Lease: lease, answer: rpctypes.ErrTimeout}
	if err := m.appendNoop(t.Context()); !errors.Is(err, rpctypes.ErrTimeout) {
		t.Errorf("a lease that times out: %v", err)
	}
	m.etcd.Lease, m.etcd.KV = stubborn{Lease: lease, answer: rpctypes.ErrUserEmpty}, full{kv}
	if err := m.appendNoop(t.Context()); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("a member that is full: %v", err)
	}
	if after, err := kv.Get(t.Context(), noopKey); err != nil || after.Header.Revision != before.Header.Revision {
		t.Errorf("before %v, after %v, %v", before, after, err)
	}
}

// stubborn is a member that ends no lease.
type stubborn struct {
	clientv3.Lease
	answer error
}

func (s stubborn) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return nil, s.answer
}

// full is a member that takes no key.
type full struct{ clientv3.KV }

func (full) Put(context.Context, string, string, ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return nil, rpctypes.ErrNoSpace
}

// turningOff is a member on which authentication is turned off just before a write.
type turningOff struct {
	clientv3.KV
	root *clientv3.Client
}

func (o turningOff) Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if _, err := o.root.AuthDisable(ctx); err != nil {
		return nil, err
	}
	return o.KV.Put(ctx, key, value, options...)
}

// The whole way down by one minor, and back again before it is over.
func TestDowngradeByOneMinor(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	l := startLineage(t, 3, etcdtest.V37)
	l.MustPut("greeting", "hello")
	l.awaitVersion("3.7.0")
	l.enable("3.6")
	l.enable("3.6")
	first := l.target(l.round(false), l.endpoints[0])
	backuptest.WantError(t, l.clients.EnableDowngrade(t.Context(), "shop/orders", first, "3.5"), "downgrade to 3.5: validate through orders-0")
	r := l.await("the storage of 3.6", stored("3.6.0"))
	if r.ClusterVersion != "3.6.0" || r.DowngradeTarget != "3.6" || !r.Downgrading {
		t.Errorf("round %+v", r)
	}
	for range 2 {
		if err := l.clients.CancelDowngrade(t.Context(), "shop/orders", first); err != nil {
			t.Fatal(err)
		}
	}
	if r := l.awaitVersion("3.7.0"); r.Downgrading || r.DowngradeTarget != "" {
		t.Errorf("after the cancel: %+v", r)
	}
	l.enable("3.6")
	l.await("the storage of 3.6", stored("3.6.0"))
	l.rollTo(etcdtest.V36)
	r = l.await("the end of the downgrade", func(r state.Round) bool { return !r.Downgrading && troubleOf(r) == "" })
	if r.ClusterVersion != "3.6.0" || r.Members[0].Version != "3.6.16" {
		t.Errorf("round %+v", r)
	}
	if err := l.clients.CancelDowngrade(t.Context(), "shop/orders", first); err != nil {
		t.Errorf("nothing to cancel: %v", err)
	}
	l.enable("3.5")
	l.await("the storage of 3.5", stored("3.5.0"))
	l.rollTo(etcdtest.V35)
	l.awaitVersion("3.5.0")
	l.MustPut("greeting", "hello again")
}

// enable enables a downgrade through the leader.
func (l *lineage) enable(line string) {
	l.Helper()
	leader, _ := l.leader(l.awaitWell())
	if err := l.clients.EnableDowngrade(l.Context(), "shop/orders", leader, line); err != nil {
		l.Fatal(err)
	}
}

// stored reports whether every member's storage has a version.
func stored(version string) func(state.Round) bool {
	return func(r state.Round) bool {
		return troubleOf(r) == "" && !slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.StorageVersion != version })
	}
}

func TestUpgradeQuestionsToNobody(t *testing.T) {
	c := New()
	t.Cleanup(func() { c.Forget("shop/orders") })
	e := Endpoint{Member: "orders-0", Host: "localhost", Address: backuptest.FreeAddress(t), Incarnation: "1"}
	if _, err := c.SnapshotCount(t.Context(), "shop/orders", e); err == nil || !strings.Contains(err.Error(), "metrics of orders-0") {
		t.Errorf("metrics: %v", err)
	}
	backuptest.WantError(t, c.AppendNoops(t.Context(), "shop/orders", Target{Endpoint: e}), "add to the log through orders-0")
	backuptest.WantError(t, c.EnableDowngrade(t.Context(), "shop/orders", Target{Endpoint: e}, "3.6"), "downgrade to 3.6")
	backuptest.WantError(t, c.CancelDowngrade(t.Context(), "shop/orders", Target{Endpoint: e}), "cancel the downgrade")
}
