package fleet

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/reconciler/naming"
)

// version is what all members run.
const version = "3.6.16"

// slowness is how long a slow member takes for each answer.
const slowness = 500 * time.Millisecond

// members answer as etcd for every pod, by the address that is asked.
type members struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedClusterServer

	grpc  *grpc.Server
	plain *http.Server
	// streams and requests are connections of HTTP/2 and HTTP/1, sorted by their first bytes.
	streams, requests *sorted
	// asked counts questions of each sort.
	asked map[string]*atomic.Int64

	mu sync.Mutex
	// byAddress are the members that listen, byName the same.
	byAddress, byName map[string]*member
	next              int
	// network is the second number of the first addresses, another one for most processes.
	network int
}

// member is one that listens.
type member struct {
	cluster clusterName
	name    string
	address string
	// certificate is what it shows; nil for plain text.
	certificate *tls.Certificate
	listener    net.Listener
	list        []*pb.Member
	// silent accepts, and never answers; slow answers late.
	silent, slow atomic.Bool
	// last is when it was last asked for its status, gap the longest time between two of them, in
	// nanoseconds, since both were set to zero.
	last, gap atomic.Int64
}

func startMembers() *members {
	m := &members{
		network: 10 + os.Getpid()%200,
		streams: newSorted(), requests: newSorted(), byAddress: map[string]*member{}, byName: map[string]*member{},
		asked: map[string]*atomic.Int64{"status": {}, "read": {}, "members": {}, "alarms": {}, "version": {}},
	}
	m.grpc = grpc.NewServer(grpc.Creds(insecure.NewCredentials()), grpc.ReadBufferSize(0), grpc.WriteBufferSize(0))
	pb.RegisterKVServer(m.grpc, m)
	pb.RegisterMaintenanceServer(m.grpc, m)
	pb.RegisterClusterServer(m.grpc, m)
	m.plain = &http.Server{Handler: http.HandlerFunc(m.version), ReadHeaderTimeout: time.Minute}
	go func() { _ = m.grpc.Serve(m.streams) }()
	go func() { _ = m.plain.Serve(m.requests) }()
	return m
}

// close ends all members.
func (m *members) close() {
	m.mu.Lock()
	for _, one := range m.byAddress {
		_ = one.listener.Close()
	}
	m.mu.Unlock()
	_ = m.streams.Close()
	_ = m.requests.Close()
	m.grpc.Stop()
	_ = m.plain.Close()
}

// start lets the member of a pod listen, and returns its address. One that listens keeps it.
func (m *members) start(c clusterName, name string, certificate *tls.Certificate) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.byName[name]; one != nil {
		return one.address, nil
	}
	m.next++
	one := &member{cluster: c, name: name, certificate: certificate, address: fmt.Sprintf("127.%d.%d.%d", m.network+m.next>>16, m.next>>8&0xff, m.next&0xff)}
	listener, err := net.Listen("tcp", net.JoinHostPort(one.address, strconv.Itoa(naming.ClientPort)))
	if err != nil {
		return "", err
	}
	one.listener, one.list = listener, c.list()
	m.byAddress[one.address], m.byName[name] = one, one
	go m.accept(one)
	return one.address, nil
}

// accept takes connections to a member. What a silent one is asked stays open, unread.
func (m *members) accept(one *member) {
	for {
		conn, err := one.listener.Accept()
		if err != nil {
			return
		}
		if one.silent.Load() {
			continue
		}
		go m.sort(one, conn)
	}
}

// sort hands a connection on to what speaks its protocol.
func (m *members) sort(one *member, conn net.Conn) {
	if one.certificate != nil {
		secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*one.certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
		if err := secure.Handshake(); err != nil {
			_ = conn.Close()
			return
		}
		conn = secure
	}
	buffered := &peeked{Conn: conn, buffer: bufio.NewReaderSize(conn, 16)}
	first, err := buffered.buffer.Peek(3)
	if err != nil {
		_ = conn.Close()
		return
	}
	if string(first) == "PRI" {
		m.streams.hand(buffered)
		return
	}
	m.requests.hand(buffered)
}

// who is the member that a question came to. A silent one answers when the question is given up.
func (m *members) who(ctx context.Context, question string) (*member, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, errors.New("a question without an address")
	}
	return m.at(ctx, p.LocalAddr, question)
}

