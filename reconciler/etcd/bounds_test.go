package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// lying is a member that answers whatever a test wants, by gRPC and by HTTP at one address, as
// etcd does.
type lying struct {
	answering
	status   *pb.StatusResponse
	list     *pb.MemberListResponse
	alarmed  []*pb.AlarmMember
	problem  error
	snapshot []byte
	version  string
	metrics  string
}

// honest answers as a member does that is well.
func honest() *lying {
	return &lying{
		status:  &pb.StatusResponse{Header: header(), Version: "3.6.16", DbSize: 1 << 20, Leader: answeringMember, RaftTerm: 1},
		list:    &pb.MemberListResponse{Header: header(), Members: []*pb.Member{{ID: answeringMember, Name: "orders-0"}}},
		version: `{"etcdserver":"3.6.16","etcdcluster":"3.6.0"}`, metrics: snapshotMetric + " 7\n",
	}
}

func (l *lying) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return l.status, l.problem
}

func (l *lying) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return l.list, nil
}

func (l *lying) Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	return &pb.AlarmResponse{Header: header(), Alarms: l.alarmed}, nil
}

// Snapshot streams in the pieces that etcd makes.
func (l *lying) Snapshot(_ *pb.SnapshotRequest, stream grpc.ServerStreamingServer[pb.SnapshotResponse]) error {
	for rest := l.snapshot; len(rest) > 0; {
		n := min(len(rest), 32<<10)
		if err := stream.Send(&pb.SnapshotResponse{Blob: rest[:n], RemainingBytes: uint64(len(rest) - n)}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// ServeHTTP answers what is not gRPC.
func (l *lying) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		_, _ = io.WriteString(w, l.metrics)
		return
	}
	_, _ = io.WriteString(w, l.version)
}

// start serves it on loopback: HTTP/2 without TLS is gRPC, and HTTP/1 is not.
func (l *lying) start(t *testing.T) (*Client, Endpoint) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rpc := grpc.NewServer()
	pb.RegisterMaintenanceServer(rpc, l)
	pb.RegisterClusterServer(rpc, l)
	pb.RegisterKVServer(rpc, l)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			rpc.ServeHTTP(w, r)
			return
		}
		l.ServeHTTP(w, r)
	})}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	clients := New()
	t.Cleanup(func() { clients.Forget("shop/orders"); _ = server.Close(); rpc.Stop(); served.Wait() })
	return clients, Endpoint{Member: "orders-0", Host: "orders-0", Address: listener.Addr().String(), Incarnation: "1"}
}

