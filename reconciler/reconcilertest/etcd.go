package reconcilertest

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
	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// FakeEtcd is Etcd without a network: members that run what their pods say.
type FakeEtcd struct {
	mu sync.Mutex
	// version of a member, "" while it does not answer.
	Version func(member string) string
	// change is applied to every round.
	Change func(*state.Round)
	// Database is what a snapshot streams.
	Database []byte
	// stream, where it is set, is what a snapshot streams instead.
	Stream func(ctx context.Context) io.Reader
	Leader string
	// HandsOver says that to compare the data takes long, so that the leader hands over.
	HandsOver bool
	Calls     []string
	Members   []string
	// asked are the members through which the last change of the list was to go.
	Asked []string
	// learners among the members.
	Learners map[string]bool
	// joined counts how often a member of that name was added: each time it gets
	// another ID.
	joined map[string]int
	// refuse is what a change answers instead of happening; loseAnswer is what it
	// answers after it happened.
	Refuse, LoseAnswer error
	// downgrade is the line of the downgrade under way, "" for none.
	Downgrade string
	// saved is how often each member has saved its state; it rises by one with each
	// nudge for those that save.
	Saved map[string]int64
	Saves func(member string) bool
	// Users are its users and roles, and whether authentication is on. Passwords are what its
	// users come in with; "" for none. Questions counts how often it was asked for these.
	Users     state.Auth
	Passwords map[string]etcd.Password
	Questions int
	// PeerURLs are where members were moved to, by their IDs.
	PeerURLs map[string][]string
	// founded is the cluster as a restore has made it; nil for the first one.
	founded *founding
}

// founding is a cluster that began with one member, on the data of an earlier one.
type founding struct {
	clusterID, member, id string
	revision              int64
}

// Found lets a cluster begin with one member that has IDs of its own, at a revision.
func (e *FakeEtcd) Found(clusterID, member, id string, revision int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.founded = &founding{clusterID, member, id, revision}
	e.Members, e.Learners, e.Leader = []string{member}, nil, member
}

// clusterID is that of the cluster as it is now, and revision the newest that members have.
func (e *FakeEtcd) clusterID() string {
	if e.founded != nil {
		return e.founded.clusterID
	}
	return "c1"
}

func (e *FakeEtcd) revision() int64 {
	if e.founded != nil {
		return e.founded.revision
	}
	return 7
}

// ErrAnotherMember is what a member answers that is not the expected one.
var ErrAnotherMember = errors.New("it answers as another member")

// takes reports whether the member is the one that is meant, and takes requests.
func (e *FakeEtcd) takes(t etcd.Target) error {
	if t.ClusterID != e.clusterID() || t.ID != e.id(t.Member) {
		return ErrAnotherMember
	}
	return e.Refuse
}

func (e *FakeEtcd) EnableDowngrade(_ context.Context, _ string, member etcd.Target, line string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.Downgrade = line
	return e.changed("enable the downgrade to " + line + " through " + member.Member)
}

func (e *FakeEtcd) CancelDowngrade(_ context.Context, _ string, member etcd.Target) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.Downgrade = ""
	return e.changed("cancel the downgrade through " + member.Member)
}

func (e *FakeEtcd) AppendNoops(_ context.Context, _ string, member etcd.Target) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	for _, name := range e.Members {
		if e.Saves == nil || e.Saves(name) {
			e.Saved[name]++
		}
	}
	return e.changed("nudge " + member.Member)
}

func (e *FakeEtcd) SnapshotCount(_ context.Context, _ string, member etcd.Endpoint) (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Version(member.Member) == "" {
		return 0, errors.New("connection refused")
	}
	return e.Saved[member.Member], nil
}

// letIn is etcd's refusal of one who comes in by a password and has none that is right.
func (e *FakeEtcd) letIn(ctx context.Context, members []etcd.Endpoint) error {
	if !e.Users.Enabled || members[0].Login == nil {
		return nil
	}
	passwords, err := members[0].Login(ctx)
	if err == nil && !slices.Contains(passwords, e.Passwords[schema.AuthRoot]) {
		err = etcd.ErrNoPassword
	}
	return err
}

