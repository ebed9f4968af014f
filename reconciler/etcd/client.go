// Package etcd speaks with the members themselves: health, leadership, the member list,
// space, downgrades and snapshots. It tells what they say, and decides nothing.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/starvation"
	"github.com/quorate/quorate/reconciler/state"
)

// askTimeout bounds each question to a member. The client dials in the
// background, so that nothing else would.
const askTimeout = 3 * time.Second

const (
	// bufferSize is that of a connection's buffers in bytes: a member is asked little.
	bufferSize = 4 << 10
	// maxIdle is for how long a connection stays that nothing is asked over, and then what is needed to
	// make it. A member at rest is asked once in a while, and thousands of connections take more memory
	// than new ones take a processor.
	maxIdle = 5 * time.Second
	// retireAfter is when a connection that was asked for is looked at: gRPC calls it idle maxIdle after
	// the last answer, which is a moment later.
	retireAfter = maxIdle + time.Second
)

// probeKey is read to see whether a member answers linearizable reads. Nothing
// is ever written to it.
const probeKey = "quorate.dev/health"

// Endpoint is one member as it is dialled:  by its pod's address, under the name
// that its certificate carries.
type Endpoint struct {
	// Member is the name of the member and of its pod; empty for whichever member
	// of a cluster that quorate does not run answers there.
	Member string
	// Incarnation changes when the address or the credentials do: a connection
	// is kept for as long as it stays.
	Incarnation string
	// Host is the member's DNS name, which its certificate carries.
	Host string
	// Address is IP:port of the client listener. It is dialled instead of Host,
	// so that quorate works outside the cluster, too, and does not wait for DNS.
	Address string
	// TLS makes the configuration for a new connection; nil for clear text. Secret is the name of
	// the Secret that it is made of, where there is one.
	TLS    func() (*tls.Config, error)
	Secret string
	// Login are the passwords that user root may have, with which quorate comes in where no
	// certificate lets it in; nil where one does. It is asked only when the member wants one.
	Login func(context.Context) ([]Password, error)
	// Stops says that the member stops, or leaves, next: it is handed no leadership.
	Stops bool
}

// Target is a member to which something is about to be done. It is asked first which
// it is: another member that answers at its address is left alone.
type Target struct {
	Endpoint
	// ClusterID and ID are which it must be, in hexadecimal.
	ClusterID, ID string
}

// Client is Etcd over the network. It keeps a connection to each member that it asks often.
type Client struct {
	// Aside is called when a request to a member begins, which may not answer, and back when it has
	// ended; nil for none.
	Aside func(ctx context.Context) (back func())

	mu       sync.Mutex
	clusters map[string]map[string]*Conn
	// asking counts the rounds under way, which ask members one after the other: their connections stay.
	asking map[string]int
	// passwords are those that were right.
	passwords passwords
}

// New returns an Etcd that dials members.
func New() *Client {
	return &Client{clusters: map[string]map[string]*Conn{}, asking: map[string]int{}}
}

// Conn is a connection to one member.
type Conn struct {
	// member is the name of the member, or the host of one whose name is not known.
	member, incarnation string
	etcd                *clientv3.Client
	login               *login
	http                *http.Client
	versionURL          string
	// margin is by how many bytes a snapshot may be larger than twice the database.
	margin int64
	// retire closes one that a Client keeps, once it is idle.
	retire *time.Timer
}

// Dial prepares a connection; nothing is sent yet.
func Dial(e Endpoint) (*Conn, error) { return dial(e) }

