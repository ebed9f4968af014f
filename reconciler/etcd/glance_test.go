package etcd

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/state"
)

// glance glances at the members by what a round has told.
func (s *etcdServers) glance(last state.Round) (state.Round, bool) {
	return s.clients.Glance(s.Context(), "shop/orders", s.endpoints, last)
}

// atRest is a round after which nothing changes by itself: from 3.6 on, each member writes the version of
// its schema a moment after the cluster's version is agreed on, and reports it from then on.
func (s *etcdServers) atRest() state.Round {
	s.Helper()
	return s.await("members at rest", func(r state.Round) bool {
		return troubleOf(r) == "" && !slices.ContainsFunc(r.Members, func(m state.Member) bool {
			minor := state.Minor(m.Version)
			return minor != "3.4" && minor != "3.5" && m.StorageVersion != r.ClusterVersion
		})
	})
}

// A glance at members of each line sees that they are as they were, with the revision and sizes that
// they have by now, and sees an alarm, another leader, and a member that is gone.
func TestAGlanceSeesWhatAStatusHas(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := startEtcd(t, version, 3, false)
		last := s.atRest()
		c, err := s.clients.client("shop/orders", s.endpoints[0])
		if err != nil {
			t.Fatal(err)
		}
		put, err := c.etcd.Put(t.Context(), "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		now, same := s.glance(last)
		if !same || now.At.Before(last.At) || now.ClusterVersion != last.ClusterVersion ||
			now.Members[0].Name != last.Members[0].Name {
			t.Errorf("after a write: same %t, %+v", same, now)
		}
		name := s.endpoints[0].Member // through which it was written
		before, after := last.Member(name).Revision, now.Member(name).Revision
		if after != put.Header.Revision || before == after {
			t.Errorf("the revision of %s is %d after a write at %d", name, after, put.Header.Revision)
		}

		var leader Endpoint
		for _, e := range s.endpoints {
			if e.Member == now.Leader().Name {
				leader = e
			}
		}
		other := now.Members[0]
		if other.ID == now.Leader().ID {
			other = now.Members[1]
		}
		from := Target{leader, now.ClusterID, now.Leader().ID}
		if err := s.clients.MoveLeader(t.Context(), "shop/orders", from, other.ID); err != nil {
			t.Fatal(err)
		}
		if _, same := s.glance(last); same {
			t.Error("another leader is nothing different")
		}
		well := s.await("one leader", func(r state.Round) bool { return troubleOf(r) == "" })
		if _, same := s.glance(well); !same {
			t.Error("it differs from itself")
		}

		raise := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: c.id(t), Alarm: pb.AlarmType_NOSPACE}
		if _, err := c.maintenance().Alarm(t.Context(), raise); err != nil {
			t.Fatal(err)
		}
		alarmed := s.await("the alarm", func(r state.Round) bool { return len(r.Alarms) > 0 })
		if _, same := s.glance(well); same {
			t.Error("an alarm is nothing different")
		}
		if _, same := s.glance(alarmed); same {
			t.Error("an alarm that was on already is at rest")
		}
		if err := s.clients.Disarm(t.Context(), "shop/orders", s.endpoints, alarmed.Alarms[0]); err != nil {
			t.Fatal(err)
		}
		well = s.await("no alarm", func(r state.Round) bool { return len(r.Alarms) == 0 && troubleOf(r) == "" })

		s.Members[2].Kill()
		if _, same := s.glance(well); same {
			t.Error("a member that is gone is nothing different")
		}
	})
}

// id is that of the member.
func (m *Conn) id(t *testing.T) uint64 {
	t.Helper()
	s, err := m.maintenance().Status(t.Context(), &pb.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Header.MemberId
}

// Only what was well, of all members and of this very cluster, can be the same.
func TestAGlanceAtWhatWasNotWellIsNone(t *testing.T) {
	t.Parallel()
	s := startEtcd(t, etcdtest.V36, 1, false)
	last := s.atRest()
	for name, spoil := range map[string]func(r *state.Round){
		"there was no list":       func(r *state.Round) { r.Problem = "no member answers" },
		"an alarm was on":         func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace}} },
		"there was no member":     func(r *state.Round) { r.Members = nil },
		"one more was listed":     func(r *state.Round) { r.Members = append(r.Members, r.Members[0]) },
		"a member had a problem":  func(r *state.Round) { r.Members[0].Problem = "linearizable read" },
		"a member was a learner":  func(r *state.Round) { r.Members[0].Learner = true },
		"a member had no leader":  func(r *state.Round) { r.Members[0].Leader = "" },
		"a member told of errors": func(r *state.Round) { r.Members[0].Errors = []state.MemberError{{Text: "x"}} },
		"another cluster":         func(r *state.Round) { r.ClusterID = "c1" },
		"another member":          func(r *state.Round) { r.Members[0].ID = "a0" },
		"another name":            func(r *state.Round) { r.Members[0].Name = "orders-7" },
		"another version":         func(r *state.Round) { r.Members[0].Version = "3.5.0" },
		"another term":            func(r *state.Round) { r.Members[0].Term++ },
		"another leader":          func(r *state.Round) { r.Members[0].Leader = "a0" },
		"another schema":          func(r *state.Round) { r.Members[0].StorageVersion = "3.0.0" },
		"another quota":           func(r *state.Round) { r.Members[0].Quota++ },
		"a downgrade was enabled": func(r *state.Round) { r.Downgrading, r.DowngradeTarget = true, "3.5" },
		"it had another target":   func(r *state.Round) { r.DowngradeTarget = "3.5" },
	} {
		r := last
		r.Members = append([]state.Member(nil), last.Members...)
		spoil(&r)
		if _, same := s.glance(r); same {
			t.Errorf("%s, and a glance shows no difference", name)
		}
	}
	if _, same := s.glance(last); !same {
		t.Error("the round itself is different")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, same := s.clients.Glance(ctx, "shop/orders", s.endpoints, last); same {
		t.Error("who was not asked is the same")
	}
}

// Each request to a member is made aside, and what it is for is back when it has ended, also one that
// is not answered.
func TestRequestsAreMadeAside(t *testing.T) {
	t.Parallel()
	s := startEtcd(t, etcdtest.V36, 1, false)
	var left, back atomic.Int32
	s.clients.Aside = func(context.Context) func() {
		left.Add(1)
		return func() { back.Add(1) }
	}
	r := s.round(false)
	if n := left.Load(); n != 4 || back.Load() != n {
		t.Errorf("a round went aside %d times, and came back %d times", n, back.Load())
	}
	resume := s.Members[0].Pause()
	target := Target{s.endpoints[0], r.ClusterID, r.Members[0].ID}
	if _, _, err := s.clients.identify(t.Context(), "shop/orders", target); err == nil {
		t.Error("a member that is stopped has answered")
	}
	if n := left.Load(); n != 5 || back.Load() != n {
		t.Errorf("it went aside %d times, and came back %d times", n, back.Load())
	}
	resume()
}
