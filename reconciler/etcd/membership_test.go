package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/needs"
)

// The membership of real members of every minor that quorate runs: from one
// member to two and back, each change asked for twice.
func TestMembershipOfRealMembers(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := startEtcd(t, version, 1, false)
		peer := "http://" + backuptest.FreeAddress(t)
		learnerIsDropped(s, learnerIsAdded(s, peer), peer)
		id := learnerIsAdded(s, peer)
		learnerIsNotReady(s, id)
		startLearner(s, peer)
		learnerIsPromoted(s, id)
		guardKnowsRealLogs(s, id)
		memberIsRemoved(s, id)
	})
}

func (s *etcdServers) clusterID() string {
	s.Helper()
	return s.await("a member list", func(r state.Round) bool { return r.Problem == "" }).ClusterID
}

// roster is the member list as text: ID, and "learner" for one that is.
func (s *etcdServers) roster() []string {
	s.Helper()
	var list []string
	for _, m := range s.await("a member list", func(r state.Round) bool { return r.Problem == "" }).Members {
		text := m.ID
		if m.Learner {
			text += " learner"
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func learnerIsAdded(s *etcdServers, peer string) string {
	s.Helper()
	cluster, before := s.clusterID(), s.roster()
	_, err := s.clients.AddLearner(s.Context(), "shop/orders", "c0ffee", s.endpoints, peer)
	if !errors.Is(err, ErrOtherCluster) || !slices.Equal(s.roster(), before) {
		s.Errorf("in another cluster: %v, the members are %q", err, s.roster())
	}
	id := addLearner(s, cluster, peer)
	again, err := s.clients.AddLearner(s.Context(), "shop/orders", cluster, s.endpoints, peer)
	if err != nil || again != id || len(s.roster()) != 2 || !slices.Contains(s.roster(), id+" learner") {
		s.Errorf("again: %s and not %s, %v, the members are %q", again, id, err, s.roster())
	}
	_, err = s.clients.AddLearner(s.Context(), "shop/orders", cluster, s.endpoints, "http://127.0.0.1:1")
	if !errors.Is(err, ErrTooManyLearners) || len(s.roster()) != 2 {
		s.Errorf("a second learner: %v, the members are %q", err, s.roster())
	}
	voter := strings.SplitN(s.Initial[0], "=", 2)[1]
	_, err = s.clients.AddLearner(s.Context(), "shop/orders", cluster, s.endpoints, voter)
	backuptest.WantError(s.T, err, "is a voter", "must be removed first")
	if !errors.Is(err, ErrIsVoter) {
		s.Errorf("at a voter's address: %v", err)
	}
	return id
}

// addLearner adds a learner, in the next second if it must be.
func addLearner(s *etcdServers, cluster, peer string) string {
	s.Helper()
	for {
		id, err := s.clients.AddLearner(s.Context(), "shop/orders", cluster, s.endpoints, peer)
		if err == nil {
			return id
		}
		if !errors.Is(err, errIDUsed) {
			s.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// learnerIsDropped drops a learner by its ID, and another one by its address.
func learnerIsDropped(s *etcdServers, id, peer string) {
	s.Helper()
	cluster, voter := s.clusterID(), s.clusterVoter()
	for _, by := range []string{id, ""} {
		if by == "" {
			addLearner(s, cluster, peer)
		}
		err := s.clients.RemoveLearner(s.Context(), "shop/orders", "c0ffee", s.endpoints, by, peer)
		if !errors.Is(err, ErrOtherCluster) || len(s.roster()) != 2 {
			s.Errorf("in another cluster: %v, the members are %q", err, s.roster())
		}
		for range 2 {
			if err := s.clients.RemoveLearner(s.Context(), "shop/orders", cluster, s.endpoints, by, peer); err != nil || len(s.roster()) != 1 {
				s.Fatalf("by %q: %v, the members are %q", by, err, s.roster())
			}
		}
	}
	url := strings.SplitN(s.Initial[0], "=", 2)[1]
	for _, by := range []string{voter, ""} {
		err := s.clients.RemoveLearner(s.Context(), "shop/orders", cluster, s.endpoints, by, url)
		if !errors.Is(err, ErrIsVoter) || len(s.roster()) != 1 {
			s.Errorf("a voter by %q: %v, the members are %q", by, err, s.roster())
		}
	}
}

// clusterVoter is the ID of the first member.
func (s *etcdServers) clusterVoter() string {
	s.Helper()
	return memberOf(s.T, s.round(false), "orders-0").ID
}

func learnerIsNotReady(s *etcdServers, id string) {
	s.Helper()
	err := s.clients.PromoteMember(s.Context(), "shop/orders", s.clusterID(), s.endpoints, id)
	if !errors.Is(err, ErrLearnerNotReady) || !slices.Contains(s.roster(), id+" learner") {
		s.Errorf("a learner that never ran: %v, the members are %q", err, s.roster())
	}
	err = s.clients.PromoteMember(s.Context(), "shop/orders", s.clusterID(), s.endpoints, "beef")
	if !errors.Is(err, ErrNotAMember) {
		s.Errorf("one that does not exist: %v", err)
	}
	backuptest.WantError(s.T, s.clients.PromoteMember(s.Context(), "shop/orders", s.clusterID(), s.endpoints, "x"), "promote member x")
}

// startLearner starts the second member, and checks that it shows as a learner
// with which nothing is wrong, although it answers next to nothing.
func startLearner(s *etcdServers, peer string) {
	s.Helper()
	c := clustertest.Orders()
	s.Initial = append(s.Initial, naming.Member(c.Metadata.Name, int32(1))+"="+peer)
	s.dial(s.Add(c, 1, peer, "--initial-cluster="+strings.Join(s.Initial, ","), "--initial-cluster-state=existing"))
	s.await("the learner", func(r state.Round) bool {
		return r.Problem == "" && troubleOf(r) == "" && slices.ContainsFunc(r.Members, func(m state.Member) bool {
			return m.Learner && m.Name == "orders-1" && m.Version != "" && m.AppliedIndex > 0 && m.Leader != ""
		})
	})
	r := s.round(true)
	if trouble := troubleOf(r); trouble != "" {
		s.Errorf("a deep round: %s", trouble)
	}
	for _, m := range r.Members {
		if (m.Hash != 0) == m.Learner {
			s.Errorf("hash of %+v", m)
		}
	}
	// A learner alone does not speak for the cluster.
	all := s.endpoints
	s.endpoints = all[1:]
	if r := s.round(false); r.Problem == "" || len(r.Members) != 1 || !r.Members[0].Learner || r.Members[0].Problem == "" {
		s.Errorf("a round of the learner alone: %+v", r)
	}
	s.endpoints = all
}

func learnerIsPromoted(s *etcdServers, id string) {
	s.Helper()
	// The learner stands first: it is passed over.
	asked := []Endpoint{s.endpoints[1], s.endpoints[0]}
	err := s.clients.PromoteMember(s.Context(), "shop/orders", "c0ffee", asked, id)
	if !errors.Is(err, ErrOtherCluster) || !slices.Contains(s.roster(), id+" learner") {
		s.Errorf("in another cluster: %v, the members are %q", err, s.roster())
	}
	for range 100 {
		err = s.clients.PromoteMember(s.Context(), "shop/orders", s.clusterID(), asked, id)
		if !errors.Is(err, ErrLearnerNotReady) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		s.Fatal(err)
	}
	if err := s.clients.PromoteMember(s.Context(), "shop/orders", s.clusterID(), asked, id); err != nil {
		s.Errorf("again: %v", err)
	}
	s.await("two voters", func(r state.Round) bool {
		return troubleOf(r) == "" && !slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.Learner })
	})
}

// guardKnowsRealLogs has the guard look at volumes that a real etcd has written:
// that of a member that formed the cluster, and that of one that was added.
func guardKnowsRealLogs(s *etcdServers, joined string) {
	s.Helper()
	r := s.round(false)
	ids := map[string]string{"orders-0": memberOf(s.T, r, "orders-0").ID, "orders-1": joined}
	path := filepath.Join(s.TempDir(), guard.RecordFile)
	for i, member := range []string{"orders-0", "orders-1"} {
		marker := fmt.Sprintf(`{"token":"token","member":%q}`, member)
		if err := os.WriteFile(filepath.Join(s.Members[i].Volume, "quorate.json"), []byte(marker), 0o600); err != nil {
			s.Fatal(err)
		}
		for _, want := range []struct {
			id, cluster string
			code        int
		}{
			{ids[member], r.ClusterID, 0},
			{"beef", r.ClusterID, guard.ExitOutdated},
			{ids[member], "beef", guard.ExitForeign},
		} {
			record, err := json.Marshal(map[string]any{"formatVersion": 1, "token": "token", "clusterID": want.cluster, "members": map[string]string{member: want.id}})
			if err == nil {
				err = os.WriteFile(path, record, 0o600)
			}
			if err != nil {
				s.Fatal(err)
			}
			if err := guard.Check(path, s.Members[i].Volume, member); guard.ExitCode(err) != want.code {
				s.Errorf("%s as member %s of cluster %s: %v, want exit code %d", member, want.id, want.cluster, err, want.code)
			}
		}
	}
}

func memberIsRemoved(s *etcdServers, id string) {
	s.Helper()
	cluster := s.clusterID()
	err := s.clients.RemoveMember(s.Context(), "shop/orders", "c0ffee", s.endpoints, id)
	if !errors.Is(err, ErrOtherCluster) || len(s.roster()) != 2 {
		s.Errorf("in another cluster: %v, the members are %q", err, s.roster())
	}
	err = s.clients.RemoveMember(s.Context(), "shop/orders", cluster, s.endpoints[1:], id)
	backuptest.WantError(s.T, err, "remove member "+id, "orders-1: it is the member that is to go")
	asked := []Endpoint{s.endpoints[1], s.endpoints[0]}
	// Just after a promotion etcd may find its members out of touch.
	for range 100 {
		err = s.clients.RemoveMember(s.Context(), "shop/orders", cluster, asked, id)
		if !errors.Is(err, ErrUnhealthyCluster) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.endpoints = s.endpoints[:1]
	if err := s.clients.RemoveMember(s.Context(), "shop/orders", cluster, asked, id); err != nil {
		s.Errorf("again: %v", err)
	}
	last := s.roster()
	if len(last) != 1 {
		s.Fatalf("the members are %q", last)
	}
	err = s.clients.RemoveMember(s.Context(), "shop/orders", cluster, s.endpoints, last[0])
	if err == nil || !slices.Equal(s.roster(), last) {
		s.Errorf("the last voter: %v, the members are %q", err, s.roster())
	}
}

// forgetfulProxy passes connections on to a member, and cuts each one whose
// answer comes after the change was applied, as often as it is told.
type forgetfulProxy struct {
	listener net.Listener
	target   string
	applied  func() bool
	mu       sync.Mutex
	left     int
	cuts     int
}

func newForgetfulProxy(t *testing.T, target string, applied func() bool) *forgetfulProxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &forgetfulProxy{listener: l, target: target, applied: applied, left: 1}
	go p.serve()
	return p
}

func (p *forgetfulProxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
		go p.answer(client, server)
	}
}

// answer copies what the member says, until it is time to cut.
func (p *forgetfulProxy) answer(client, server net.Conn) {
	defer func() { _ = client.Close(); _ = server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || p.cut() {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *forgetfulProxy) cut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 || !p.applied() {
		return false
	}
	p.left, p.cuts = p.left-1, p.cuts+1
	return true
}

// through is the endpoint as it is reached through a proxy that cuts the
// connection once the member list is as applied wants it.
func (s *etcdServers) through(applied func(roster []string) bool) (Endpoint, *forgetfulProxy) {
	s.Helper()
	direct := New()
	s.Cleanup(func() { direct.Forget("direct") })
	p := newForgetfulProxy(s.T, s.endpoints[0].Address, func() bool {
		list, err := direct.listMembers(context.Background(), membersToAsk{cluster: "direct", clusterID: s.clusterID(), endpoints: s.endpoints[:1]})
		if err != nil {
			return false
		}
		var roster []string
		for _, m := range list.members {
			roster = append(roster, hexID(m.ID))
			if m.IsLearner {
				roster[len(roster)-1] += " learner"
			}
		}
		return applied(roster)
	})
	e := s.endpoints[0]
	e.Address, e.Incarnation = p.listener.Addr().String(), p.listener.Addr().String()
	return e, p
}

// I24, scenarios 44 and 45: the answer is lost after the change was applied.
// It is not asked for again, and counts as done.
func TestLostAnswersOfMembershipChanges(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := startEtcd(t, version, 1, false)
		cluster, peer := s.clusterID(), "http://"+backuptest.FreeAddress(t)
		lost := func(p *forgetfulProxy, err error) {
			t.Helper()
			if err != nil || p.cuts != 1 {
				t.Fatalf("%v after %d lost answers", err, p.cuts)
			}
		}
		e, p := s.through(func(roster []string) bool { return len(roster) == 2 })
		id, err := s.clients.AddLearner(t.Context(), t.Name(), cluster, []Endpoint{e}, peer)
		if lost(p, err); !slices.Contains(s.roster(), id+" learner") || len(s.roster()) != 2 {
			t.Fatalf("added %s, the members are %q", id, s.roster())
		}
		startLearner(s, peer)
		promoteThroughProxy(t, s, cluster, id)
		e, p = s.through(func(roster []string) bool { return len(roster) == 1 })
		for range 100 {
			err = s.clients.RemoveMember(t.Context(), t.Name(), cluster, []Endpoint{e}, id)
			if !errors.Is(err, ErrUnhealthyCluster) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		s.endpoints = s.endpoints[:1]
		if lost(p, err); len(s.roster()) != 1 {
			t.Errorf("the members are %q", s.roster())
		}
		s.clients.Forget(t.Name())
	}, etcdtest.V34, etcdtest.V36)
}

func promoteThroughProxy(t *testing.T, s *etcdServers, cluster, id string) {
	t.Helper()
	e, p := s.through(func(roster []string) bool { return slices.Contains(roster, id) })
	var err error
	for range 100 {
		if err = s.clients.PromoteMember(t.Context(), t.Name(), cluster, []Endpoint{e}, id); !errors.Is(err, ErrLearnerNotReady) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || p.cuts != 1 || !slices.Contains(s.roster(), id) {
		t.Fatalf("%v after %d lost answers, the members are %q", err, p.cuts, s.roster())
	}
}

// Nobody who could be asked, or nobody who answers: nothing is known, and that is
// said.
func TestMembershipWithoutAMemberToAsk(t *testing.T) {
	clients := New()
	t.Cleanup(func() { clients.Forget("shop/orders") })
	_, err := clients.AddLearner(t.Context(), "shop/orders", "c1", nil, "http://127.0.0.1:1")
	backuptest.WantError(t, err, "add the learner http://127.0.0.1:1", "no member could be asked")
	dead := Endpoint{Member: "orders-0", Host: "orders-0", Address: backuptest.FreeAddress(t), Incarnation: "1"}
	backuptest.WantError(t, clients.RemoveMember(t.Context(), "shop/orders", "c1", []Endpoint{dead}, "a1"), "remove member a1", "orders-0: ")
	backuptest.WantError(t, clients.RemoveMember(t.Context(), "shop/orders", "c1", []Endpoint{dead}, "0"), "remove member 0", "no member's ID")
}