func dial(e Endpoint, more ...grpc.DialOption) (*Conn, error) {
	scheme, config := "http", (*tls.Config)(nil)
	if e.TLS != nil {
		var err error
		if config, err = e.TLS(); err != nil {
			return nil, fmt.Errorf("dial %s: %w", e.Member, err)
		}
		scheme = "https"
	}
	reach := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", e.Address)
	}
	options := append(bound(), grpc.WithReadBufferSize(bufferSize), grpc.WithWriteBufferSize(bufferSize), grpc.WithIdleTimeout(maxIdle), grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: 4 * askTimeout, // the question's own limit is in another time
	}), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return reach(ctx) }))
	options = append(options, more...)
	var in *login
	if e.Login != nil {
		in = &login{passwords: e.Login}
		options = append(options, in.interceptors()...)
	}
	base := scheme + "://" + net.JoinHostPort(e.Host, strconv.Itoa(naming.ClientPort))
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{base}, TLS: config, Logger: zap.NewNop(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: askTimeout,
		// A member that restarts should be seen when it is back, not minutes later.
		DialOptions: options, MaxCallRecvMsgSize: maxAnswer,
	})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", e.Member, err)
	}
	transport := &http.Transport{
		TLSClientConfig: config, MaxIdleConns: 1, IdleConnTimeout: maxIdle, MaxResponseHeaderBytes: maxHeaders,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return reach(ctx) },
	}
	return &Conn{
		member: cmp.Or(e.Member, e.Host), incarnation: e.Incarnation, etcd: c, login: in, versionURL: base + "/version",
		http: &http.Client{Transport: transport}, margin: snapshotMargin,
	}, nil
}

// Close ends the connection.
func (m *Conn) Close() {
	_ = m.etcd.Close()
	m.http.CloseIdleConnections()
}

// idle reports whether nothing was asked over the connection for maxIdle. One that has come in by a
// password, or was refused, never is: etcd spends a tenth of a second of a processor on each.
func (m *Conn) idle() bool {
	return m.etcd.ActiveConnection().GetState() == connectivity.Idle && (m.login == nil || m.login.unused())
}

// Forget closes what is kept for a cluster that is no longer reconciled.
func (c *Client) Forget(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.clusters[cluster] {
		m.Close()
		m.retire.Stop()
	}
	delete(c.clusters, cluster)
	c.passwords.forget(cluster)
}

// retire closes a connection that is kept for a member, if it is idle; else it looks again later.
func (c *Client) retire(cluster, member string, m *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.clusters[cluster]
	switch {
	case kept[member] != m:
		return // another one is kept, or none
	case c.asking[cluster] > 0 || !m.idle():
		m.retire.Reset(retireAfter)
		return
	}
	m.Close()
	if delete(kept, member); len(kept) == 0 {
		delete(c.clusters, cluster)
	}
}

// hold keeps the connections to the members of a cluster until asked is called.
func (c *Client) hold(cluster string) (asked func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking[cluster]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.asking[cluster]--; c.asking[cluster] == 0 {
			delete(c.asking, cluster)
		}
	}
}

// client returns the kept connection to a member, or a new one where the kept
// one belongs to an earlier incarnation.
func (c *Client) client(cluster string, e Endpoint) (*Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.clusters[cluster]
	if kept == nil {
		kept = map[string]*Conn{}
		c.clusters[cluster] = kept
	}
	if m := kept[e.Member]; m != nil {
		if m.incarnation == e.Incarnation {
			m.retire.Reset(retireAfter)
			return m, nil
		}
		m.Close()
		m.retire.Stop()
		delete(kept, e.Member)
	}
	m, err := dial(e, grpc.WithChainUnaryInterceptor(c.aside))
	if err != nil {
		return nil, err
	}
	kept[e.Member] = m
	m.retire = time.AfterFunc(retireAfter, func() { c.retire(cluster, e.Member, m) })
	if m.login != nil {
		m.login.others = func() []*Conn { return c.others(cluster, m) }
	}
	return m, nil
}

// aside makes a request while what it is for is aside.
func (c *Client) aside(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if c.Aside != nil {
		defer c.Aside(ctx)()
	}
	return call(ctx, method, request, reply, conn, options...)
}

// others are the connections to the other members of a cluster.
func (c *Client) others(cluster string, than *Conn) (all []*Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.clusters[cluster] {
		if m != than {
			all = append(all, m)
		}
	}
	return all
}

// answer is what one member reports about itself.
type answer struct {
	client  *Conn
	status  *pb.StatusResponse
	members []*pb.Member
	list    *pb.ResponseHeader
	alarms  []*pb.AlarmMember
	version string
	problem string
	// denied says that the problem is that it answers to a user only.
	denied bool
	// hash is of the key space, in a deep round; one at revision 0 is none.
	hash Hash
	// keys is how many there are at the hash's revision; 0 where that is unknown.
	keys     int64
	endpoint Endpoint
}

