package report

import (
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/state"
)

// 243: a pass over a cluster at rest allocates nothing for what it measures.
func TestMeasuringAtRestAllocatesNothing(t *testing.T) {
	v := &observe.View{Cluster: desired.Cluster{EtcdCluster: clustertest.Orders()}, Observed: state.Observed{Rounds: []state.Round{{Members: []state.Member{
		{ID: "a0", Name: "orders-0", DBSize: 1 << 20}, {ID: "a1", Name: "orders-1", DBSize: 1 << 20}, {ID: "a2", Name: "orders-2", DBSize: 1 << 20},
	}}}}}
	members, key := membersOf(v), v.Cluster.Key()
	var b Board
	b.measure(key, v, members)
	if n := testing.AllocsPerRun(100, func() { b.measure(key, v, members) }); n > 0 {
		t.Errorf("measuring what is known allocates %v times", n)
	}
	if got := b.Measured(key); len(got.Members) != 3 {
		t.Errorf("measured %+v", got)
	}
}
