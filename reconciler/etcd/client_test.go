package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/needs"
)

// The releases that the tests talk to.
// etcdServers are running members of one cluster, and how they are dialled.
type etcdServers struct {
	*etcdtest.Servers
	clients   *Client
	endpoints []Endpoint
}

// startEtcd starts a cluster of n members on loopback that ends with the test.
func startEtcd(t *testing.T, version string, n int, secure bool, args ...string) *etcdServers {
	t.Helper()
	s := &etcdServers{Servers: etcdtest.Start(t, version, n, secure, args...), clients: New()}
	t.Cleanup(func() { s.clients.Forget("shop/orders") })
	for _, m := range s.Members {
		s.dial(m)
	}
	s.await("every member to be well", func(r state.Round) bool { return len(r.Members) == n && troubleOf(r) == "" })
	return s
}

// dial adds a member to those that are dialled.
func (s *etcdServers) dial(m *etcdtest.Member) {
	e := Endpoint{Member: m.Name, Host: m.Host, Address: m.Address, Incarnation: "1"}
	if s.Secret != nil {
		e.TLS = m.TLS
	}
	s.endpoints = append(s.endpoints, e)
}

func (s *etcdServers) round(deep bool) state.Round {
	return s.clients.Round(s.Context(), "shop/orders", s.endpoints, deep)
}

// await looks until a round is as wanted.
func (s *etcdServers) await(what string, wanted func(state.Round) bool) state.Round {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r := s.round(false)
		if wanted(r) {
			return r
		}
		select {
		case <-ctx.Done():
			s.Fatalf("waited for %s; the last look was %+v", what, r)
		case <-tick.C:
		}
	}
}

// troubleOf is the first problem of a round, that there is no leader included.
func troubleOf(r state.Round) string {
	if r.Problem != "" {
		return r.Problem
	}
	for _, m := range r.Members {
		if m.Problem != "" {
			return m.Name + ": " + m.Problem
		}
		if m.Leader == "" || m.Leader != r.Members[0].Leader {
			return m.Name + " follows nobody, or another leader"
		}
	}
	return ""
}

// Target is the member behind one of the endpoints.
func (s *etcdServers) target(r state.Round, e Endpoint) Target {
	s.Helper()
	return Target{Endpoint: e, ClusterID: r.ClusterID, ID: memberOf(s.T, r, e.Member).ID}
}

// leader is the leader, and another member.
func (s *etcdServers) leader(r state.Round) (leader, other Target) {
	s.Helper()
	for _, e := range s.endpoints {
		if m := s.target(r, e); m.ID == memberOf(s.T, r, e.Member).Leader {
			leader = m
		} else {
			other = m
		}
	}
	return leader, other
}

func memberOf(t *testing.T, r state.Round, name string) state.Member {
	t.Helper()
	for _, m := range r.Members {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no member %s in %+v", name, r)
	return state.Member{}
}

func TestRealMembersWithTLS(t *testing.T) {
	t.Parallel()
	s := startEtcd(t, etcdtest.V36, 3, true)
	t.Run("a round tells all there is", func(t *testing.T) { roundTellsAll(t, s) })
	t.Run("hashes of one revision are equal", func(t *testing.T) { hashesAgree(t, s) })
	t.Run("the leadership moves", func(t *testing.T) { leadershipMoves(t, s) })
	t.Run("another name in the certificate is refused", func(t *testing.T) { wrongNameIsRefused(t, s) })
	t.Run("a member that answers as another is named", func(t *testing.T) { wrongMemberIsNamed(t, s) })
	t.Run("credentials that cannot be read are a problem", func(t *testing.T) { badCredentials(t, s) })
	t.Run("a snapshot becomes a verified backup", func(t *testing.T) { snapshotIsStored(t, s) })
	t.Run("connections follow the incarnation", func(t *testing.T) { connectionsAreKept(t, s) })
	// The last two end members.
	t.Run("a member that is down is named", func(t *testing.T) { downMemberIsNamed(t, s) })
	t.Run("without a quorum there is no list", func(t *testing.T) { noQuorumNoList(t, s) })
}

func roundTellsAll(t *testing.T, s *etcdServers) {
	s.MustPut("greeting", "hello")
	r := s.await("the cluster version", func(r state.Round) bool {
		return r.ClusterVersion == "3.6.0" && troubleOf(r) == "" &&
			!slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.StorageVersion != "3.6.0" })
	})
	if r.ClusterID == "" || len(r.Alarms) > 0 || r.Downgrading || r.Deep || time.Since(r.At) > time.Minute {
		t.Errorf("round %+v", r)
	}
	ids := map[string]bool{}
	for _, m := range r.Members {
		ids[m.ID] = true
		if m.Version != "3.6.16" || m.Learner || m.Term == 0 || m.CommitIndex == 0 || m.AppliedIndex == 0 || m.DBSize == 0 || m.Quota == 0 ||
			m.Revision < 1 || len(m.Errors) > 0 || m.StorageVersion != "3.6.0" || m.Hash != 0 || !strings.HasPrefix(m.Name, "orders-") {
			t.Errorf("member %+v", m)
		}
	}
	if len(ids) != 3 {
		t.Errorf("IDs %v", ids)
	}
}

