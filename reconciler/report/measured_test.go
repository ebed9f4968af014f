package report_test

import (
	"reflect"
	"testing"

	"github.com/quorate/quorate/reconciler/desired"
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
