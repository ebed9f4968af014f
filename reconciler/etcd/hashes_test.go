package etcd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// hashesOf is how often a member says that it was asked for its hash by a client.
func hashesOf(t *testing.T, m *etcdtest.Member) (n int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.Address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "grpc_server_started_total{") && strings.Contains(line, `grpc_method="HashKV"`) {
			_, value, _ := strings.Cut(line, "} ")
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// 289: a comparison reads the data of each member once, whatever the release, and a look
// reads none. After a compaction at the newest revision and the restart of a member, which
// no longer knows the hash of then, it takes a second reading and has its answer.
func TestAComparisonReadsEachMemberOnce(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := startEtcd(t, version, 3, false)
		for i := range 20 {
			s.MustPut(fmt.Sprint(i%7), "value")
		}
		want := func(what string, n int) {
			t.Helper()
			for _, m := range s.Members {
				if got := hashesOf(t, m); got != n {
					t.Errorf("%s: %s was asked %d times, not %d", what, m.Name, got, n)
				}
			}
		}
		s.round(false)
		want("a look", 0)
		if r := s.round(true); r.Incomparable != "" || !r.Deep {
			t.Errorf("compared: %+v", r)
		}
		want("a comparison", 1)
		c := s.Members[0].Client()
		status, err := c.Status(t.Context(), c.Endpoints()[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compact(t.Context(), status.Header.Revision); err != nil {
			t.Fatal(err)
		}
		restarted := s.Members[2]
		restarted.Kill()
		restarted.Start()
		s.await("it to be back", func(r state.Round) bool { return troubleOf(r) == "" })
		r := s.round(true)
		if r.Incomparable != "" {
			t.Errorf("after a compaction: %s", r.Incomparable)
		}
		for _, m := range r.Members {
			first := r.Members[0]
			if m.Problem != "" || m.HashRevision != status.Header.Revision || m.Hash != first.Hash ||
				m.CompactRevision != first.CompactRevision {
				t.Errorf("%+v and %+v", m, first)
			}
		}
	})
}

// hashing are servers that answer for their hash as a test wants, and note when they are
// asked and done.
type hashing struct {
	answering
	name   string
	events *events
	answer func(ctx context.Context, asked int64) (*pb.HashKVResponse, error)
}

// events is what happened, in order, and who leads after it.
type events struct {
	mu     sync.Mutex
	list   []string
	leader uint64
}

func (e *events) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, text)
}

func (h *hashing) HashKV(ctx context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	h.events.note(fmt.Sprintf("%s at %d", h.name, r.Revision))
	return h.answer(ctx, r.Revision)
}

func (h *hashing) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	h.events.note(h.name + " reads")
	return &pb.RangeResponse{Header: header(), Count: 1}, nil
}

func (h *hashing) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return h.status(), nil
}

// MoveLeader takes its time, as an election does, unless orders-0 is to keep the leadership.
func (h *hashing) MoveLeader(_ context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	h.events.note(fmt.Sprintf("%s hands over to %d", h.name, r.TargetID))
	h.events.mu.Lock()
	defer h.events.mu.Unlock()
	if h.events.leader == 0 {
		return nil, errors.New("it stays")
	}
	h.events.leader = r.TargetID
	return &pb.MoveLeaderResponse{}, nil
}

// status is that of a member at revision 7; orders-0 leads until it hands over.
func (h *hashing) status() *pb.StatusResponse {
	h.events.mu.Lock()
	defer h.events.mu.Unlock()
	s := &pb.StatusResponse{Header: header(), Leader: cmp.Or(h.events.leader, 100)}
	s.Header.Revision = 7
	s.Header.MemberId = 100 + uint64(h.name[len(h.name)-1]-'0')
	return s
}

// startHashing starts three servers, and returns what they are asked by.
func startHashing(t *testing.T, says func(name string) func(context.Context, int64) (*pb.HashKVResponse, error)) (*events, []*answer) {
	t.Helper()
	e := &events{leader: 100}
	var asked []*answer
	for i := range 3 {
		h := &hashing{name: fmt.Sprintf("orders-%d", i), events: e}
		h.answer = says(h.name)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		pb.RegisterMaintenanceServer(server, h)
		pb.RegisterKVServer(server, h)
		var served sync.WaitGroup
		served.Go(func() { _ = server.Serve(listener) })
		endpoint := Endpoint{Member: h.name, Host: h.name, Address: listener.Addr().String()}
		conn, err := Dial(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(); server.Stop(); served.Wait() })
		asked = append(asked, &answer{endpoint: endpoint, client: conn, status: h.status()})
	}
	return e, asked
}