func hashesAgree(t *testing.T, s *etcdServers) {
	s.MustPut("greeting", "hello again")
	s.await("all to have it", func(r state.Round) bool { return troubleOf(r) == "" })
	r := s.round(true)
	first := r.Members[0]
	for _, m := range r.Members {
		if m.Problem != "" || m.Hash == 0 || m.HashRevision < 2 || m.Hash != first.Hash || m.HashRevision != first.HashRevision || m.CompactRevision != first.CompactRevision || m.Keys != first.Keys || m.Keys == 0 {
			t.Errorf("%+v and %+v", m, first)
		}
	}
	if !r.Deep {
		t.Error("the round does not say that it was deep")
	}
}

func leadershipMoves(t *testing.T, s *etcdServers) {
	leader, other := s.leader(s.round(false))
	if err := s.clients.MoveLeader(t.Context(), "shop/orders", leader, other.ID); err != nil {
		t.Fatal(err)
	}
	s.await("the new leader", func(r state.Round) bool { return troubleOf(r) == "" && r.Members[0].Leader == other.ID })
	if err := s.clients.MoveLeader(t.Context(), "shop/orders", other, other.ID); err != nil {
		t.Errorf("to the one that leads already: %v", err)
	}
	backuptest.WantError(t, s.clients.MoveLeader(t.Context(), "shop/orders", leader, other.ID), "move leader from "+leader.Member, "not leader")
	backuptest.WantError(t, s.clients.MoveLeader(t.Context(), "shop/orders", other, "nonsense"), "move leader to nonsense")
}

// changed are the endpoints with a change to one of them, as another cluster, so
// that no kept connection is used.
func (s *etcdServers) changed(t *testing.T, change func([]Endpoint)) state.Round {
	t.Helper()
	endpoints := append([]Endpoint(nil), s.endpoints...)
	change(endpoints)
	defer s.clients.Forget(t.Name())
	return s.clients.Round(t.Context(), t.Name(), endpoints, false)
}

func wrongNameIsRefused(t *testing.T, s *etcdServers) {
	right, wrong := s.endpoints[1].TLS, "orders-1.orders-peers.other.svc"
	r := s.changed(t, func(e []Endpoint) {
		e[1].Host = wrong
		e[1].TLS = func() (*tls.Config, error) {
			config, err := right()
			if err == nil {
				config.ServerName = wrong
			}
			return config, err
		}
	})
	if m := memberOf(t, r, "orders-1"); !strings.Contains(m.Problem, "certificate is valid for") || m.Version != "" {
		t.Errorf("member %+v", m)
	}
	if m := memberOf(t, r, "orders-0"); m.Problem != "" {
		t.Errorf("member %+v", m)
	}
}

func wrongMemberIsNamed(t *testing.T, s *etcdServers) {
	r := s.changed(t, func(e []Endpoint) { e[2].Address = e[1].Address; e[2].Host, e[2].TLS = e[1].Host, e[1].TLS })
	want := "its pod answers as member " + memberOf(t, s.round(false), "orders-1").ID
	if m := memberOf(t, r, "orders-2"); m.Problem != want || m.Version != "" || m.Leader != "" {
		t.Errorf("member %+v, want %q", m, want)
	}
}

