package etcd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/state"
)

// smallQuota is what members may hold whose space is to run out, in bytes.
const smallQuota = 8 << 20

// fill overwrites a few keys until no member takes anything more.
func (s *etcdServers) fill() {
	s.Helper()
	// Members refuse a write that does not fit, and take a smaller one: only where
	// ever smaller ones stop fitting is there room for nothing.
	size := 256 << 10
	for i := range 2000 {
		// On a busy machine a write may time out, which is not what is awaited.
		if err := s.Put(fmt.Sprintf("key-%d", i%4), strings.Repeat("v", size)); !errors.Is(err, rpctypes.ErrNoSpace) {
			continue
		}
		r := s.await("the alarm", func(r state.Round) bool { return len(r.Alarms) > 0 && troubleOf(r) == "" })
		if !slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.DBSize < smallQuota }) {
			return
		}
		size = max(size/4, 1<<10)
		s.disarmAll()
	}
	s.Fatal("the members do not get full")
}

func (s *etcdServers) disarmAll() {
	s.Helper()
	m, err := s.clients.client("shop/orders", s.endpoints[0])
	if err != nil {
		s.Fatal(err)
	}
	if _, err := m.etcd.AlarmDisarm(s.Context(), &clientv3.AlarmMember{}); err != nil {
		s.Fatal(err)
	}
}

// raise raises an alarm against a member, or against nobody.
func (s *etcdServers) raise(kind pb.AlarmType, member string) {
	s.Helper()
	m, err := s.clients.client("shop/orders", s.endpoints[0])
	if err != nil {
		s.Fatal(err)
	}
	id := uint64(0)
	if member != "" {
		if id, err = strconv.ParseUint(memberOf(s.T, s.round(false), member).ID, 16, 64); err != nil {
			s.Fatal(err)
		}
	}
	if _, err := m.maintenance().Alarm(s.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: kind}); err != nil {
		s.Fatal(err)
	}
}

// compactTwice drops the whole history, and again, as after an answer that got lost.
func (s *etcdServers) compactTwice(r state.Round) {
	s.Helper()
	leader, _ := s.leader(r)
	revision := memberOf(s.T, r, leader.Member).Revision
	for range 2 {
		if err := s.clients.Compact(s.Context(), "shop/orders", leader, revision); err != nil {
			s.Fatal(err)
		}
	}
	backuptest.WantError(s.T, s.clients.Compact(s.Context(), "shop/orders", leader, revision+1000), "compact through "+leader.Member, "future")
	m, err := s.clients.client("shop/orders", leader.Endpoint)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := m.etcd.Get(s.Context(), "key-0", clientv3.WithRev(revision-1)); !errors.Is(err, rpctypes.ErrCompacted) {
		s.Errorf("the revision before is still there: %v", err)
	}
	if got, err := m.etcd.Get(s.Context(), "key-0"); err != nil || got.Count != 1 {
		s.Errorf("the newest value: %v, %v", got, err)
	}
}

func (s *etcdServers) defragmentTwice(r state.Round) {
	s.Helper()
	for _, e := range s.endpoints {
		for range 2 {
			if err := s.clients.Defragment(s.Context(), "shop/orders", s.target(r, e)); err != nil {
				s.Fatal(err)
			}
		}
	}
}

// 91: a full cluster takes writes again after compaction, defragmentation and the
// end of the alarm, in this order and no other.
func TestSpaceIsFreed(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		// What is not yet in the file does not count, so that members get over the quota.
		quota := fmt.Sprintf("--quota-backend-bytes=%d", smallQuota)
		s := startEtcd(t, version, 3, false, quota, "--backend-batch-interval=2s")
		s.fill()
		// Members that find themselves full at once each raise an alarm.
		for _, name := range []string{"orders-0", "orders-2"} {
			s.raise(pb.AlarmType_NOSPACE, name)
		}
		full := s.await("two alarms", func(r state.Round) bool { return len(r.Alarms) > 1 && troubleOf(r) == "" })
		alarm := full.Alarms[0]
		if alarm.Kind != state.NoSpace {
			t.Fatalf("alarms %v", full.Alarms)
		}
		disarm := func(members []Endpoint, alarm state.Alarm) error {
			return s.clients.Disarm(t.Context(), "shop/orders", members, alarm)
		}
		for _, first := range full.Alarms[1:] {
			if err := disarm(s.endpoints, first); err != nil {
				t.Errorf("while another alarm is on: %v", err)
			}
		}
		backuptest.WantError(t, disarm(s.endpoints, alarm), "is disarmed, but orders-",
			"takes no writes: etcdserver: mvcc: database space exceeded")
		s.compactTwice(s.await("the alarm to be back", func(r state.Round) bool {
			return len(r.Alarms) > 0 && troubleOf(r) == ""
		}))
		s.defragmentTwice(full)
		r := s.await("smaller files", func(r state.Round) bool {
			large := func(m state.Member) bool { return m.DBSize >= smallQuota || m.DBSize == 0 }
			return troubleOf(r) == "" && !slices.ContainsFunc(r.Members, large)
		})
		if err := s.Put("key", "v"); !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Errorf("before the alarm ends: %v", err)
		}
		for _, alarm := range slices.Concat(r.Alarms, r.Alarms) {
			if err := disarm(s.endpoints, alarm); err != nil {
				t.Fatal(err)
			}
		}
		if r := s.round(false); len(r.Alarms) > 0 {
			t.Errorf("alarms %v", r.Alarms)
		}
		s.MustPut("key", "v")
		backuptest.WantError(t, disarm(s.endpoints, state.Alarm{Kind: "LATER", MemberID: "a1"}), "etcd has no such alarm")
		nobody := state.Alarm{Kind: state.NoSpace, MemberID: "nonsense"}
		backuptest.WantError(t, disarm(s.endpoints, nobody), "etcd has no such alarm")
		backuptest.WantError(t, disarm(nil, alarm), "no member has an address")
	}, etcdtest.V36, etcdtest.V34)
}

