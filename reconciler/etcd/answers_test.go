package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/state"
)

// answering is a server that speaks as a member of etcd, and fails where a test
// wants it to: a real one cannot be made to refuse its second list of members.
type answering struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedClusterServer
	pb.UnimplementedKVServer
	pb.UnimplementedLeaseServer

	mu      sync.Mutex
	calls   []string
	refuse  map[string]error
	alarms  []*pb.AlarmMember
	members []*pb.Member
	// stuck are changes that are answered and have no effect.
	stuck bool
	// slow is how long it takes for a status.
	slow time.Duration
}

// The cluster and the member that it speaks for.
const (
	answeringCluster = 0xc1
	answeringMember  = 0xa1
)

// errBroken is no refusal that quorate knows, and nothing that a client tries again.
var errBroken = status.Error(codes.Unknown, "broken")

// startAnswering starts the server on a free port.
func startAnswering(t *testing.T, a *answering) (*Client, Endpoint) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(a.called))
	pb.RegisterMaintenanceServer(server, a)
	pb.RegisterClusterServer(server, a)
	pb.RegisterKVServer(server, a)
	pb.RegisterLeaseServer(server, a)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	clients := New()
	t.Cleanup(func() { clients.Forget("shop/orders"); server.Stop(); served.Wait() })
	return clients, Endpoint{Member: "orders-0", Host: "orders-0", Address: listener.Addr().String(), Incarnation: "1"}
}

// called notes a request, and refuses it where the test says so: by its name, with
// a second one of its name as "MemberList 2".
func (a *answering) called(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := path.Base(info.FullMethod)
	if alarm, ok := request.(*pb.AlarmRequest); ok && alarm.Action == pb.AlarmRequest_DEACTIVATE {
		name = "Disarm"
	}
	if slices.Contains(a.calls, name) {
		name += " 2"
	}
	a.calls = append(a.calls, name)
	if err := a.refuse[name]; err != nil {
		return nil, err
	}
	return handle(ctx, request)
}

func header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: answeringCluster, MemberId: answeringMember}
}

func (a *answering) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	time.Sleep(a.slow)
	return &pb.StatusResponse{Header: header()}, nil
}

func (a *answering) Defragment(context.Context, *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	return &pb.DefragmentResponse{Header: header()}, nil
}

func (a *answering) Alarm(_ context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	if r.Action == pb.AlarmRequest_DEACTIVATE && !a.stuck {
		a.alarms = slices.DeleteFunc(a.alarms, func(on *pb.AlarmMember) bool { return on.MemberID == r.MemberID && on.Alarm == r.Alarm })
	}
	return &pb.AlarmResponse{Header: header(), Alarms: a.alarms}, nil
}

func (a *answering) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: header()}, nil
}

func (a *answering) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return &pb.LeaseGrantResponse{Header: header(), ID: 1, TTL: testTTL}, nil
}

func (a *answering) LeaseRevoke(context.Context, *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	return &pb.LeaseRevokeResponse{Header: header()}, nil
}

func (a *answering) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: header(), Members: a.members}, nil
}

func (a *answering) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if !a.stuck {
		a.members = slices.DeleteFunc(a.members, func(m *pb.Member) bool { return m.ID == r.ID })
	}
	return &pb.MemberRemoveResponse{Header: header(), Members: a.members}, nil
}

// MemberPromote loses the learner on the way.
func (a *answering) MemberPromote(_ context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	a.members = slices.DeleteFunc(a.members, func(m *pb.Member) bool { return m.ID == r.ID })
	return &pb.MemberPromoteResponse{Header: header(), Members: a.members}, nil
}

// unreadable is an endpoint whose credentials cannot be read.
func unreadable(e Endpoint) Endpoint {
	e.Member, e.Incarnation = "orders-1", "2"
	e.TLS = func() (*tls.Config, error) { return nil, errors.New("the Secret is missing") }
	return e
}

