package observe

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// A stop is the file with the version of the stop, and what belongs to it.
func TestClusterAtAStop(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	pinned := func(c *schema.EtcdCluster) { c.Spec.Image.Digest = "sha256:" + strings.Repeat("b", 64) }
	live := &appsv1.StatefulSet{}
	live.Spec.Template.Annotations = map[string]string{naming.AnnotationVersion: "3.6.16"}
	live.Spec.Template.Spec.Containers = []corev1.Container{{Name: "logs", Image: "example.com/logs:1@sha256:" + strings.Repeat("c", 64)}, {Name: naming.ContainerEtcd, Image: "quay.io/coreos/etcd:v3.6.16@" + digest}}
	for _, c := range []struct {
		name    string
		set     *appsv1.StatefulSet
		stop    state.Waypoint
		digest  string
		flag    string
		passing bool
	}{
		{"what Git says", live, state.Waypoint{Version: "3.7.3"}, "sha256:" + strings.Repeat("b", 64), "1000", false},
		{"another release on the way", live, state.Waypoint{Version: "3.5.35"}, "", "1000", true},
		{"the release that runs, once more", live, state.Waypoint{Version: "3.6.16", Flush: true}, digest, "1", true},
		{"nothing runs", nil, state.Waypoint{Version: "3.6.16", Flush: true}, "", "1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &View{Cluster: *clustertest.InGit(clustertest.ToVersion("3.7.3"), pinned), Set: c.set}
			v.Cluster.Spec.Etcd.Options = map[string]string{"snapshot-count": "1000", "max-txn-ops": "256"}
			got := v.clusterAt(c.stop)
			if got.Spec.Version != c.stop.Version || got.Spec.Image.Digest != c.digest || got.Spec.Etcd.Options["snapshot-count"] != c.flag || got.Spec.Etcd.Options["max-txn-ops"] != "256" {
				t.Errorf("%+v", got.Spec)
			}
			if o := v.optionsAt(c.stop, manifests.Options{}); o.Passing != c.passing {
				t.Errorf("options %+v", o)
			}
			if v.Cluster.Spec.Version != "3.7.3" || v.Cluster.Spec.Etcd.Options["snapshot-count"] != "1000" {
				t.Error("the file itself was changed")
			}
		})
	}
}

// What Git asks of the last release, one on the way may not know: there it is left
// out. The last stop renders as ever.
func TestAPassedReleaseTakesWhatItKnows(t *testing.T) {
	c := clustertest.InGit(clustertest.ToVersion("3.7.3"), func(c *schema.EtcdCluster) {
		c.Spec.Etcd.Options = map[string]string{"feature-gates": "FastLeaseKeepAlive=true", "heartbeat-interval": "200"}
	})
	v := &View{Cluster: *c}
	stop, options := state.Waypoint{Version: "3.5.35"}, manifests.Options{GuardImage: "ghcr.io/quorate/quorate:v0.1.0", ClusterDomain: "cluster.local"}
	m, err := manifests.Render(v.clusterAt(stop), v.optionsAt(stop, options))
	if err != nil {
		t.Fatal(err)
	}
	args := m.StatefulSet.Spec.Template.Spec.Containers[0].Args
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "FastLeaseKeepAlive") }) || !slices.Contains(args, "--heartbeat-interval=200") {
		t.Errorf("%q", args)
	}
	if _, err := manifests.Render(v.clusterAt(stop), options); err == nil {
		t.Error("a release that is no stop on the way takes what it does not know")
	}
}