// Auth tells of users and roles as etcd does: of passwords only while authentication is on.
func (e *FakeEtcd) Auth(ctx context.Context, _ string, members []etcd.Endpoint, q etcd.AuthQuestion) state.Auth {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Questions++
	if err := e.letIn(ctx, members); err != nil {
		return state.Auth{At: time.Now(), Problem: err.Error()}
	}
	found := e.Users
	found.At, found.NoSecret, found.Passwords = time.Now(), q.Unread, map[string]state.PasswordState{}
	users := q.Users
	if _, has := q.Passwords[schema.AuthRoot]; has {
		users = append(slices.Clone(users), schema.AuthRoot)
	}
	for _, user := range users {
		has, known := e.Passwords[user]
		switch wanted := q.Passwords[user]; {
		case !known:
		case has == wanted:
			found.Passwords[user] = state.PasswordRight
		case has == "" || wanted == "":
			found.Passwords[user] = state.PasswordOtherKind
		default:
			found.Passwords[user] = state.PasswordWrong
		}
	}
	return found
}

// ChangeAuth changes users and roles.
func (e *FakeEtcd) ChangeAuth(ctx context.Context, _ string, members []etcd.Endpoint, work etcd.AuthWork) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := errors.Join(e.Refuse, e.letIn(ctx, members)); err != nil {
		return err
	}
	e.Users = *grants.After(&e.Users, work.AuthChange)
	if work.Op == state.AddUser || work.Op == state.RenewUser || work.Op == state.SetPassword {
		if e.Passwords == nil {
			e.Passwords = map[string]etcd.Password{}
		}
		e.Passwords[work.User] = work.Password
	}
	return e.changed(work.String())
}

func FakeMemberID(name string) string { return "a" + strconv.Itoa(int(naming.Ordinal(name))) }

// id is the member's ID: another one after each time that it was added.
func (e *FakeEtcd) id(name string) string {
	if f := e.founded; f != nil && name == f.member {
		return f.id
	}
	return FakeMemberID(name) + strings.Repeat("f", e.joined[name])
}