func (m *members) at(ctx context.Context, address net.Addr, question string) (*member, error) {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	one := m.byAddress[host]
	m.mu.Unlock()
	if one == nil {
		return nil, fmt.Errorf("no member listens at %s", host)
	}
	m.asked[question].Add(1)
	if question == "status" {
		one.note(time.Now())
	}
	if one.silent.Load() {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if one.slow.Load() {
		time.Sleep(slowness)
	}
	return one, nil
}

// note notes that the member was asked.
func (o *member) note(now time.Time) {
	if last := o.last.Swap(now.UnixNano()); last != 0 {
		if gap := now.UnixNano() - last; gap > o.gap.Load() {
			o.gap.Store(gap)
		}
	}
}

// forget begins to count anew.
func (m *members) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.byAddress {
		one.last.Store(time.Now().UnixNano())
		one.gap.Store(0)
	}
	for _, n := range m.asked {
		n.Store(0)
	}
}

// unseen is the longest time that any of those members was not asked since forget; nil for all.
func (m *members) unseen(those func(*member) bool) (longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.byAddress {
		if those != nil && !those(one) {
			continue
		}
		longest = max(longest, time.Duration(one.gap.Load()), time.Since(time.Unix(0, one.last.Load())))
	}
	return longest
}

// questions is how many were asked since forget.
func (m *members) questions() (all int64) {
	for _, n := range m.asked {
		all += n.Load()
	}
	return all
}

func (m *members) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	one, err := m.who(ctx, "status")
	if err != nil {
		return nil, err
	}
	return &pb.StatusResponse{
		Header: one.header(), Version: version, StorageVersion: "3.6.0", Leader: one.cluster.memberID(0), RaftTerm: 2,
		RaftIndex: 100, RaftAppliedIndex: 100, DbSize: 1 << 20, DbSizeInUse: 1 << 19, DbSizeQuota: 2 << 30,
	}, nil
}

func (m *members) Range(ctx context.Context, _ *pb.RangeRequest) (*pb.RangeResponse, error) {
	one, err := m.who(ctx, "read")
	if err != nil {
		return nil, err
	}
	return &pb.RangeResponse{Header: one.header()}, nil
}

func (m *members) Alarm(ctx context.Context, _ *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	one, err := m.who(ctx, "alarms")
	if err != nil {
		return nil, err
	}
	return &pb.AlarmResponse{Header: one.header()}, nil
}

func (m *members) MemberList(ctx context.Context, _ *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	one, err := m.who(ctx, "members")
	if err != nil {
		return nil, err
	}
	return &pb.MemberListResponse{Header: one.header(), Members: one.list}, nil
}

// HashKV implements pb.MaintenanceServer: quorate compares no data here.
func (m *members) HashKV(context.Context, *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	return nil, status.Error(codes.Unimplemented, "these members have no data")
}

// version answers /version.
func (m *members) version(w http.ResponseWriter, r *http.Request) {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return
	}
	if _, err := m.at(r.Context(), address, "version"); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"etcdserver": version, "etcdcluster": "3.6.0"})
}

func (o *member) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: o.cluster.id(), MemberId: numberOf(o.name), Revision: 7, RaftTerm: 2}
}

// list is the member list.
func (c clusterName) list() (list []*pb.Member) {
	f := c.file()
	for i := range f.Spec.Replicas {
		name := naming.Member(f.Metadata.Name, i)
		list = append(list, &pb.Member{ID: c.memberID(i), Name: name, PeerURLs: []string{naming.PeerURL(f, name)}, ClientURLs: []string{naming.ClientURL(f, name)}})
	}
	return list
}

// numberOf is an ID of etcd's made of a name.
func numberOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// sorted is a listener whose connections were accepted by another one.
type sorted struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func newSorted() *sorted { return &sorted{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (s *sorted) hand(conn net.Conn) {
	select {
	case s.conns <- conn:
	case <-s.ended:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (s *sorted) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *sorted) Close() error {
	s.once.Do(func() { close(s.ended) })
	return nil
}

// Addr implements net.Listener.
func (s *sorted) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	buffer *bufio.Reader
}

// Read implements net.Conn.
func (p *peeked) Read(b []byte) (int, error) { return p.buffer.Read(b) }