// An alarm is ended only where the list shows it, it counts as ended only where the
// list no longer shows it, and whatever cannot be asked is said.
func TestAnswersToDisarming(t *testing.T) {
	noSpace := &pb.AlarmMember{MemberID: 0xb1, Alarm: pb.AlarmType_NOSPACE}
	corrupt := &pb.AlarmMember{MemberID: 0xb1, Alarm: pb.AlarmType_CORRUPT}
	elsewhere := &pb.AlarmMember{MemberID: 0xb2, Alarm: pb.AlarmType_NOSPACE}
	for name, c := range map[string]struct {
		alarms []*pb.AlarmMember
		refuse string
		with   error
		stuck  bool
		// second is another member, whose credentials cannot be read.
		second bool
		want   string
		calls  string
	}{
		"it is on":                      {alarms: []*pb.AlarmMember{noSpace}, calls: "Alarm Disarm Alarm 2 LeaseGrant LeaseRevoke"},
		"it is not on":                  {calls: "Alarm LeaseGrant LeaseRevoke"},
		"another member's is on":        {alarms: []*pb.AlarmMember{elsewhere}, calls: "Alarm"},
		"another one of it is on":       {alarms: []*pb.AlarmMember{corrupt}, calls: "Alarm"},
		"another one stays on":          {alarms: []*pb.AlarmMember{noSpace, elsewhere}, calls: "Alarm Disarm Alarm 2"},
		"no list":                       {alarms: []*pb.AlarmMember{noSpace}, refuse: "Alarm", with: errBroken, want: "alarm list: ", calls: "Alarm"},
		"refused":                       {alarms: []*pb.AlarmMember{noSpace}, refuse: "Disarm", with: errBroken, want: "broken", calls: "Alarm Disarm"},
		"no list after it":              {alarms: []*pb.AlarmMember{noSpace}, refuse: "Alarm 2", with: errBroken, want: "alarm list: ", calls: "Alarm Disarm Alarm 2"},
		"it stays on":                   {alarms: []*pb.AlarmMember{noSpace}, stuck: true, want: "it is still on", calls: "Alarm Disarm Alarm 2"},
		"no write is taken":             {refuse: "LeaseGrant", with: errBroken, want: "is disarmed, but orders-0 takes no writes", calls: "Alarm LeaseGrant"},
		"no write is allowed":           {refuse: "LeaseGrant", with: rpctypes.ErrGRPCPermissionDenied, calls: "Alarm LeaseGrant"},
		"a member that is out of reach": {second: true, want: "orders-1 takes no writes: dial orders-1: the Secret is missing", calls: "Alarm LeaseGrant LeaseRevoke"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answering{alarms: slices.Clone(c.alarms), refuse: map[string]error{c.refuse: c.with}, stuck: c.stuck}
			clients, e := startAnswering(t, a)
			members := []Endpoint{e}
			if c.second {
				members = append(members, unreadable(e))
			}
			err := clients.Disarm(t.Context(), "shop/orders", members, state.Alarm{MemberID: "b1", Kind: "NOSPACE"})
			wantAnswer(t, err, c.want)
			if got := strings.Join(a.calls, " "); got != c.calls {
				t.Errorf("it was asked for %s, not for %s", got, c.calls)
			}
		})
	}
	clients, e := startAnswering(t, &answering{})
	backuptest.WantError(t, clients.Disarm(t.Context(), "shop/orders", []Endpoint{unreadable(e)}, state.Alarm{MemberID: "b1", Kind: "NOSPACE"}), "disarm ", "the Secret is missing")
}

// wantAnswer wants an error with a text, or none.
func wantAnswer(t *testing.T, err error, want string) {
	t.Helper()
	if want != "" {
		backuptest.WantError(t, err, want)
	} else if err != nil {
		t.Error(err)
	}
}

func TestAnswersToDefragmenting(t *testing.T) {
	a := &answering{refuse: map[string]error{"Defragment": errBroken}}
	clients, e := startAnswering(t, a)
	backuptest.WantError(t, clients.Defragment(t.Context(), "shop/orders", Target{Endpoint: e, ClusterID: "c1", ID: "a1"}), "defragment orders-0", "broken")
}