func hashed(compacted int64) (*pb.HashKVResponse, error) {
	head := header()
	head.Revision = 7
	return &pb.HashKVResponse{Header: head, Hash: 1, CompactRevision: compacted}, nil
}

// briefly is a limit that a test can wait for.
func briefly(int64) time.Duration { return 2 * time.Second }

// 289: one member is asked after the other, the leader last, and the next when the one
// before reads again.
func TestMembersAreComparedInTurn(t *testing.T) {
	e, asked := startHashing(t, func(string) func(context.Context, int64) (*pb.HashKVResponse, error) {
		return func(context.Context, int64) (*pb.HashKVResponse, error) { return hashed(2) }
	})
	if why := compareHashes(t.Context(), asked, patient()); why != "" {
		t.Error(why)
	}
	want := []string{"orders-1 at 7", "orders-1 reads", "orders-2 at 7", "orders-2 reads", "orders-0 at 7", "orders-0 reads"}
	if got := slices.Compact(slices.Clone(e.list)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// 347: where a hash takes long, the leader hands over before it is asked for its own, so that
// the others go on writing, and the round tells of the new one. One that cannot is asked all
// the same, and one whose hash is quick keeps the leadership.
func TestALeaderHandsOverBeforeALongHash(t *testing.T) {
	for name, c := range map[string]struct {
		handOver time.Duration
		stays    bool
		stops    int // the member that stops next, -1 for none
		want     []string
		leader   uint64
	}{
		"it takes long":        {0, false, -1, []string{"orders-1 at 7", "orders-2 at 7", "orders-0 hands over to 101", "orders-0 at 7"}, 101},
		"it takes a moment":    {time.Hour, false, -1, []string{"orders-1 at 7", "orders-2 at 7", "orders-0 at 7"}, 100},
		"the leader remains":   {0, true, -1, []string{"orders-1 at 7", "orders-2 at 7", "orders-0 hands over to 101", "orders-0 at 7"}, 100},
		"421: one stops next":  {0, false, 1, []string{"orders-1 at 7", "orders-2 at 7", "orders-0 hands over to 102", "orders-0 at 7"}, 102},
		"421: the leader does": {0, false, 0, []string{"orders-1 at 7", "orders-2 at 7", "orders-0 hands over to 101", "orders-0 at 7"}, 101},
	} {
		t.Run(name, func(t *testing.T) {
			e, asked := startHashing(t, func(string) func(context.Context, int64) (*pb.HashKVResponse, error) {
				return func(context.Context, int64) (*pb.HashKVResponse, error) { return hashed(2) }
			})
			if c.stays {
				e.leader = 0
			}
			if c.stops >= 0 {
				asked[c.stops].endpoint.Stops = true
			}
			if why := compareHashes(t.Context(), asked, patience{hashTime, c.handOver}); why != "" {
				t.Error(why)
			}
			if got := slices.DeleteFunc(e.list, func(s string) bool { return strings.HasSuffix(s, "reads") }); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			for _, a := range asked {
				if a.status.Leader != c.leader {
					t.Errorf("%s follows %d, not %d", a.endpoint.Member, a.status.Leader, c.leader)
				}
			}
		})
	}
}

// 347: so it is with real members, which agree on the new leader in the round itself.
func TestMembersAgreeOnTheLeaderAfterAComparison(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := startEtcd(t, version, 3, false)
		s.MustPut("key", "value")
		before := s.await("a leader", func(r state.Round) bool { return troubleOf(r) == "" })
		answers := make([]*answer, len(s.Members))
		for i, e := range s.endpoints {
			answers[i] = s.clients.ask(t.Context(), "shop/orders", e)
		}
		if why := compareHashes(t.Context(), answers, patience{hashTime, 0}); why != "" {
			t.Fatal(why)
		}
		r := assemble(answers)
		if trouble := troubleOf(r); trouble != "" || r.Leader().ID == before.Leader().ID {
			t.Errorf("%q; %s led, and %s does", trouble, before.Leader().Name, r.Leader().Name)
		}
	})
}