func badCredentials(t *testing.T, s *etcdServers) {
	r := s.changed(t, func(e []Endpoint) {
		e[0].TLS = func() (*tls.Config, error) { return nil, errors.New("the Secret is missing") }
	})
	if m := memberOf(t, r, "orders-0"); !strings.Contains(m.Problem, "dial orders-0: the Secret is missing") {
		t.Errorf("member %+v", m)
	}
	e := s.endpoints[0]
	e.TLS = func() (*tls.Config, error) { return nil, errors.New("the Secret is missing") }
	backuptest.WantError(t, s.clients.MoveLeader(t.Context(), t.Name(), Target{Endpoint: e}, "a1"), "move leader from orders-0", "the Secret is missing")
	_, err := s.clients.Snapshot(t.Context(), t.Name(), Target{Endpoint: e})
	backuptest.WantError(t, err, "snapshot of orders-0", "the Secret is missing")
}

func snapshotIsStored(t *testing.T, s *etcdServers) {
	for i := range 50 {
		s.MustPut(fmt.Sprintf("key-%d", i), strings.Repeat("v", 1000))
	}
	backUpAndOpen(t, s)
}

// backUpAndOpen stores a snapshot of a real member, verifies it, and opens it as
// the database that it is.
func backUpAndOpen(t *testing.T, s *etcdServers) {
	t.Helper()
	stream, err := s.clients.Snapshot(t.Context(), "shop/orders", s.target(s.round(false), s.endpoints[0]))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	url := "file://" + dir + "/shop/orders.db?root=" + dir
	saved, err := backup.Store{}.Save(t.Context(), url, stream, backup.Manifest{Name: "orders"})
	if err = errors.Join(err, stream.Close()); err != nil {
		t.Fatal(err)
	}
	if m, err := (backup.Store{}).Verify(t.Context(), url); err != nil || !reflect.DeepEqual(m, saved) || saved.Size < 20<<10 {
		t.Errorf("stored %+v, read %+v, %v", saved, m, err)
	}
	path := dir + "/shop/orders.db"
	if err := os.Truncate(path, saved.Size-32); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		if keys := tx.Bucket([]byte("key")); keys == nil || keys.Stats().KeyN == 0 {
			return errors.New("the database holds no keys")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func connectionsAreKept(t *testing.T, s *etcdServers) {
	e := s.endpoints[0]
	client := func() *Conn {
		c, err := s.clients.client(t.Name(), e)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := client()
	if _, err := first.maintenance().Status(t.Context(), &pb.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	s.clients.retire(t.Name(), e.Member, first) // it is not idle
	if client() != first {
		t.Error("the connection was not kept")
	}
	e.Incarnation = "2"
	second := client()
	if second == first || first.etcd.Ctx().Err() == nil {
		t.Error("the connection to an earlier incarnation is still used, or open")
	}
	s.clients.Forget(t.Name())
	if second.etcd.Ctx().Err() == nil || client() == second {
		t.Error("the connection of a cluster that was forgotten is still used, or open")
	}
	s.clients.Forget(t.Name())
}

func downMemberIsNamed(t *testing.T, s *etcdServers) {
	t.Run("one that hangs", func(t *testing.T) {
		resume := s.Members[2].Pause()
		begun := time.Now()
		r := s.await("the others to go on", func(r state.Round) bool { return r.Problem == "" && memberOf(t, r, "orders-0").Problem == "" })
		if m := memberOf(t, r, "orders-2"); m.Problem == "" || time.Since(begun) > 30*time.Second {
			t.Errorf("member %+v after %s", m, time.Since(begun))
		}
		resume()
	})
	s.Members[2].Kill()
	r := s.await("the others to go on", func(r state.Round) bool {
		return r.Problem == "" && len(r.Members) == 3 && memberOf(t, r, "orders-0").Problem == "" && memberOf(t, r, "orders-1").Problem == ""
	})
	if m := memberOf(t, r, "orders-2"); m.Problem == "" || m.Version != "" {
		t.Errorf("member %+v", m)
	}
	// A member without a pod is in the list, too.
	all := s.endpoints
	s.endpoints = all[:2]
	if m := memberOf(t, s.round(false), "orders-2"); m.Problem != "it has no pod with an address" {
		t.Errorf("member %+v", m)
	}
	s.endpoints = all
	s.Members[2].Start()
	s.await("the member to be back over its old connection", func(r state.Round) bool { return troubleOf(r) == "" })
}

func noQuorumNoList(t *testing.T, s *etcdServers) {
	s.Members[1].Kill()
	s.Members[2].Kill()
	r := s.round(true)
	if r.Problem == "" || r.ClusterID != "" || len(r.Members) != 3 {
		t.Fatalf("round %+v", r)
	}
	// The one that is left still says how far it is; nobody confirms it.
	if m := r.Members[0]; m.ID == "" || m.Revision == 0 || m.AppliedIndex == 0 || m.Term == 0 || !strings.Contains(m.Problem, "linearizable read") {
		t.Errorf("the member that is left: %+v", m)
	}
	if m := r.Members[1]; m.ID != "" || m.Problem == "" {
		t.Errorf("a member that is gone: %+v", m)
	}
	if none := s.clients.Round(t.Context(), "shop/orders", nil, false); none.Problem != "no member has an address yet" {
		t.Errorf("a round of nobody: %+v", none)
	}
}

// The oldest release that quorate talks to, in clear text: it tells less of
// itself.
func TestRealOldMembersInClearText(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	s := startEtcd(t, etcdtest.V34, 3, false)
	s.MustPut("greeting", "hello")
	r := s.await("the cluster version", func(r state.Round) bool { return r.ClusterVersion == "3.4.0" && troubleOf(r) == "" })
	for _, m := range r.Members {
		if m.Version != "3.4.34" || m.StorageVersion != "" || m.Quota != 0 || m.Term == 0 || m.CommitIndex == 0 || m.AppliedIndex == 0 {
			t.Errorf("member %+v", m)
		}
	}
	hashesAgree(t, s)
	leadershipMoves(t, s)
	backUpAndOpen(t, s)
}

func TestAlarmIsSeen(t *testing.T) {
	t.Parallel()
	s := startEtcd(t, etcdtest.V36, 1, true, "--quota-backend-bytes=2097152")
	// The size is that of the last commit, so some more writes get through; and what
	// is refused may be the one that would have gone beyond the quota.
	for i := range 500 {
		// On a busy machine a write may time out, which is not what is awaited.
		if err := s.Put(fmt.Sprintf("key-%d", i), strings.Repeat("v", 256<<10)); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
	}
	r := s.await("the alarm", func(r state.Round) bool { return len(r.Alarms) > 0 })
	m := r.Members[0]
	if want := (state.Alarm{Kind: state.NoSpace, MemberID: m.ID}); r.Alarms[0] != want || m.Problem != "" || m.DBSize == 0 || m.Quota != 2097152 {
		t.Errorf("alarms %q, member %+v", r.Alarms, m)
	}
}

// A connection is kept for as long as the pod and the certificates are the same: one
// of an earlier pod would ask whoever has its address now.
func TestAConnectionIsOfOneIncarnation(t *testing.T) {
	c := New()
	defer c.Forget("shop/orders")
	dial := func(member, incarnation string) *Conn {
		m, err := c.client("shop/orders", Endpoint{Member: member, Address: "127.0.0.1:1", Incarnation: incarnation})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, other := dial("orders-0", "1"), dial("orders-1", "1")
	if first == other || dial("orders-0", "1") != first {
		t.Error("the connection to a member is not kept")
	}
	if dial("orders-0", "2") == first || dial("orders-1", "1") != other {
		t.Error("the connection to an earlier pod is kept")
	}
}

// A connection that nothing is asked over is closed, with all that is needed to make it, and made again when
// its member is asked. It stays while a round is under way, which asks one member after the other, and where
// it has come in by a password.
func TestAnIdleConnectionIsClosed(t *testing.T) {
	c := New()
	defer c.Forget("shop/orders")
	e := Endpoint{Member: "orders-0", Address: "127.0.0.1:1", Login: func(context.Context) ([]Password, error) { return nil, nil }}
	dial := func() *Conn {
		m, err := c.client("shop/orders", e)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := dial()
	retire := func() { c.retire("shop/orders", e.Member, first) }
	asked := c.hold("shop/orders")
	retire()
	if dial() != first {
		t.Error("it is closed while a round is under way")
	}
	asked()
	for what, in := range map[string]*login{"that has come in": {token: "token"}, "that was refused": {refused: ErrNoPassword}} {
		first.login = in
		if retire(); dial() != first {
			t.Errorf("one %s by a password is closed", what)
		}
	}
	first.login = &login{}
	retire()
	if first.etcd.Ctx().Err() == nil || len(c.clusters) != 0 {
		t.Error("it is idle and not closed")
	}
	second := dial()
	if retire(); second == first || dial() != second {
		t.Error("the member has no connection of its own again")
	}
}
