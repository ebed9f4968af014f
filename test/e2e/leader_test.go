package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestLeaderMovesFirst rolls a cluster three times, with its leader in another
// place each time: the leadership must have left a member before that restarts,
// so that no election is needed.
func TestLeaderMovesFirst(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "leader")
	want := spec{version: "3.5.21", replicas: 3}
	w.create(want)
	writer, pods := w.load(), w.watchPods()
	for i, tc := range []struct{ place, leader, version string }{
		{"highest", "orders-2", "3.5.35"},
		{"middle", "orders-1", "3.5.21"},
		{"lowest", "orders-0", "3.5.35"},
	} {
		ok := t.Run("64: leader on the "+tc.place+" ordinal", func(t *testing.T) {
			v := *w
			v.T = t
			v.must(v.cluster.MoveLeader(t.Context(), v.namespace, name, tc.leader))
			term, from := v.term(), v.daemon.Log.Mark()
			want.version = tc.version
			v.commit(fmt.Sprintf("Roll %d", i+1), want)
			v.awaitIdle(tc.version, rollLimit)
			v.expectRoll(pods, "orders-2", "orders-1", "orders-0")
			v.expectVersion(3, tc.version)
			moves := v.expectMoves(from, tc.leader)
			if elections := v.term() - term; elections != uint64(moves) {
				t.Errorf("the term has risen by %d with %d moves of the leadership: some member left as leader", elections, moves)
			}
		})
		if !ok {
			return // the next roll would begin elsewhere
		}
	}
	w.finishLoad(writer)
}

// term is the raft term on which all members agree.
func (w *world) term() uint64 {
	w.Helper()
	var term uint64
	for member, s := range w.status() {
		if term != 0 && s.term != term {
			w.Fatalf("%s is in term %d, another member in %d", member, s.term, term)
		}
		term = s.term
	}
	return term
}

// expectMoves follows the leadership through the log: no member may restart
// while it leads. It returns how often the leadership moved.
func (w *world) expectMoves(from int, leader string) (moves int) {
	w.Helper()
	for _, l := range w.daemon.Log.Lines(from) {
		switch {
		case lab.Done("move the leader " + leader + " → ")(l):
			leader = strings.TrimPrefix(l.Action, "move the leader "+leader+" → ")
			moves++
		case lab.Step("restart " + leader + " ")(l):
			w.Errorf("%s restarted although it led: %s", leader, l.Raw)
		}
	}
	if moves == 0 {
		w.Error("the leadership was never moved")
	}
	return moves
}
