package queue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/state"
)

// order is a handler that notes which key came when.
type order struct{ keys []string }

func (o *order) Pass(_ context.Context, key string) (time.Duration, bool, error) {
	o.keys = append(o.keys, key)
	return time.Hour, true, nil
}

func (o *order) Failed(string, error) {}
func (o *order) Succeeded(string)     {}

// 485: a namespace with many clusters keeps no other waiting behind them, and what is added twice
// has one pass, in its order.
func TestNamespacesTakeTurns(t *testing.T) {
	q, o := queue.New(state.MinRequeue), &order{}
	for i := range 1000 {
		q.Add(fmt.Sprintf("crowd/%d", i))
	}
	for _, key := range []string{"shop/orders", "EtcdBackup shop/nightly", "EtcdBackup crowd/nightly", "bank/ledger", "shop/orders", "crowd/0"} {
		q.Add(key)
	}
	want := []string{"crowd/0", "shop/orders", "bank/ledger", "crowd/1", "EtcdBackup shop/nightly"}
	for i := 2; i < 1000; i++ {
		want = append(want, fmt.Sprintf("crowd/%d", i))
	}
	want = append(want, "EtcdBackup crowd/nightly")
	if q.Len() != len(want) {
		t.Errorf("%d keys wait", q.Len())
	}
	for q.Len() > 0 {
		q.Next(t.Context(), o)
	}
	if !slices.Equal(o.keys, want) {
		t.Errorf("first came %q, last %q", o.keys[:6], o.keys[len(o.keys)-2:])
	}
	q.Add("shop/orders") // the namespace is empty, and is known again
	if q.Next(t.Context(), o); o.keys[len(o.keys)-1] != "shop/orders" {
		t.Errorf("then came %q", o.keys[len(o.keys)-1])
	}
	q.ShutDown()
}

// due is a handler whose keys are due again after a second.
type due struct{ order }

func (d *due) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	_, _, _ = d.order.Pass(ctx, key)
	return time.Second, true, nil
}

// A commit, or a change in Kubernetes, waits for one of those whose time has come, however many these
// are in its own namespace; and neither keeps the other waiting for more than one pass.
func TestWhatHasHappenedDoesNotWaitForWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, d := queue.New(state.MinRequeue), &due{}
		crowd := func(i int) string { return fmt.Sprintf("shop/%03d", i) }
		for i := range 300 {
			q.Add(crowd(i))
		}
		for range 300 {
			q.Next(t.Context(), d)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if q.Len() != 300 {
			t.Fatalf("%d are due", q.Len())
		}
		d.keys = nil
		q.Next(t.Context(), d)
		for _, key := range []string{"shop/orders", crowd(250), "shop/users"} { // the second one is due as well
			q.Wake(key)
		}
		for q.Len() > 0 {
			q.Next(t.Context(), d)
		}
		var at []int
		for _, key := range []string{"shop/orders", crowd(250), "shop/users"} {
			at = append(at, slices.Index(d.keys, key))
		}
		if !slices.Equal(at, []int{1, 3, 5}) {
			t.Errorf("what has happened came at %v of %d", at, len(d.keys))
		}
		for i := range 300 {
			if n := len(slices.DeleteFunc(slices.Clone(d.keys), func(key string) bool { return key != crowd(i) })); n != 1 {
				t.Errorf("%s had %d passes", crowd(i), n)
			}
		}
		q.ShutDown()
	})
}
