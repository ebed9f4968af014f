package forward

import (
	"context"
	"strings"
	"sync"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// Members asks members at their own addresses, and those that answer nothing there through
// the API server. It is for a command that looks once and ends.
type Members struct {
	*etcd.Client
	// Open is Forwarder's.
	Open func(ctx context.Context, namespace, pod string, port int) (address string, stop func(), err error)
	// Told is called once for each cluster that does not answer at its own addresses: with
	// nil where it is asked through the API server, or with why it cannot be.
	Told func(cluster string, err error)

	mu    sync.Mutex
	ways  map[string]etcd.Endpoint
	told  map[string]bool
	stops []func()
}

// Round asks every member once.
func (m *Members) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	if ways := m.known(members); ways != nil {
		return m.Client.Round(ctx, cluster, ways, deep)
	}
	r := m.Client.Round(ctx, cluster, members, deep)
	if len(members) == 0 || r.Problem == "" || answers(r) {
		return r
	}
	err := m.open(ctx, cluster, members)
	m.tell(cluster, err)
	if err != nil {
		return r
	}
	return m.Client.Round(ctx, cluster, m.known(members), deep)
}

// SnapshotCount asks a member in the way in which it is reached.
func (m *Members) SnapshotCount(ctx context.Context, cluster string, member etcd.Endpoint) (int64, error) {
	if ways := m.known([]etcd.Endpoint{member}); ways != nil {
		member = ways[0]
	}
	return m.Client.SnapshotCount(ctx, cluster, member)
}

// Auth asks members for users and roles in the way in which they are reached.
func (m *Members) Auth(ctx context.Context, cluster string, members []etcd.Endpoint, q etcd.AuthQuestion) state.Auth {
	if ways := m.known(members); ways != nil {
		members = ways
	}
	return m.Client.Auth(ctx, cluster, members, q)
}

// Close ends what was opened.
func (m *Members) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, stop := range m.stops {
		stop()
	}
	m.stops, m.ways = nil, nil
}

// answers reports whether a member has said at least who it is.
func answers(r state.Round) bool {
	for _, member := range r.Members {
		if member.ID != "" {
			return true
		}
	}
	return false
}

// known are the members as they are reached through the API server; nil for those that
// are not.
func (m *Members) known(members []etcd.Endpoint) []etcd.Endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ways []etcd.Endpoint
	for _, member := range members {
		way, open := m.ways[member.Incarnation]
		if !open {
			return nil
		}
		ways = append(ways, way)
	}
	return ways
}

// open opens a way to each member that can be reached so. A pod that does not run has
// none, and its silence says as much; the error is that of the last one where none has.
func (m *Members) open(ctx context.Context, cluster string, members []etcd.Endpoint) error {
	namespace, _, _ := strings.Cut(cluster, "/")
	var last error
	opened := 0
	for _, member := range members {
		way := member
		address, stop, err := m.Open(ctx, namespace, member.Member, naming.ClientPort)
		if err != nil {
			last = err
		} else {
			way.Address, way.Incarnation = address, member.Incarnation+"/forwarded"
			opened++
		}
		m.keep(member.Incarnation, way, stop)
	}
	if opened > 0 {
		return nil
	}
	return last
}

func (m *Members) keep(incarnation string, way etcd.Endpoint, stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ways == nil {
		m.ways = map[string]etcd.Endpoint{}
	}
	m.ways[incarnation] = way
	if stop != nil {
		m.stops = append(m.stops, stop)
	}
}

func (m *Members) tell(cluster string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == nil {
		m.told = map[string]bool{}
	}
	if !m.told[cluster] {
		m.told[cluster] = true
		m.Told(cluster, err)
	}
}
