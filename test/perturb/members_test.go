package perturb

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// The ways in which a call to the members is disturbed.
const (
	failed     = "error"             // it is not done, and fails at once
	timeout    = "timeout"           // it is not done, and fails after a while
	unanswered = "done-not-answered" // it is done, and fails after a while
	late       = "done-much-later"   // it fails after a while, and is done a minute later
	another    = "another-member"    // another member answers
	old        = "old-answer"        // the answer is an earlier one
	hangs      = "hangs"             // from then on the member answers nothing for two minutes
)

const (
	// patience is what the client has with one member.
	patience = 3 * time.Second
	// moment is how long members take to answer; else a loop without a wait would stop
	// the clock.
	moment     = 50 * time.Millisecond
	lateness   = time.Minute
	hangsLasts = 2 * time.Minute
)

var errRefused = errors.New("rpc error: code = Unavailable desc = transport is closing")

// line stands between the processes of quorate and the members, and disturbs one call.
type line struct {
	etcd *reconcilertest.FakeEtcd

	mu sync.Mutex
	// counter counts the calls.
	counter
	// last is when quorate has had members do something last.
	last time.Time
	// silent is until when the member that hangs does.
	silent time.Time
	// rounds are the answers so far.
	rounds []state.Round
}

func newLine(e *reconcilertest.FakeEtcd, at, how string) *line {
	return &line{etcd: e, counter: newCounter(at, how)}
}

// count counts a call, and returns how to disturb it, "" for not at all.
func (l *line) count(sort string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next(sort)
}

// members are those that one process talks to.
type members struct {
	reconciler.Members
	process *process
	line    *line
}

func (p *process) members(l *line) reconciler.Members { return &members{l.etcd, p, l} }

// call is a call that is to change something.
func (m *members) call(ctx context.Context, sort string, do func() error) error {
	if m.process.isDead() {
		return errKilled
	}
	m.line.mu.Lock()
	m.line.last = time.Now()
	hanging := time.Now().Before(m.line.silent)
	m.line.mu.Unlock()
	time.Sleep(moment)
	if hanging {
		return wait(ctx)
	}
	switch m.line.count(sort) {
	case failed:
		return errRefused
	case timeout:
		return wait(ctx)
	case unanswered:
		_ = do()
		return wait(ctx)
	case late:
		go func() {
			time.Sleep(lateness)
			_ = do()
		}()
		return wait(ctx)
	case another:
		return reconcilertest.ErrAnotherMember
	case hangs:
		m.line.hang()
		return wait(ctx)
	}
	if m.process.isDead() {
		return errKilled
	}
	return do()
}

// hang lets a member be silent from now on.
func (l *line) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = time.Now().Add(hangsLasts)
}

// wait is what a call without an answer comes to.
func wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func (m *members) Round(ctx context.Context, cluster string, list []etcd.Endpoint, deep bool) state.Round {
	if m.process.isDead() {
		return state.Round{At: time.Now(), Deep: deep}
	}
	time.Sleep(moment)
	sort := "round"
	if deep {
		sort = "deep-round"
	}
	how := m.line.count(sort)
	r := m.Members.Round(ctx, cluster, list, deep)
	l := m.line
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := r
	kept.Members = append([]state.Member(nil), r.Members...)
	l.rounds = append(l.rounds, kept)
	switch how {
	case failed:
		r = silence(r, len(r.Members), "status: "+errRefused.Error())
	case timeout:
		r = silence(r, len(r.Members), "status: context deadline exceeded")
	case another:
		r = mixed(r)
	case old:
		r = l.earlier(r)
	case hangs:
		l.silent = time.Now().Add(hangsLasts)
	}
	if time.Now().Before(l.silent) {
		r = silence(r, 1, "status: context deadline exceeded")
	}
	return r
}

// silence is the round in which the last n members do not answer.
func silence(r state.Round, n int, problem string) state.Round {
	for i := max(0, len(r.Members)-n); i < len(r.Members); i++ {
		m := &r.Members[i]
		*m = state.Member{ID: m.ID, Name: m.Name, Learner: m.Learner, Problem: problem}
	}
	if n >= len(r.Members) {
		return state.Round{At: r.At, Deep: r.Deep, Members: r.Members}
	}
	return r
}

