package observe_test

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// 5: a change that Kubernetes or the certificates do not take holds the cluster,
// and says which field it is.
func TestAChangeOfTheDomainHolds(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.org" })
		w.WantHold(decision.Refused, "immutable", "spec.network.clusterDomain (to example.org) cannot be changed on a live cluster: ")
		if writes := w.API.Writes(); len(writes) > 0 {
			t.Errorf("wrote %q", writes)
		}
	})
}
