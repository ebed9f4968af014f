package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// fakeEtcd is Etcd without a network: members that run what their pods say.
type fakeEtcd struct {
	mu sync.Mutex
	// version of a member, "" while it does not answer.
	version func(member string) string
	// change is applied to every round.
	change   func(*state.Round)
	snapshot []byte
	// stream, where it is set, is what a snapshot streams instead.
	stream  func(ctx context.Context) io.Reader
	leader  string
	calls   []string
	members []string
	// asked are the members through which the last change of the list was to go.
	asked []string
	// learners among the members.
	learners map[string]bool
	// joined counts how often a member of that name was added: each time it gets
	// another ID.
	joined map[string]int
	// refuse is what a change answers instead of happening; loseAnswer is what it
	// answers after it happened.
	refuse, loseAnswer error
	// downgrade is the line of the downgrade under way, "" for none.
	downgrade string
	// saved is how often each member has saved its state; it rises by one with each
	// nudge for those that save.
	saved map[string]int64
	saves func(member string) bool
}

// errSomebodyElse is what a member answers that is not the one that was meant.
var errSomebodyElse = errors.New("it answers as another member")

// takes says whether the member is the one that is meant, and takes requests.
func (e *fakeEtcd) takes(t etcd.Target) error {
	if t.ClusterID != "c1" || t.ID != e.id(t.Member) {
		return errSomebodyElse
	}
	return e.refuse
}

func (e *fakeEtcd) EnableDowngrade(_ context.Context, _ string, member etcd.Target, line string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.downgrade = line
	return e.changed("enable the downgrade to " + line + " through " + member.Member)
}

func (e *fakeEtcd) CancelDowngrade(_ context.Context, _ string, member etcd.Target) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.downgrade = ""
	return e.changed("cancel the downgrade through " + member.Member)
}

func (e *fakeEtcd) AppendNoops(_ context.Context, _ string, member etcd.Target) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	for _, name := range e.members {
		if e.saves == nil || e.saves(name) {
			e.saved[name]++
		}
	}
	return e.changed("nudge " + member.Member)
}

func (e *fakeEtcd) SnapshotCount(_ context.Context, _ string, member etcd.Endpoint) (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.version(member.Member) == "" {
		return 0, errors.New("connection refused")
	}
	return e.saved[member.Member], nil
}

func fakeMemberID(name string) string { return "a" + strconv.Itoa(int(naming.Ordinal(name))) }

// id is the member's ID: another one after each time that it was added.
func (e *fakeEtcd) id(name string) string {
	return fakeMemberID(name) + strings.Repeat("f", e.joined[name])
}

func (e *fakeEtcd) Round(_ context.Context, _ string, members []etcd.Endpoint, deep bool) state.Round {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := state.Round{At: time.Now(), ClusterID: "c1", Deep: deep}
	lowest := ""
	for _, name := range e.members {
		m := state.Member{ID: e.id(name), Name: name, Learner: e.learners[name], Problem: "it has no pod with an address"}
		if slices.ContainsFunc(members, func(e etcd.Endpoint) bool { return e.Member == name }) {
			e.answer(&m, deep)
		}
		if m.Version != "" && (lowest == "" || m.Version < lowest) {
			lowest = m.Version
		}
		r.Members = append(r.Members, m)
	}
	r.ClusterVersion = lowest[:max(0, strings.LastIndex(lowest, "."))] + ".0"
	e.descend(&r)
	if e.change != nil {
		e.change(&r)
	}
	return r
}

// descend is what a downgrade makes of a round. It ends by itself when every
// member runs the older line.
func (e *fakeEtcd) descend(r *state.Round) {
	if e.downgrade == "" {
		return
	}
	over := true
	for i := range r.Members {
		r.Members[i].StorageVersion = e.downgrade + ".0"
		over = over && strings.HasPrefix(r.Members[i].Version, e.downgrade+".")
	}
	if over {
		e.downgrade = ""
		return
	}
	r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, e.downgrade, e.downgrade+".0"
}

func (e *fakeEtcd) answer(m *state.Member, deep bool) {
	m.Problem, m.Version = "", e.version(m.Name)
	if m.Version == "" {
		m.Problem = "status: connection refused"
		return
	}
	m.Leader, m.Term, m.CommitIndex, m.AppliedIndex, m.Revision = e.id(e.leader), 2, 100, 100, 7
	if deep {
		m.Hash, m.HashRevision = 99, 7
	}
}

