package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What etcd answers to a change of its member list that it does not apply.
var (
	// ErrTooManyLearners says that another member is still being added.
	ErrTooManyLearners = errors.New("etcd takes no further learner while another one is in its member list")
	// ErrUnhealthyCluster says that etcd itself finds too few of its members in
	// touch for a change of the list.
	ErrUnhealthyCluster = errors.New("etcd refuses to change its member list while members are out of touch")
	// ErrLearnerNotReady says that the learner has not caught up yet.
	ErrLearnerNotReady = errors.New("the learner has not caught up with the leader yet")
	// ErrOtherCluster means that the member that answers is not of the expected cluster.
	ErrOtherCluster = errors.New("the members that answer belong to another cluster")
	// ErrIsVoter says that a member is none of the learners.
	ErrIsVoter = errors.New("the member is a voter")
	// ErrNotAMember says that no member has the ID.
	ErrNotAMember = errors.New("no such member is in the member list")
)

// errIDUsed says that a member of that address was added and removed in this very
// second.
var errIDUsed = errors.New("etcd would give it the ID of a member that was just removed; a second later it is another one")

// memberList is a member list, and the connection over which it came.
type memberList struct {
	client  *Conn
	members []*pb.Member
}

func (l memberList) byID(id uint64) *pb.Member {
	for _, m := range l.members {
		if m.ID == id {
			return m
		}
	}
	return nil
}

func (l memberList) byPeerURL(url string) *pb.Member {
	for _, m := range l.members {
		if slices.Contains(m.PeerURLs, url) {
			return m
		}
	}
	return nil
}

// membersToAsk returns which members to ask for a change of a member list.
type membersToAsk struct {
	cluster, clusterID string
	endpoints          []Endpoint
	// except is the ID of a member that must not be asked, 0 for none: one that
	// is removed hangs up before it answers.
	except uint64
}

// listMembers is the list as the first member has it that answers. Before, it
// reads through the quorum: the lists of etcd 3.4 are what the member itself
// knows, and after that read it knows all that was agreed on before.
func (c *Client) listMembers(ctx context.Context, ask membersToAsk) (memberList, error) {
	problems := errors.New("no member could be asked")
	for i, e := range ask.endpoints {
		list, err := c.listThrough(ctx, ask, e)
		if err == nil || errors.Is(err, ErrOtherCluster) {
			return list, err
		}
		if i == 0 {
			problems = err
			continue
		}
		problems = fmt.Errorf("%w; %w", problems, err)
	}
	return memberList{}, fmt.Errorf("list the members: %w", problems)
}

func (c *Client) listThrough(ctx context.Context, ask membersToAsk, e Endpoint) (memberList, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := c.client(ask.cluster, e)
	if err != nil {
		return memberList{}, err
	}
	if _, err := m.etcd.Get(ctx, probeKey, clientv3.WithCountOnly()); err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) {
		return memberList{}, fmt.Errorf("%s: %w", e.Member, plainError(err))
	}
	list, err := m.etcd.MemberList(ctx)
	switch {
	case err != nil:
		return memberList{}, fmt.Errorf("%s: %w", e.Member, plainError(err))
	case hexID(list.Header.ClusterId) != ask.clusterID:
		return memberList{}, fmt.Errorf("%w: %s is of cluster %s and not of %s", ErrOtherCluster, e.Member, hexID(list.Header.ClusterId), ask.clusterID)
	case list.Header.MemberId == ask.except:
		return memberList{}, fmt.Errorf("%s: it is the member that is to go", e.Member)
	}
	if err := checkMembers(list.Members); err != nil {
		return memberList{}, fmt.Errorf("%s: %w", e.Member, err)
	}
	return memberList{client: m, members: list.Members}, nil
}