// 289: a member that hangs is named, and costs the others nothing.
func TestAMemberThatHangsEndsTheComparison(t *testing.T) {
	e, asked := startHashing(t, func(name string) func(context.Context, int64) (*pb.HashKVResponse, error) {
		return func(ctx context.Context, _ int64) (*pb.HashKVResponse, error) {
			if name == "orders-2" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return hashed(2)
		}
	})
	const want = "orders-2: hash of its keys: not done in 2s"
	if why := compareHashes(t.Context(), asked, patience{briefly, time.Hour}); why != want {
		t.Errorf("got %q, want %q", why, want)
	}
	e.mu.Lock() // the member that hangs may still be noting
	defer e.mu.Unlock()
	if asked[2].problem == "" || asked[1].problem != "" || slices.Contains(e.list, "orders-0 at 7") {
		t.Errorf("%q; the problems are %q and %q", e.list, asked[1].problem, asked[2].problem)
	}
}

// 289: a compaction between two answers makes them incomparable, and all are asked once
// more, at their newest revision where nobody writes; not for ever.
func TestACompactionMeanwhileIsComparedOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		second func() (*pb.HashKVResponse, error)
		want   string
	}{
		"it is over":         {func() (*pb.HashKVResponse, error) { return hashed(5) }, ""},
		"once more, too":     {func() (*pb.HashKVResponse, error) { return hashed(6) }, "the members have compacted at different revisions"},
		"that revision, too": {func() (*pb.HashKVResponse, error) { return nil, rpctypes.ErrGRPCCompacted }, "the members have compacted at different revisions"},
	} {
		t.Run(name, func(t *testing.T) {
			e, asked := startHashing(t, func(name string) func(context.Context, int64) (*pb.HashKVResponse, error) {
				return func(_ context.Context, at int64) (*pb.HashKVResponse, error) {
					switch {
					case name != "orders-0":
						return hashed(5)
					case at == 7:
						return nil, rpctypes.ErrGRPCCompacted
					}
					return c.second()
				}
			})
			if why := compareHashes(t.Context(), asked, patient()); why != c.want {
				t.Errorf("got %q, want %q", why, c.want)
			}
			if got := fmt.Sprint(slices.DeleteFunc(e.list, func(s string) bool { return strings.HasSuffix(s, "reads") })); got != "[orders-1 at 7 orders-2 at 7 orders-0 at 7 orders-1 at 0 orders-2 at 0 orders-0 at 0]" {
				t.Error(got)
			}
		})
	}
}

// 289: the limit grows with the database.
func TestTheLimitGrowsWithTheDatabase(t *testing.T) {
	for size, want := range map[int64]time.Duration{-1: 10 * time.Second, 0: 10 * time.Second, 1 << 30: 42 * time.Second, 8 << 30: 266 * time.Second, 1 << 62: 3210 * time.Second} {
		if got := hashTime(size); got != want {
			t.Errorf("%d bytes have %s, not %s", size, got, want)
		}
	}
}

// alter changes the newest value in the database of a member that is down.
func alter(t *testing.T, m *etcdtest.Member) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(m.Volume, guard.DataDir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.Update(func(tx *bolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		revision, value := keys.Cursor().Last()
		changed := bytes.Replace(value, []byte("value"), []byte("other"), 1)
		if bytes.Equal(changed, value) {
			return errors.New("the newest key has another value")
		}
		return keys.Put(revision, changed)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// 288: what a roll goes by between its first restart and its end. With the flags that quorate
// gives it, a member that starts with other data than its peers compares them, and ends
// before it serves anybody: from 3.6 on. An older one asks no peer as long as it has saved
// no snapshot, and a comparison finds it.
func TestAMemberWithOtherDataDoesNotStart(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		v, err := release.Parse(strings.TrimPrefix(version, "v"))
		if err != nil {
			t.Fatal(err)
		}
		flags, findings := release.Flags(v, release.Settings{})
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		flags = slices.DeleteFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--logger") })
		s := startEtcd(t, version, 3, false, flags...)
		for range 5 {
			s.MustPut("key", "value")
		}
		s.await("all to have it", func(r state.Round) bool {
			behind := func(m state.Member) bool { return m.AppliedIndex < r.Members[0].CommitIndex }
			return troubleOf(r) == "" && !slices.ContainsFunc(r.Members, behind)
		})
		m := s.Members[2]
		if err := m.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = m.Wait()
		alter(t, m)
		m.Start()
		if !release.ComparesAtStart(v, nil) {
			s.await("it to serve", func(r state.Round) bool { return troubleOf(r) == "" })
			r := s.round(true)
			if a, b := r.Differing(); a == nil || a.Name != m.Name && b.Name != m.Name {
				t.Errorf("its data is found to be that of the others: %+v", r)
			}
			return
		}
		if err := m.Wait(); err == nil {
			t.Error("it ended as if all were well")
		}
	})
}