// Round asks every member once. What cannot be seen is in the Round as
// a problem: there is no error beside it. A deep round compares hashes, which stops one
// member after the other for a while, and may move the leadership before: see compareHashes.
func (c *Client) Round(ctx context.Context, cluster string, members []Endpoint, deep bool) state.Round {
	defer c.hold(cluster)()
	at := time.Now()
	answers := make([]*answer, len(members))
	eachMember(len(members), func(i int) { answers[i] = c.ask(ctx, cluster, members[i]) })
	incomparable := ""
	if deep {
		incomparable = compareHashes(ctx, answers, patient())
	}
	r := assemble(answers)
	askLeader(ctx, &r, answers)
	r.At, r.Deep, r.Incomparable = at, deep, incomparable
	return r
}

// eachMember runs f for every member at once. One that panics, on an answer that nobody
// thought of, does so for the caller.
func eachMember(n int, f func(int)) {
	var wg conc.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// ask asks one member for its status, a linearizable read and the member list
// as it sees it.
func (c *Client) ask(ctx context.Context, cluster string, e Endpoint) *answer {
	return c.askOne(ctx, cluster, e, (*answer).askStatus, (*answer).askRead, (*answer).askMembers, (*answer).askVersion)
}

// askOne asks one member these questions, of which the first is for its status, until one is not
// answered.
func (c *Client) askOne(ctx context.Context, cluster string, e Endpoint, questions ...func(*answer, context.Context) error) *answer {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	a := &answer{endpoint: e}
	m, err := c.client(cluster, e)
	if err != nil {
		a.problem = err.Error()
		return a
	}
	a.client = m
	for _, question := range questions {
		if err := question(a, ctx); err != nil {
			a.problem, a.denied = sentence(err.Error()), errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, ErrNoPassword)
			return a
		}
		if a.status.IsLearner {
			return a // it answers nothing else, and that is how it should be
		}
	}
	return a
}

// complete reports whether the member has answered all questions. A learner never
// does.
func (a *answer) complete() bool { return a.problem == "" && a.status != nil && !a.status.IsLearner }

func (a *answer) maintenance() pb.MaintenanceClient { return a.client.maintenance() }

func (a *answer) askStatus(ctx context.Context) error {
	s, err := a.maintenance().Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return fmt.Errorf("status: %w", plainError(err))
	}
	a.status = checkStatus(s)
	return nil
}

// askRead reads through the member whether the key is there, which no client can make
// large. That the caller may not read the key is an answer as good as the key itself. So is
// that etcd refuses to serve because of the alarm CORRUPT: the list of alarms has it, and
// the member lives.
func (a *answer) askRead(ctx context.Context) error {
	_, err := a.client.etcd.Get(ctx, probeKey, clientv3.WithCountOnly())
	if err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) && !errors.Is(err, rpctypes.ErrCorrupt) {
		return fmt.Errorf("linearizable read: %w", plainError(err))
	}
	return nil
}

func (a *answer) askMembers(ctx context.Context) error {
	list, err := a.client.etcd.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("member list: %w", plainError(err))
	}
	if err := checkMembers(list.Members); err != nil {
		return fmt.Errorf("member list: %w", err)
	}
	a.members, a.list = list.Members, list.Header
	alarms, err := a.client.etcd.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("alarm list: %w", plainError(err))
	}
	if n := len(alarms.Alarms); n > maxAlarms {
		return fmt.Errorf("alarm list: it has %d entries, and no cluster has more than %d: find out what listens at its address", n, maxAlarms)
	}
	a.alarms = alarms.Alarms
	return nil
}

// askVersion reads the cluster version, which no RPC tells.
func (a *answer) askVersion(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.client.versionURL, nil)
	if err != nil {
		return fmt.Errorf("cluster version: %w", err)
	}
	resp, err := a.client.http.Do(req)
	if err != nil {
		return fmt.Errorf("cluster version: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var v struct {
		Cluster string `json:"etcdcluster"`
	}
	if err := json.NewDecoder(&bounded{resp.Body, maxVersion, ErrTooLarge}).Decode(&v); err != nil {
		return fmt.Errorf("cluster version: %w", err)
	}
	a.version = word(v.Cluster)
	return nil
}

// What a member answers where it has no keys to count or to hash.
var (
	// ErrCompacted says that the revision is compacted.
	ErrCompacted = errors.New("etcd has compacted that revision")
	// ErrCorrupt means that the alarm CORRUPT is on: etcd refuses to serve.
	ErrCorrupt = errors.New("etcd refuses to serve while the alarm CORRUPT is on")
)