// mixed is the round in which the first member answers in the place of the last, as
// one does that has got the address of another: the client finds two of one ID, and the
// place of the last stays silent.
func mixed(r state.Round) state.Round {
	return silence(r, 1, "it answers as another member")
}

// earlier is the answer of a while ago, as one that waited in a queue.
func (l *line) earlier(r state.Round) state.Round {
	for i := len(l.rounds) - 1; i >= 0; i-- {
		if l.rounds[i].Deep == r.Deep && r.At.Sub(l.rounds[i].At) >= 5*time.Second {
			past := l.rounds[i]
			past.At = r.At
			past.Members = append([]state.Member(nil), past.Members...)
			return past
		}
	}
	return r
}

func (m *members) Snapshot(ctx context.Context, cluster string, member etcd.Target) (stream io.ReadCloser, err error) {
	err = m.call(ctx, "snapshot", func() (err error) {
		stream, err = m.Members.Snapshot(ctx, cluster, member)
		return err
	})
	if err != nil {
		return nil, err
	}
	return stream, nil
}

func (m *members) SnapshotCount(ctx context.Context, cluster string, member etcd.Endpoint) (n int64, err error) {
	err = m.call(ctx, "snapshot-count", func() (err error) {
		n, err = m.Members.SnapshotCount(ctx, cluster, member)
		return err
	})
	return n, err
}

func (m *members) ChangeAuth(ctx context.Context, cluster string, list []etcd.Endpoint, work etcd.AuthWork) error {
	return m.call(ctx, "change-auth", func() error { return m.Members.ChangeAuth(ctx, cluster, list, work) })
}

func (m *members) MoveLeader(ctx context.Context, cluster string, leader etcd.Target, toID string) error {
	return m.call(ctx, "move-leader", func() error { return m.Members.MoveLeader(ctx, cluster, leader, toID) })
}

func (m *members) AddLearner(ctx context.Context, cluster, clusterID string, list []etcd.Endpoint, peerURL string) (id string, err error) {
	err = m.call(ctx, "add-learner", func() (err error) {
		id, err = m.Members.AddLearner(ctx, cluster, clusterID, list, peerURL)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (m *members) PromoteMember(ctx context.Context, cluster, clusterID string, list []etcd.Endpoint, id string) error {
	return m.call(ctx, "promote", func() error { return m.Members.PromoteMember(ctx, cluster, clusterID, list, id) })
}

func (m *members) RemoveMember(ctx context.Context, cluster, clusterID string, list []etcd.Endpoint, id string) error {
	return m.call(ctx, "remove", func() error { return m.Members.RemoveMember(ctx, cluster, clusterID, list, id) })
}

func (m *members) RemoveLearner(ctx context.Context, cluster, clusterID string, list []etcd.Endpoint, id, peerURL string) error {
	return m.call(ctx, "remove-learner", func() error { return m.Members.RemoveLearner(ctx, cluster, clusterID, list, id, peerURL) })
}

func (m *members) Compact(ctx context.Context, cluster string, member etcd.Target, revision int64) error {
	return m.call(ctx, "compact", func() error { return m.Members.Compact(ctx, cluster, member, revision) })
}

func (m *members) Defragment(ctx context.Context, cluster string, member etcd.Target) error {
	return m.call(ctx, "defragment", func() error { return m.Members.Defragment(ctx, cluster, member) })
}

func (m *members) Disarm(ctx context.Context, cluster string, list []etcd.Endpoint, alarm state.Alarm) error {
	return m.call(ctx, "disarm", func() error { return m.Members.Disarm(ctx, cluster, list, alarm) })
}

func (m *members) EnableDowngrade(ctx context.Context, cluster string, member etcd.Target, minor string) error {
	return m.call(ctx, "enable-downgrade", func() error { return m.Members.EnableDowngrade(ctx, cluster, member, minor) })
}

func (m *members) CancelDowngrade(ctx context.Context, cluster string, member etcd.Target) error {
	return m.call(ctx, "cancel-downgrade", func() error { return m.Members.CancelDowngrade(ctx, cluster, member) })
}

func (m *members) AppendNoops(ctx context.Context, cluster string, member etcd.Target) error {
	return m.call(ctx, "append-noops", func() error { return m.Members.AppendNoops(ctx, cluster, member) })
}