// The member that all these tests begin with is taken for one that is well.
func TestAnHonestMemberIsBelieved(t *testing.T) {
	clients, e := honest().start(t)
	r := clients.Round(t.Context(), "shop/orders", []Endpoint{e}, false)
	if r.Problem != "" || len(r.Members) != 1 || r.Members[0].Problem != "" || r.Members[0].Version != "3.6.16" || r.ClusterVersion != "3.6.0" {
		t.Errorf("%+v", r)
	}
	if n, err := clients.SnapshotCount(t.Context(), "shop/orders", e); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// A member that answers more than etcd does is a problem of that member, which says so, and
// costs a bounded part of the memory.
func TestAnAnswerThatIsTooLargeIsGivenUp(t *testing.T) {
	large := strings.Repeat("x", 9<<20)
	for name, c := range map[string]struct {
		lie  func(*lying)
		want string
	}{
		"a status":             {func(l *lying) { l.status.Version = large }, "status: its answer is larger than etcd's are"},
		"a member list":        {func(l *lying) { l.list.Members[0].Name = large }, "member list: its answer is larger than etcd's are"},
		"many members":         {func(l *lying) { l.list.Members = make([]*pb.Member, maxMembers+1) }, "member list: it lists 101 members"},
		"many alarms":          {func(l *lying) { l.alarmed = make([]*pb.AlarmMember, maxAlarms+1) }, "alarm list: it has 201 entries"},
		"a cluster version":    {func(l *lying) { l.version = `{"etcdcluster":"` + large + `"}` }, "cluster version: its answer is larger than etcd's are"},
		"an error":             {func(l *lying) { l.problem = status.Error(codes.Unknown, large) }, "status: "},
		"a status of nobody":   {func(l *lying) { l.status.Header = nil }, "status: its answer does not tell whose it is"},
		"a list of nobody":     {func(l *lying) { l.list.Header = nil }, "member list: its answer does not tell whose it is"},
		"nothing but a status": {func(l *lying) { l.status = &pb.StatusResponse{} }, "status: its answer does not tell whose it is"},
	} {
		t.Run(name, func(t *testing.T) {
			l := honest()
			c.lie(l)
			for i := range l.list.Members {
				if l.list.Members[i] == nil {
					l.list.Members[i] = &pb.Member{ID: uint64(i)}
				}
			}
			for i := range l.alarmed {
				l.alarmed[i] = &pb.AlarmMember{MemberID: uint64(i), Alarm: pb.AlarmType_NOSPACE}
			}
			clients, e := l.start(t)
			r := clients.Round(t.Context(), "shop/orders", []Endpoint{e}, false)
			if !strings.HasPrefix(r.Problem, "orders-0: "+c.want) || len(r.Problem) > 2000 {
				t.Errorf("the problem is %.300q, want %q", r.Problem, c.want)
			}
			if name != "an error" && !strings.Contains(r.Problem, "find out what listens at") {
				t.Errorf("%.300q does not tell what to do", r.Problem)
			}
			for _, m := range r.Members {
				if len(fmt.Sprintf("%+v", m)) > 3000 {
					t.Errorf("%.300v", m)
				}
			}
		})
	}
}

// The same holds for what is asked before something is done.
func TestAMemberListIsCheckedBeforeItIsChanged(t *testing.T) {
	many := &pb.MemberListResponse{Header: header(), Members: make([]*pb.Member, maxMembers+1)}
	for i := range many.Members {
		many.Members[i] = &pb.Member{ID: uint64(i + 1)}
	}
	for want, list := range map[string]*pb.MemberListResponse{
		"orders-0: it lists 101 members":                     many,
		"orders-0: its answer does not tell whose it is, as": {},
	} {
		l := honest()
		l.list = list
		clients, e := l.start(t)
		backuptest.WantError(t, clients.RemoveMember(t.Context(), "shop/orders", "c1", []Endpoint{e}, "1"), "remove member 1", want, "find out what listens at")
	}
}

func TestMetricsAreBounded(t *testing.T) {
	for name, metrics := range map[string]string{
		"many lines": strings.Repeat("# more\n", maxMetrics/7+1) + snapshotMetric + " 7\n",
		"a line":     strings.Repeat("x", 1<<20),
	} {
		l := honest()
		l.metrics = metrics
		clients, e := l.start(t)
		if _, err := clients.SnapshotCount(t.Context(), "shop/orders", e); !errors.Is(err, ErrTooLarge) || !strings.HasPrefix(err.Error(), "metrics of orders-0: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A snapshot ends where the member's database cannot have grown to.
func TestASnapshotIsNotLargerThanTheDatabase(t *testing.T) {
	const margin = 64 << 10
	for _, c := range []struct {
		size int
		want string
	}{{2<<20 + margin, ""}, {2<<20 + margin + 1, "snapshot of orders-0: it does not end after twice the 1Mi"}, {16 << 20, "find out what listens at"}} {
		l := honest()
		l.snapshot = bytes.Repeat([]byte{7}, c.size)
		clients, e := l.start(t)
		m, err := clients.client("shop/orders", e)
		if err != nil {
			t.Fatal(err)
		}
		m.margin = margin
		r, err := clients.Snapshot(t.Context(), "shop/orders", Target{Endpoint: e, ClusterID: "c1", ID: "a1"})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		n, err := io.Copy(sum, r)
		wantAnswer(t, err, c.want)
		if most := int64(2<<20 + margin); n > most || c.want == "" && n != most {
			t.Errorf("%d bytes of %d were read", n, c.size)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// evil is a text that would clear a terminal, forge a line of a log, and begin a heading
// in a comment.
const evil = "3.6\x1b[2J\r\n# Merged by @ada\u202e\u0007"

// What a member says of itself is data: on one line, without what moves a cursor.
func TestTextsOfAMemberAreOneLine(t *testing.T) {
	for name, lie := range map[string]func(*lying){
		"an error": func(l *lying) { l.problem = status.Error(codes.Unknown, evil) },
		"a status": func(l *lying) {
			l.status.Version, l.status.StorageVersion, l.status.Errors = evil, evil, []string{evil}
			l.status.DowngradeInfo = &pb.DowngradeInfo{Enabled: true, TargetVersion: evil}
			for range 2 * maxErrors {
				l.status.Errors = append(l.status.Errors, evil)
			}
		},
		"a name":            func(l *lying) { l.list.Members = append(l.list.Members, &pb.Member{ID: 1, Name: evil}) },
		"a cluster version": func(l *lying) { l.version = `{"etcdcluster":"\u001b[2J\r\n# Merged\u202e"}` },
		"no JSON":           func(l *lying) { l.version = evil },
	} {
		t.Run(name, func(t *testing.T) {
			l := honest()
			lie(l)
			clients, e := l.start(t)
			r := clients.Round(t.Context(), "shop/orders", []Endpoint{e}, false)
			if at := strings.IndexFunc(fmt.Sprintf("%+v", r), func(r rune) bool { return !unicode.IsPrint(r) }); at >= 0 {
				t.Errorf("%q has something to interpret at %d", fmt.Sprintf("%+v", r), at)
			}
			for _, m := range r.Members {
				if len(m.Errors) > maxErrors {
					t.Errorf("%d errors", len(m.Errors))
				}
			}
			err := clients.MoveLeader(t.Context(), "shop/orders", Target{Endpoint: e, ClusterID: "c1", ID: "a1"}, "b1")
			if err == nil || strings.ContainsAny(err.Error(), "\x1b\r\n\u202e") {
				t.Errorf("an action says %q", err)
			}
		})
	}
}