// changeMembers asks for one change of the member list, unless done says that
// the list is as wanted already. What counts in the end is the list: an answer may
// have been lost in transit.
func (c *Client) changeMembers(ctx context.Context, ask membersToAsk, done func(memberList) (bool, error), change func(context.Context, *clientv3.Client) error) error {
	list, err := c.listMembers(ctx, ask)
	if err != nil {
		return err
	}
	if ok, err := done(list); ok || err != nil {
		return err
	}
	answered := sendChange(ctx, list.client.etcd, change)
	if list, err = c.listMembers(ctx, ask); err != nil {
		return errors.Join(answered, fmt.Errorf("whether it was applied is unknown until the members answer: %w", err))
	}
	switch ok, err := done(list); {
	case ok:
		return nil
	case answered != nil:
		return answered
	case err != nil:
		return err
	}
	return errors.New("etcd said yes, but its member list does not show it yet")
}

// sendChange bounds the change and tells the refusals apart.
func sendChange(ctx context.Context, client *clientv3.Client, change func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	err := change(ctx, client)
	for refusal, known := range map[error]error{
		rpctypes.ErrTooManyLearners:        ErrTooManyLearners,
		rpctypes.ErrUnhealthy:              ErrUnhealthyCluster,
		rpctypes.ErrMemberNotEnoughStarted: ErrUnhealthyCluster,
		rpctypes.ErrMemberLearnerNotReady:  ErrLearnerNotReady,
		rpctypes.ErrMemberNotFound:         ErrNotAMember,
	} {
		if errors.Is(err, refusal) {
			return known
		}
	}
	if err != nil {
		return plainError(err)
	}
	return nil
}

// AddLearner adds the member with the peer URL as a learner, and returns its
// ID in hexadecimal. Errors: ErrTooManyLearners, ErrUnhealthyCluster, and
// ErrIsVoter where the address is taken.
func (c *Client) AddLearner(ctx context.Context, cluster, clusterID string, members []Endpoint, peerURL string) (string, error) {
	var id string
	done := func(list memberList) (bool, error) {
		switch m := list.byPeerURL(peerURL); {
		case m == nil:
			return false, nil
		case !m.IsLearner:
			return false, fmt.Errorf("%w and has this address: %s must be removed first", ErrIsVoter, hexID(m.ID))
		default:
			id = hexID(m.ID)
			return true, nil
		}
	}
	err := c.changeMembers(ctx, membersToAsk{cluster: cluster, clusterID: clusterID, endpoints: members}, done,
		func(ctx context.Context, client *clientv3.Client) error {
			_, err := client.MemberAddAsLearner(ctx, []string{peerURL})
			return err
		})
	if errors.Is(err, ErrNotAMember) {
		// Measured: an ID is made of the address and the time in seconds, and that
		// of a member that was removed is never given again.
		err = errIDUsed
	}
	if err != nil {
		return "", fmt.Errorf("add the learner %s: %w", peerURL, err)
	}
	return id, nil
}

// PromoteMember makes the learner with the ID a voter. The leader is asked: another member
// hands the request on to it without its user, and with authentication on the leader refuses that
// until the time is up (measured on 3.7.3). Errors: ErrLearnerNotReady, ErrNotAMember,
// ErrUnhealthyCluster.
func (c *Client) PromoteMember(ctx context.Context, cluster, clusterID string, members []Endpoint, id string) error {
	number, err := memberNumber(id)
	if err != nil {
		return fmt.Errorf("promote member %s: %w", id, err)
	}
	done := func(list memberList) (bool, error) {
		m := list.byID(number)
		if m == nil {
			return false, ErrNotAMember
		}
		return !m.IsLearner, nil
	}
	err = c.changeMembers(ctx, membersToAsk{cluster: cluster, clusterID: clusterID, endpoints: c.leaderFirst(ctx, cluster, members)}, done,
		func(ctx context.Context, client *clientv3.Client) error {
			_, err := client.MemberPromote(ctx, number)
			return err
		})
	if err != nil {
		return fmt.Errorf("promote member %s: %w", id, err)
	}
	return nil
}