func (e *FakeEtcd) Round(_ context.Context, _ string, members []etcd.Endpoint, deep bool) state.Round {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := state.Round{At: time.Now(), ClusterID: e.clusterID(), Deep: deep, HeardBy: e.id(e.Leader)}
	lowest := ""
	for _, name := range e.Members {
		m := state.Member{ID: e.id(name), Name: name, Learner: e.Learners[name], PeerURLs: e.PeerURLs[e.id(name)], Problem: "it has no pod with an address"}
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
	if deep && e.HandsOver {
		e.handOver(members)
		for i := range r.Members {
			if r.Members[i].Leader != "" {
				r.Members[i].Leader = e.id(e.Leader)
			}
		}
	}
	if e.Change != nil {
		e.Change(&r)
	}
	return r
}

// handOver gives the leadership to the first other member that does not stop next.
func (e *FakeEtcd) handOver(members []etcd.Endpoint) {
	for _, m := range members {
		if m.Member != e.Leader && !m.Stops && !e.Learners[m.Member] {
			e.Leader = m.Member
			return
		}
	}
}

// descend is what a downgrade makes of a round. It ends on its own when every
// member runs the older line.
func (e *FakeEtcd) descend(r *state.Round) {
	if e.Downgrade == "" {
		return
	}
	over := true
	for i := range r.Members {
		r.Members[i].StorageVersion = e.Downgrade + ".0"
		over = over && strings.HasPrefix(r.Members[i].Version, e.Downgrade+".")
	}
	if over {
		e.Downgrade = ""
		return
	}
	r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, e.Downgrade, e.Downgrade+".0"
}

func (e *FakeEtcd) answer(m *state.Member, deep bool) {
	m.Problem, m.Version = "", e.Version(m.Name)
	if m.Version == "" {
		m.Problem = "status: connection refused"
		return
	}
	m.Leader, m.Term, m.CommitIndex, m.AppliedIndex, m.Revision = e.id(e.Leader), 2, 100, 100, e.revision()
	if deep {
		m.Hash, m.HashRevision = 99, e.revision()
	}
}

func (e *FakeEtcd) MoveLeader(_ context.Context, _ string, leader etcd.Target, toID string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(leader); err != nil {
		return err
	}
	e.Calls = append(e.Calls, "move leader from "+leader.Member+" to "+toID)
	for _, name := range e.Members {
		if e.id(name) == toID {
			e.Leader = name
		}
	}
	return nil
}

// changed is what a change answers that was applied.
func (e *FakeEtcd) changed(call string) error {
	e.Calls = append(e.Calls, call)
	return e.LoseAnswer
}

// through notes whom a change was to go through.
func (e *FakeEtcd) through(members []etcd.Endpoint) {
	e.Asked = nil
	for _, m := range members {
		e.Asked = append(e.Asked, m.Member)
	}
}

// named is the name of the member with the ID, "" for none.
func (e *FakeEtcd) named(id string) string {
	for _, name := range e.Members {
		if e.id(name) == id {
			return name
		}
	}
	return ""
}

func (e *FakeEtcd) AddLearner(_ context.Context, _, _ string, members []etcd.Endpoint, peerURL string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	host := peerURL[strings.Index(peerURL, "//")+2:]
	name := host[:strings.Index(host, ".")]
	switch {
	case e.Learners[name]:
		return e.id(name), nil
	case slices.Contains(e.Members, name):
		return "", errors.New("etcdserver: Peer URLs already exists")
	case e.Refuse != nil:
		return "", e.Refuse
	}
	if e.Learners == nil {
		e.Learners, e.joined = map[string]bool{}, map[string]int{}
	}
	e.Members, e.Learners[name] = append(e.Members, name), true
	e.joined[name]++
	if err := e.changed("add learner " + peerURL); err != nil {
		return "", err
	}
	return e.id(name), nil
}

func (e *FakeEtcd) PromoteMember(_ context.Context, _, _ string, members []etcd.Endpoint, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	name := e.named(id)
	switch {
	case name == "":
		return etcd.ErrNotAMember
	case !e.Learners[name]:
		return nil
	case e.Refuse != nil:
		return e.Refuse
	}
	delete(e.Learners, name)
	return e.changed("promote " + id)
}

func (e *FakeEtcd) MoveMember(_ context.Context, _, _ string, members []etcd.Endpoint, id string, peerURLs []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	switch {
	case e.named(id) == "":
		return etcd.ErrNotAMember
	case slices.Equal(e.PeerURLs[id], peerURLs):
		return nil
	case e.Refuse != nil:
		return e.Refuse
	}
	if e.PeerURLs == nil {
		e.PeerURLs = map[string][]string{}
	}
	e.PeerURLs[id] = slices.Clone(peerURLs)
	return e.changed("move " + id + " to " + strings.Join(peerURLs, " "))
}

func (e *FakeEtcd) RemoveMember(_ context.Context, _, _ string, members []etcd.Endpoint, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	name := e.named(id)
	switch {
	case name == "":
		return nil
	case e.Refuse != nil:
		return e.Refuse
	}
	e.Members = slices.DeleteFunc(e.Members, func(n string) bool { return n == name })
	delete(e.Learners, name)
	return e.changed("remove " + id)
}

func (e *FakeEtcd) RemoveLearner(_ context.Context, _, _ string, members []etcd.Endpoint, id, peerURL string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	host := peerURL[strings.Index(peerURL, "//")+2:]
	name := host[:strings.Index(host, ".")]
	if id != "" {
		name = e.named(id)
	}
	switch {
	case !slices.Contains(e.Members, name):
		return nil
	case !e.Learners[name]:
		return etcd.ErrIsVoter
	case e.Refuse != nil:
		return e.Refuse
	}
	id = e.id(name)
	e.Members = slices.DeleteFunc(e.Members, func(n string) bool { return n == name })
	delete(e.Learners, name)
	return e.changed("remove learner " + id)
}

func (e *FakeEtcd) Snapshot(ctx context.Context, _ string, member etcd.Target) (io.ReadCloser, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return nil, err
	}
	e.Calls = append(e.Calls, "snapshot of "+member.Member)
	if e.Stream != nil {
		return io.NopCloser(e.Stream(ctx)), nil
	}
	return io.NopCloser(bytes.NewReader(e.Database)), nil
}

func (e *FakeEtcd) Compact(_ context.Context, _ string, member etcd.Target, revision int64) error {
	return e.done(member, fmt.Sprintf("compact through %s at %d", member.Member, revision))
}

func (e *FakeEtcd) Defragment(_ context.Context, _ string, member etcd.Target) error {
	return e.done(member, "defragment "+member.Member)
}

// done notes a call to a member that does nothing else.
func (e *FakeEtcd) done(member etcd.Target, text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.Calls = append(e.Calls, text)
	return nil
}

func (e *FakeEtcd) Disarm(_ context.Context, _ string, members []etcd.Endpoint, alarm state.Alarm) error {
	return e.called(fmt.Sprintf("disarm %s with %d", alarm, len(members)))
}

// called notes a call that does nothing else.
func (e *FakeEtcd) called(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Refuse != nil {
		return e.Refuse
	}
	e.Calls = append(e.Calls, text)
	return nil
}

func (e *FakeEtcd) Forget(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Calls = append(e.Calls, "forget "+cluster)
}