// CountKeys asks the member itself how many keys there are at a revision, 0 for the
// newest one that a quorum knows of, and at which revision the member is. It walks the
// index in etcd's memory, in a fraction of the time that a hash takes. Errors:
// ErrCompacted, ErrCorrupt.
func (m *Conn) CountKeys(ctx context.Context, revision int64) (keys, at int64, err error) {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithCountOnly()}
	if revision > 0 {
		options = append(options, clientv3.WithSerializable(), clientv3.WithRev(revision))
	}
	found, err := m.etcd.Get(ctx, "\x00", options...)
	if err != nil {
		return 0, 0, keyError(err)
	}
	return found.Count, found.Header.Revision, nil
}

// Hash is of the keys and values of one member at Revision, of which those up to
// Compacted were compacted; -1 is etcd's word for never.
type Hash struct {
	Sum                 uint32
	Revision, Compacted int64
}

// HashKV asks the member itself for the hash of its keys at a revision, 0 for its newest.
// It has no time limit besides the caller's, and meanwhile the member serves nobody: see
// compareHashes. Errors: ErrCompacted.
func (m *Conn) HashKV(ctx context.Context, revision int64) (Hash, error) {
	answer, err := m.maintenance().HashKV(ctx, &pb.HashKVRequest{Revision: revision})
	if err != nil {
		return Hash{}, keyError(rpctypes.Error(err))
	}
	return Hash{Sum: answer.Hash, Revision: cmp.Or(revision, answer.Header.GetRevision()), Compacted: answer.CompactRevision}, nil
}

// keyError tells apart why a member has no answer about its keys.
func keyError(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return ErrCompacted
	case errors.Is(err, rpctypes.ErrCorrupt):
		return ErrCorrupt
	}
	return plainError(err)
}

// assemble makes one Round of what the members said. The list is taken from a
// member that answered; each member of it speaks for itself, under its own ID.
func assemble(answers []*answer) state.Round {
	var r state.Round
	var listed *answer
	byName := map[string]*answer{}
	for _, a := range answers {
		byName[a.speaksFor()] = a
		if listed == nil && a.complete() {
			listed = a
		}
	}
	if listed == nil {
		r.Problem = firstProblem(answers)
		r.Members = eachAlone(answers)
		return r
	}
	r.ClusterID, r.ClusterVersion = hexID(listed.list.ClusterId), listed.version
	for _, alarm := range listed.alarms {
		r.Alarms = append(r.Alarms, state.Alarm{Kind: alarm.Alarm.String(), MemberID: hexID(alarm.MemberID)})
	}
	for _, m := range listed.members {
		member := state.Member{ID: hexID(m.ID), Name: m.Name, Learner: m.IsLearner, PeerURLs: m.PeerURLs}
		describe(&member, byName[m.Name])
		if a := byName[m.Name]; a != nil && a.status.GetDowngradeInfo().GetEnabled() {
			r.Downgrading, r.DowngradeTarget = true, downgradeLine(a.status)
		}
		r.Members = append(r.Members, member)
	}
	return r
}

// eachAlone is what each member reports about itself where none of them can list them
// all. A status needs no quorum.
func eachAlone(answers []*answer) []state.Member {
	var members []state.Member
	for _, a := range answers {
		m := state.Member{Name: a.endpoint.Member}
		if a.status != nil {
			m.ID, m.Learner = hexID(a.status.Header.MemberId), a.status.IsLearner
		}
		// Only a learner has answered all that it is asked.
		describe(&m, a)
		if m.Problem == "" {
			m.Problem = "no member lists it"
		}
		members = append(members, m)
	}
	return members
}

// speaksFor is the name of the member that gave the answer: that of its endpoint,
// or as it and the list report it where the endpoint has none.
func (a *answer) speaksFor() string {
	if a.endpoint.Member == "" && a.status != nil {
		for _, m := range a.members {
			if m.ID == a.status.Header.MemberId {
				return m.Name
			}
		}
	}
	return a.endpoint.Member
}