func (e *fakeEtcd) MoveLeader(_ context.Context, _ string, leader etcd.Target, toID string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(leader); err != nil {
		return err
	}
	e.calls = append(e.calls, "move leader from "+leader.Member+" to "+toID)
	for _, name := range e.members {
		if e.id(name) == toID {
			e.leader = name
		}
	}
	return nil
}

// changed is what a change answers that was carried out.
func (e *fakeEtcd) changed(call string) error {
	e.calls = append(e.calls, call)
	return e.loseAnswer
}

// through notes whom a change was to go through.
func (e *fakeEtcd) through(members []etcd.Endpoint) {
	e.asked = nil
	for _, m := range members {
		e.asked = append(e.asked, m.Member)
	}
}

// named is the name of the member with the ID, "" for none.
func (e *fakeEtcd) named(id string) string {
	for _, name := range e.members {
		if e.id(name) == id {
			return name
		}
	}
	return ""
}

func (e *fakeEtcd) AddLearner(_ context.Context, _, _ string, members []etcd.Endpoint, peerURL string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	host := peerURL[strings.Index(peerURL, "//")+2:]
	name := host[:strings.Index(host, ".")]
	switch {
	case e.learners[name]:
		return e.id(name), nil
	case e.refuse != nil:
		return "", e.refuse
	}
	if e.learners == nil {
		e.learners, e.joined = map[string]bool{}, map[string]int{}
	}
	e.members, e.learners[name] = append(e.members, name), true
	e.joined[name]++
	if err := e.changed("add learner " + peerURL); err != nil {
		return "", err
	}
	return e.id(name), nil
}

func (e *fakeEtcd) PromoteMember(_ context.Context, _, _ string, members []etcd.Endpoint, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	name := e.named(id)
	switch {
	case name == "":
		return etcd.ErrNotAMember
	case !e.learners[name]:
		return nil
	case e.refuse != nil:
		return e.refuse
	}
	delete(e.learners, name)
	return e.changed("promote " + id)
}

func (e *fakeEtcd) RemoveMember(_ context.Context, _, _ string, members []etcd.Endpoint, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	name := e.named(id)
	switch {
	case name == "":
		return nil
	case e.refuse != nil:
		return e.refuse
	}
	e.members = slices.DeleteFunc(e.members, func(n string) bool { return n == name })
	delete(e.learners, name)
	return e.changed("remove " + id)
}

func (e *fakeEtcd) RemoveLearner(_ context.Context, _, _ string, members []etcd.Endpoint, id, peerURL string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	host := peerURL[strings.Index(peerURL, "//")+2:]
	name := host[:strings.Index(host, ".")]
	if id != "" {
		name = e.named(id)
	}
	switch {
	case !slices.Contains(e.members, name):
		return nil
	case !e.learners[name]:
		return etcd.ErrIsVoter
	case e.refuse != nil:
		return e.refuse
	}
	id = e.id(name)
	e.members = slices.DeleteFunc(e.members, func(n string) bool { return n == name })
	delete(e.learners, name)
	return e.changed("remove learner " + id)
}

func (e *fakeEtcd) Snapshot(ctx context.Context, _ string, member etcd.Target) (io.ReadCloser, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return nil, err
	}
	e.calls = append(e.calls, "snapshot of "+member.Member)
	if e.stream != nil {
		return io.NopCloser(e.stream(ctx)), nil
	}
	return io.NopCloser(bytes.NewReader(e.snapshot)), nil
}

func (e *fakeEtcd) Compact(_ context.Context, _ string, member etcd.Target, revision int64) error {
	return e.done(member, fmt.Sprintf("compact through %s at %d", member.Member, revision))
}

func (e *fakeEtcd) Defragment(_ context.Context, _ string, member etcd.Target) error {
	return e.done(member, "defragment "+member.Member)
}

// done notes a call to a member that does nothing else.
func (e *fakeEtcd) done(member etcd.Target, text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.calls = append(e.calls, text)
	return nil
}

func (e *fakeEtcd) Disarm(_ context.Context, _ string, members []etcd.Endpoint, alarm state.Alarm) error {
	return e.called(fmt.Sprintf("disarm %s with %d", alarm, len(members)))
}

// called notes a call that does nothing else.
func (e *fakeEtcd) called(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse != nil {
		return e.refuse
	}
	e.calls = append(e.calls, text)
	return nil
}

func (e *fakeEtcd) Forget(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, "forget "+cluster)
}