// A change of the members is asked for once and only where the list lacks it, and
// it is done only where the list says so.
func TestAnswersToMembershipChanges(t *testing.T) {
	type members = []*pb.Member
	voter := &pb.Member{ID: answeringMember, PeerURLs: []string{"http://orders-0"}}
	learner := &pb.Member{ID: 0xb1, IsLearner: true, PeerURLs: []string{"http://orders-1"}}
	remove := func(c *Client, e Endpoint) error {
		return c.RemoveMember(context.Background(), "shop/orders", "c1", []Endpoint{e}, "b1")
	}
	promote := func(c *Client, e Endpoint) error {
		return c.PromoteMember(context.Background(), "shop/orders", "c1", []Endpoint{e}, "b1")
	}
	for name, c := range map[string]struct {
		members members
		refuse  string
		with    error
		stuck   bool
		change  func(*Client, Endpoint) error
		want    string
		calls   string
		left    int
	}{
		"removed":             {members: members{voter, learner}, change: remove, calls: "Range MemberList MemberRemove Range 2 MemberList 2", left: 1},
		"gone already":        {members: members{voter}, change: remove, calls: "Range MemberList", left: 1},
		"not allowed to read": {members: members{voter}, refuse: "Range", with: rpctypes.ErrGRPCPermissionDenied, change: remove, calls: "Range MemberList", left: 1},
		"no read":             {members: members{voter, learner}, refuse: "Range", with: errBroken, change: remove, want: "orders-0: ", calls: "Range", left: 2},
		"refused":             {members: members{voter, learner}, refuse: "MemberRemove", with: errBroken, change: remove, want: "broken", calls: "Range MemberList MemberRemove Range 2 MemberList 2", left: 2},
		"without effect":      {members: members{voter, learner}, stuck: true, change: remove, want: "does not show it yet", calls: "Range MemberList MemberRemove Range 2 MemberList 2", left: 2},
		"no list after it":    {members: members{voter, learner}, refuse: "MemberList 2", with: errBroken, change: remove, want: "whether it was applied is unknown", calls: "Range MemberList MemberRemove Range 2 MemberList 2", left: 1},
		"promoted and gone":   {members: members{voter, learner}, change: promote, want: ErrNotAMember.Error(), calls: "Status Range MemberList MemberPromote Range 2 MemberList 2", left: 1},
		"out of reach":        {members: members{voter, learner}, change: func(c *Client, e Endpoint) error { return remove(c, unreadable(e)) }, want: "the Secret is missing", left: 2},
		"the first is out of reach": {members: members{voter, learner}, change: func(c *Client, e Endpoint) error {
			return c.RemoveMember(context.Background(), "shop/orders", "c1", []Endpoint{unreadable(e), e}, "b1")
		}, calls: "Range MemberList MemberRemove Range 2 MemberList 2", left: 1},
		"of another cluster": {members: members{voter, learner}, change: func(c *Client, e Endpoint) error {
			next := e
			next.Member = "orders-1"
			return c.RemoveMember(context.Background(), "shop/orders", "c9", []Endpoint{e, next}, "b1")
		}, want: ErrOtherCluster.Error(), calls: "Range MemberList", left: 2},
		"promote nobody": {members: members{voter, learner}, change: func(c *Client, e Endpoint) error {
			return c.PromoteMember(context.Background(), "shop/orders", "c1", []Endpoint{e}, "0")
		}, want: "0 is no member's ID", left: 2},
		"remove a learner that is nobody": {members: members{voter, learner}, change: func(c *Client, e Endpoint) error {
			return c.RemoveLearner(context.Background(), "shop/orders", "c1", []Endpoint{e}, "0", "http://orders-1")
		}, want: "0 is no member's ID", left: 2},
		"a learner by its ID, whatever its address": {members: members{voter, learner}, change: func(c *Client, e Endpoint) error {
			return c.RemoveLearner(context.Background(), "shop/orders", "c1", []Endpoint{e}, "b1", "http://orders-0")
		}, calls: "Range MemberList MemberRemove Range 2 MemberList 2", left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answering{members: slices.Clone(c.members), refuse: map[string]error{c.refuse: c.with}, stuck: c.stuck}
			clients, e := startAnswering(t, a)
			wantAnswer(t, c.change(clients, e), c.want)
			if got := strings.Join(a.calls, " "); got != c.calls || len(a.members) != c.left {
				t.Errorf("it was asked for %s, not for %s; %d members are left, not %d", got, c.calls, len(a.members), c.left)
			}
		})
	}
}
