package report_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 243: what a pass measures of members is known to who asks, and no news: a database that
// grows changes neither the status nor its revision.
func TestSizesOfMembersAreMeasuredAndNoNews(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		var size int64 = 3 << 20
		w.Etcd.Change = func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].DBSize, r.Members[i].Quota = 0, 0
			}
			r.Members[0].DBSize, r.Members[0].DBInUse, r.Members[0].Quota = size, 1<<20, 8<<20
			r.Members[1].DBSize, r.Members[1].DBInUse = 1<<20, 1<<20
		}
		w.MustPass()
		before, _ := w.R.Statuses()
		revision := w.R.StatusRevision()
		size = 4 << 20
		w.MustPass()
		want := schema.Measured{Members: []schema.MemberDatabase{
			{Name: "orders-0", Size: 4 << 20, InUse: 1 << 20, Quota: 8 << 20}, {Name: "orders-1", Size: 1 << 20, InUse: 1 << 20, Quota: 2 << 30},
		}}
		if got := w.R.Measured("shop", "orders"); !reflect.DeepEqual(got, want) {
			t.Errorf("measured %+v, want %+v", got, want)
		}
		if after, _ := w.R.Statuses(); !reflect.DeepEqual(before, after) || w.R.StatusRevision() != revision {
			t.Errorf("a database that grows is news: %+v", after)
		}
		w.R.Reporter.Forget("shop/orders", w.Wish)
		if got := w.R.Measured("shop", "orders"); got.Members != nil {
			t.Errorf("a cluster that is gone has %+v", got)
		}
	})
}

// 244: while a rollout lasts it is known how many members are done.
func TestARolloutIsCounted(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if got := w.R.Measured("shop", "orders").Rollout; got != nil {
			t.Errorf("at rest there is %+v", got)
		}
		w.Commit(clustertest.SetVersion("3.6.16"))
		seen := map[string]bool{}
		w.Until(func(decision.Plan) bool {
			r := w.R.Measured("shop", "orders").Rollout
			if r != nil {
				seen[fmt.Sprintf("%d of %d", r.Updated, r.Members)] = true
			}
			return len(seen) > 0 && r == nil
		})
		for _, want := range []string{"0 of 3", "1 of 3", "2 of 3"} {
			if !seen[want] {
				t.Errorf("%s was not seen: %v", want, seen)
			}
		}
	}, clustertest.SetVersion("3.6.12"))
}