// leaderFirst are the members, the one first that says that it leads.
func (c *Client) leaderFirst(ctx context.Context, cluster string, members []Endpoint) []Endpoint {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	leads := make([]bool, len(members))
	eachMember(len(members), func(i int) {
		m, err := c.client(cluster, members[i])
		if err != nil {
			return
		}
		s, err := m.maintenance().Status(ctx, &pb.StatusRequest{})
		leads[i] = err == nil && s.Leader != 0 && s.Leader == s.Header.MemberId
	})
	if i := slices.Index(leads, true); i > 0 {
		return slices.Concat(members[i:i+1], members[:i], members[i+1:])
	}
	return members
}

// MoveMember has the member list say at which URLs the member with the ID is reached by the others.
// They are those of one member, sorted. Nothing but the list changes. Errors: ErrNotAMember,
// ErrUnhealthyCluster.
func (c *Client) MoveMember(ctx context.Context, cluster, clusterID string, members []Endpoint, id string, peerURLs []string) error {
	number, err := memberNumber(id)
	if err != nil {
		return fmt.Errorf("move member %s: %w", id, err)
	}
	done := func(list memberList) (bool, error) {
		m := list.byID(number)
		if m == nil {
			return false, ErrNotAMember
		}
		return slices.Equal(m.PeerURLs, peerURLs), nil
	}
	ask := membersToAsk{cluster: cluster, clusterID: clusterID, endpoints: c.leaderFirst(ctx, cluster, members)}
	err = c.changeMembers(ctx, ask, done, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberUpdate(ctx, number, peerURLs)
		return err
	})
	if err != nil {
		return fmt.Errorf("move member %s to %s: %w", id, strings.Join(peerURLs, " and "), err)
	}
	return nil
}

// RemoveMember removes the member with the ID; one that is gone is success.
// The member itself is not asked, and so the last voter is never removed.
// Errors: ErrUnhealthyCluster.
func (c *Client) RemoveMember(ctx context.Context, cluster, clusterID string, members []Endpoint, id string) error {
	number, err := memberNumber(id)
	if err != nil {
		return fmt.Errorf("remove member %s: %w", id, err)
	}
	done := func(list memberList) (bool, error) {
		return list.byID(number) == nil, nil
	}
	ask := membersToAsk{cluster: cluster, clusterID: clusterID, endpoints: members, except: number}
	err = c.changeMembers(ctx, ask, done, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, number)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove member %s: %w", id, err)
	}
	return nil
}

// RemoveLearner removes the learner with the ID, or with the peer URL where the
// ID is empty; none is success. Errors: ErrIsVoter, ErrUnhealthyCluster.
func (c *Client) RemoveLearner(ctx context.Context, cluster, clusterID string, members []Endpoint, id, peerURL string) error {
	number, err := memberNumber(cmp.Or(id, "1"))
	if err != nil {
		return fmt.Errorf("remove learner %s: %w", id, err)
	}
	done := func(list memberList) (bool, error) {
		m := list.byID(number)
		if id == "" {
			m = list.byPeerURL(peerURL)
		}
		switch {
		case m == nil:
			return true, nil
		case !m.IsLearner:
			return false, ErrIsVoter
		}
		number = m.ID
		return false, nil
	}
	err = c.changeMembers(ctx, membersToAsk{cluster: cluster, clusterID: clusterID, endpoints: members}, done,
		func(ctx context.Context, client *clientv3.Client) error {
			_, err := client.MemberRemove(ctx, number)
			return err
		})
	if err != nil {
		return fmt.Errorf("remove learner %s: %w", cmp.Or(id, peerURL), err)
	}
	return nil
}

// memberNumber is a member ID out of its hexadecimal form.
func memberNumber(id string) (uint64, error) {
	n, err := strconv.ParseUint(id, 16, 64)
	if err == nil && n == 0 {
		err = errors.New("0 is no member's ID")
	}
	return n, err
}
