package e2e

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestScaledDuringAnUpgrade changes the number of members while a rollout is in progress:
// no member joins before it has ended, and those that leave need not be rolled (49).
func TestScaledDuringAnUpgrade(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "both")
	want := spec{version: "3.5.21", replicas: 3, soak: "5s"}
	w.create(want)
	history, sizes, first := w.recordHistory("history/"), w.watchMembers(), w.record()
	for _, tc := range []struct {
		name, version string
		replicas      int
		sizes, order  []string
	}{
		{
			"3→5", "3.5.35", 5,
			[]string{"3", "3+1", "4", "4+1", "5"},
			[]string{"restart orders-2", "restart orders-1", "restart orders-0", "end the roll", "add orders-3 as a learner", "promote orders-3", "promote orders-4"},
		},
		{
			"5→3", "3.5.21", 3,
			[]string{"5", "4", "3"},
			[]string{"restart orders-4", "remove orders-4", "remove orders-3", "restart orders-2", "restart orders-1", "restart orders-0", "end the roll"},
		},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T = t
			want.version = tc.version
			highest := fmt.Sprintf("orders-%d", len(v.record().Members)-1)
			v.commit("Upgrade to "+tc.version, want)
			from := v.mark
			v.await("the first restart", rollLimit, lab.Done("restart "+highest))
			want.replicas = tc.replicas
			v.apply(fmt.Sprintf("Scale to %d in the middle of it", tc.replicas), want)
			v.expectOrder(from, tc.order...)
			v.expectSizes(sizes, tc.sizes...)
			v.expectVersion(tc.replicas, tc.version)
			v.expectRecord(tc.replicas)
			if id := v.record().ClusterID; id != first.ClusterID {
				t.Errorf("cluster %s became %s", first.ClusterID, id)
			}
			v.checkHistory(history)
			v.expectProgress(history)
		})
		if !ok {
			return // the next step would begin elsewhere
		}
	}
}
