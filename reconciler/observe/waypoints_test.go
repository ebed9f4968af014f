package observe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// What Git asks of the last release, one on the way may not know: there it is left
// out. The last stop renders as ever.
func TestAPassedReleaseTakesWhatItKnows(t *testing.T) {
	c := clustertest.InGit(clustertest.ToVersion("3.7.3"), func(c *schema.EtcdCluster) {
		c.Spec.Etcd.Options = map[string]string{"feature-gates": "FastLeaseKeepAlive=true", "heartbeat-interval": "200"}
	})
	v := &observe.View{Cluster: *c}
	stop := state.Waypoint{Version: "3.5.35"}
	m, err := manifests.Render(v.ClusterAt(stop), v.OptionsAt(stop, reconcilertest.OrdersOptions()))
	if err != nil {
		t.Fatal(err)
	}
	args := m.StatefulSet.Spec.Template.Spec.Containers[0].Args
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "FastLeaseKeepAlive") }) || !slices.Contains(args, "--heartbeat-interval=200") {
		t.Errorf("%q", args)
	}
	if _, err := manifests.Render(v.ClusterAt(stop), reconcilertest.OrdersOptions()); err == nil {
		t.Error("a release that is no stop on the way takes what it does not know")
	}
}
