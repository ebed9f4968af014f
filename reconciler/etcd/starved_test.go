package etcd

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/starvation/starvationtest"
)

// A member that answers after a while is not silent because quorate itself stood still meanwhile, as it
// does when its CPU limit is used up: only time in which quorate could have taken the answer counts.
func TestAStandstillOfQuorateIsNoSilenceOfAMember(t *testing.T) {
	starvationtest.Watch(t)
	client, member := startAnswering(t, &answering{slow: askTimeout + 2*time.Second})
	time.AfterFunc(500*time.Millisecond, func() { starvationtest.StandStill(t, askTimeout+500*time.Millisecond) })
	if a := client.askOne(t.Context(), "shop/orders", member, (*answer).askStatus); a.problem != "" {
		t.Errorf("a member that answers after 5s, of which quorate stood still for 3.5s, has the problem %q", a.problem)
	}
}
