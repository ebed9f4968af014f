package e2e

import (
	"maps"
	"testing"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// TestClaimsThatGo deletes the volume claims of all members under them, as a person with
// kubectl does, and commits what would restart them: nothing is stopped, and nothing is
// lost. The way out that the hold names leads to three members on claims that stay.
func TestClaimsThatGo(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "claims")
	want := spec{version: "3.6.16", replicas: 3, more: soonRepaired}
	w.create(want)
	history := w.recordHistory("history/")
	before := w.uids()

	// 277: told at rest.
	w.mark = w.daemon.Log.Mark()
	w.kubectl("delete", "pvc", "--wait=false", "data-orders-0", "data-orders-1", "data-orders-2")
	w.awaitHold("Unhealthy", holdLimit, "is being deleted: the data of orders-0 goes with its pod", "2 members more")

	// 277, 278: neither a roll nor a hibernation takes them. The hold is the same one, so
	// that it is not told again.
	other := want
	other.more += "  etcd:\n    options: {heartbeat-interval: \"150\"}\n"
	asleep := want
	asleep.state = "Hibernated"
	for message, s := range map[string]spec{"Change an option": other, "Hibernate": asleep, "Take it back": want} {
		w.commit(message, s)
		time.Sleep(2 * quiet)
		if steps := w.lines(w.mark, lab.Step()); len(steps) > 0 {
			t.Fatalf("%s: quorate acted while claims go: %s", message, steps[0].Raw)
		}
	}
	w.commit("Take all back", want)
	time.Sleep(quiet)
	if after := w.uids(); !maps.Equal(before, after) {
		t.Fatalf("pods were %v and are %v", before, after)
	}
	w.expectProgress(history)

	for _, member := range []string{"orders-0", "orders-1", "orders-2"} {
		w.mark = w.daemon.Log.Mark()
		members := w.record().Members
		w.deletePod(member)
		w.eventuallyReplaced(member, members)
	}
	w.commit("Change an option", other)
	w.awaitDone(rollLimit)
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	w.checkHistory(history)
	w.expectProgress(history)
}

// eventuallyReplaced waits until a member has made way for another one of its name. The
// cluster is not up to date as long as another claim goes.
func (w *world) eventuallyReplaced(member string, members map[string]string) {
	w.Helper()
	w.await(member+" to be a member again", changeLimit, lab.Done("record "+member+" as a member"))
	if now := w.record().Members; len(now) != 3 || now[member] == members[member] {
		w.Errorf("members were %v and are %v", members, now)
	}
	w.expectServing(3)
}
