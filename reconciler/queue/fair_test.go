package queue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
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