// I3: what answers at a member's address is asked which member it is, and does nothing
// when it is another one.
func TestNothingIsAskedOfAnotherMember(t *testing.T) {
	t.Parallel()
	s := startEtcd(t, etcdtest.V36, 3, false)
	r := s.round(false)
	leader, other := s.leader(r)
	otherCluster, otherMember := leader, leader
	otherCluster.ClusterID, otherMember.ID = "c1", other.ID
	for name, ask := range map[string]func(Target) error{
		"compact":              func(m Target) error { return s.clients.Compact(t.Context(), "shop/orders", m, 1) },
		"defragment":           func(m Target) error { return s.clients.Defragment(t.Context(), "shop/orders", m) },
		"move leader":          func(m Target) error { return s.clients.MoveLeader(t.Context(), "shop/orders", m, other.ID) },
		"add to the log":       func(m Target) error { return s.clients.AppendNoops(t.Context(), "shop/orders", m) },
		"downgrade to 3.5":     func(m Target) error { return s.clients.EnableDowngrade(t.Context(), "shop/orders", m, "3.5") },
		"cancel the downgrade": func(m Target) error { return s.clients.CancelDowngrade(t.Context(), "shop/orders", m) },
		"snapshot": func(m Target) error {
			_, err := s.clients.Snapshot(t.Context(), "shop/orders", m)
			return err
		},
	} {
		backuptest.WantError(t, ask(otherCluster), name, leader.Member, "it answers for cluster "+leader.ClusterID+", not c1")
		backuptest.WantError(t, ask(otherMember), name, leader.Member, "it answers as member "+leader.ID+", not "+other.ID)
	}
	if after := s.round(false); after.Downgrading || after.Members[0].Leader != leader.ID {
		t.Errorf("before %+v\nafter %+v", r, after)
	}
}

// 90: under the alarm CORRUPT etcd refuses every read, and the members can be
// listed and compared all the same.
func TestCorruptMemberIsSeen(t *testing.T) {
	t.Parallel()
	s := startEtcd(t, etcdtest.V36, 3, false)
	for i := range 5 {
		s.MustPut(fmt.Sprintf("key-%d", i), "hello")
	}
	s.await("all to have it", func(r state.Round) bool { return troubleOf(r) == "" })
	if r := s.round(true); state.Suspicious(r) {
		t.Errorf("suspicious from the start: %+v", r)
	}
	// A member that ends in peace has written everything to its database.
	if err := s.Members[1].Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.Members[1].Wait()
	s.spoil(1)
	s.Members[1].Start()
	s.await("the member to be back", func(r state.Round) bool { return troubleOf(r) == "" })
	r := s.round(true)
	if !state.Suspicious(r) || memberOf(t, r, "orders-1").Hash == memberOf(t, r, "orders-0").Hash {
		t.Fatalf("other data is not seen: %+v", r)
	}
	// As etcd's own check does when it cannot tell who is wrong.
	s.raise(pb.AlarmType_CORRUPT, "")
	if err := s.Put("key", "v"); !errors.Is(err, rpctypes.ErrCorrupt) {
		t.Fatalf("a write under CORRUPT: %v", err)
	}
	r = s.round(true)
	want := state.Alarm{Kind: state.Corrupt, MemberID: "0"}
	if len(r.Members) != 3 || troubleOf(r) != "" || !slices.Equal(r.Alarms, []state.Alarm{want}) || !state.Suspicious(r) {
		t.Fatalf("round %+v", r)
	}
	if a, b, c := memberOf(t, r, "orders-0"), memberOf(t, r, "orders-1"), memberOf(t, r, "orders-2"); a.Hash != c.Hash || a.Hash == b.Hash || a.HashRevision == 0 || a.HashRevision != b.HashRevision {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
	if err := s.clients.Disarm(t.Context(), "shop/orders", s.endpoints, want); err != nil {
		t.Error(err)
	}
	s.MustPut("key", "v")
}

// spoil changes one value in the database of a member that is stopped.
func (s *etcdServers) spoil(i int) {
	s.Helper()
	db, err := bolt.Open(filepath.Join(s.Members[i].Volume, guard.DataDir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		s.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		k, v := keys.Cursor().First()
		spoilt := slices.Clone(v)
		i := strings.Index(string(spoilt), "hello")
		if i < 0 {
			return errors.New("the first value is not the one that was written")
		}
		spoilt[i] = 'j'
		return keys.Put(slices.Clone(k), spoilt)
	})
	if err = errors.Join(err, db.Close()); err != nil {
		s.Fatal(err)
	}
}