// describe adds to a listed member what it reports about itself.
func describe(m *state.Member, a *answer) {
	switch {
	case a == nil:
		m.Problem = "it has no pod with an address"
		return
	case a.status == nil:
		m.Problem, m.Denied = a.problem, a.denied
		return
	case hexID(a.status.Header.MemberId) != m.ID:
		m.Problem = "its pod answers as member " + hexID(a.status.Header.MemberId)
		return
	case a.status.IsLearner && !m.Learner:
		// It was promoted a moment ago, or lags behind: it was not asked all that
		// a voter is asked.
		m.Problem = "it does not know yet that it is a voter"
		return
	}
	s := a.status
	m.Problem, m.Denied, m.Version, m.Term = a.problem, a.denied, s.Version, s.RaftTerm
	m.CommitIndex, m.AppliedIndex, m.Errors = s.RaftIndex, s.RaftAppliedIndex, errorsOf(s.Errors)
	m.DBSize, m.DBInUse, m.Quota = s.DbSize, s.DbSizeInUse, s.DbSizeQuota
	m.StorageVersion, m.Revision = s.StorageVersion, s.Header.Revision
	if s.Leader != 0 {
		m.Leader = hexID(s.Leader)
	}
	if a.hash.Revision != 0 {
		m.Hash, m.HashRevision, m.CompactRevision, m.Keys = a.hash.Sum, a.hash.Revision, a.hash.Compacted, a.keys
	}
}

// errorsOf are the errors that a member reports about itself. Among them are the alarms
// that are on, which are there as text only.
func errorsOf(texts []string) []state.MemberError {
	var all []state.MemberError
	for _, text := range texts {
		e := state.MemberError{Text: text}
		for _, kind := range []string{state.NoSpace, state.Corrupt} {
			if strings.Contains(text, "alarm:"+kind) {
				e.Alarm = kind
			}
		}
		all = append(all, e)
	}
	return all
}

func firstProblem(answers []*answer) string {
	for _, a := range answers {
		if a.problem != "" {
			return a.endpoint.Member + ": " + a.problem
		}
	}
	return "no member has an address yet"
}

// hexID is a member or cluster ID as etcdctl prints it.
func hexID(id uint64) string { return strconv.FormatUint(id, 16) }

// plainError is the message of a gRPC error without its wrapping, on one line.
func plainError(err error) error {
	var known rpctypes.EtcdError
	if errors.As(rpctypes.Error(err), &known) {
		return known
	}
	s, ok := status.FromError(err)
	switch {
	case !ok:
		return err
	case isTooLarge(s):
		return ErrTooLarge
	}
	return errors.New(sentence(s.Message()))
}

// MoveLeader asks the leader to hand over to the member with the ID.
func (c *Client) MoveLeader(ctx context.Context, cluster string, leader Target, toID string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	to, err := strconv.ParseUint(toID, 16, 64)
	if err != nil {
		return fmt.Errorf("move leader to %s: %w", toID, err)
	}
	m, _, err := c.identify(ctx, cluster, leader)
	if err != nil {
		return fmt.Errorf("move leader from %s: %w", leader.Member, err)
	}
	if _, err := m.etcd.MoveLeader(ctx, to); err != nil {
		return fmt.Errorf("move leader from %s to member %s: %w", leader.Member, toID, plainError(err))
	}
	return nil
}

// Snapshot streams the member's database. The caller closes it.
func (c *Client) Snapshot(ctx context.Context, cluster string, member Target) (io.ReadCloser, error) {
	m, _, err := c.identify(ctx, cluster, member)
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", member.Member, err)
	}
	r, err := m.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", member.Member, err)
	}
	return r, nil
}

// Snapshot streams the member's database, and no more than that can have grown to since it
// was asked for its size. The caller closes it.
func (m *Conn) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	asking, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	now, err := m.maintenance().Status(asking, &pb.StatusRequest{})
	if err != nil {
		return nil, fmt.Errorf("status: %w", plainError(err))
	}
	r, err := m.etcd.Snapshot(ctx)
	if err != nil {
		return nil, plainError(err)
	}
	size := min(max(0, now.DbSize), math.MaxInt64/4)
	return &bounded{r, 2*size + m.margin, fmt.Errorf("snapshot of %s: it does not end after twice the %s that the member reports its database to have: find out what listens at the address of this member",
		m.member, state.SizeText(size))}, nil
}
