package e2e

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/test/lab"
)

// TestMemberLostMeanwhile loses a member while quorate is not running, and
// has it end between two steps of a repair. It finds out what is the case, and makes
// the cluster whole, while clients write.
func TestMemberLostMeanwhile(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "meanwhile")
	want := spec{version: "3.6.16", replicas: 3, more: soonRepaired}
	w.create(want)
	history, sizes := w.recordHistory("history/"), w.watchMembers()
	for _, tc := range []struct {
		name, member string
		lose         func(w *world, member string)
	}{
		{"52: quorate is down while a volume is lost", "orders-1", (*world).loseVolumeUnseen},
		{"89: quorate is killed between the removal and the addition", "orders-2", (*world).killBetween},
		{"94: a member that was removed manually comes back", "orders-0", (*world).removeByHand},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T, v.mark = t, w.daemon.Log.Mark()
			pods, members := v.uids(), v.record().Members
			tc.lose(&v, tc.member)
			v.awaitReplaced(tc.member, members, sizes)
			v.expectNoOther(pods, v.uids(), tc.member)
			v.expectVersion(3, want.version)
			v.expectRecord(3)
			v.checkHistory(history)
			v.expectProgress(history)
		})
		if !ok {
			return // the next loss would meet another cluster
		}
	}
}

// loseVolumeUnseen loses a volume while quorate is down. The guard does not need it:
// the member stays away, and the others serve.
func (w *world) loseVolumeUnseen(member string) {
	w.Helper()
	w.daemon.Kill()
	w.loseVolume(member)
	w.awaitGuarded(member)
	w.must(w.daemon.Start())
}

// killBetween loses a volume, and kills quorate as soon as the member is removed.
func (w *world) killBetween(member string) {
	w.Helper()
	w.loseVolume(member)
	w.await("the removal", rollLimit, lab.Done("remove "+member+" from the members"))
	w.daemon.Kill()
	if begun := w.lines(0, lab.Step("add "+member+" as a learner")); len(begun) > 0 {
		w.Errorf("it was killed too late: %s", begun[0].Raw)
	}
	w.must(w.daemon.Start())
}

// removeByHand removes a member as a person with etcdctl does. Its pod comes back with
// the data of one that is no member any more, and never serves; quorate, which did not
// do that, reports it and waits for a person to give up the data.
func (w *world) removeByHand(member string) {
	w.Helper()
	members := w.record().Members
	id, err := strconv.ParseUint(members[member], 16, 64)
	w.must(err)
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	// etcd refuses as long as two members have not been connected for five seconds.
	w.eventually("etcd to remove "+member, time.Minute, func(ctx context.Context) (bool, error) {
		_, err := client.MemberRemove(ctx, id)
		if errors.Is(err, rpctypes.ErrUnhealthy) {
			return false, nil
		}
		return err == nil, err
	})
	w.deletePod(member)
	from := w.mark
	hold := w.awaitHold("Unhealthy", rollLimit, "the member list", member, "is not the recorded one")
	w.Logf("quorate says: %s", hold.Hold())
	w.expectNothingDone(from, members)
	w.loseVolume(member)
}
