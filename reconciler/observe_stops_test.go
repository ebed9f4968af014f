package reconciler

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// A stop is the file with the version of the stop, and what belongs to it.
func TestClusterAtAStop(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	pinned := func(c *schema.EtcdCluster) { c.Spec.Image.Digest = "sha256:" + strings.Repeat("b", 64) }
	live := &appsv1.StatefulSet{}
	live.Spec.Template.Annotations = map[string]string{AnnotationVersion: "3.6.16"}
	live.Spec.Template.Spec.Containers = []corev1.Container{{Name: "logs", Image: "example.com/logs:1@sha256:" + strings.Repeat("c", 64)}, {Name: EtcdContainer, Image: "quay.io/coreos/etcd:v3.6.16@" + digest}}
	for _, c := range []struct {
		name    string
		set     *appsv1.StatefulSet
		stop    plan.Stop
		digest  string
		flag    string
		passing bool
	}{
		{"what Git says", live, plan.Stop{Version: "3.7.3"}, "sha256:" + strings.Repeat("b", 64), "1000", false},
		{"another release on the way", live, plan.Stop{Version: "3.5.35"}, "", "1000", true},
		{"the release that runs, once more", live, plan.Stop{Version: "3.6.16", Flush: true}, digest, "1", true},
		{"nothing runs", nil, plan.Stop{Version: "3.6.16", Flush: true}, "", "1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &view{cluster: *inGit(toVersion("3.7.3"), pinned), set: c.set}
			v.cluster.Spec.Etcd.Options = map[string]string{"snapshot-count": "1000", "max-txn-ops": "256"}
			got := v.clusterAt(c.stop)
			if got.Spec.Version != c.stop.Version || got.Spec.Image.Digest != c.digest || got.Spec.Etcd.Options["snapshot-count"] != c.flag || got.Spec.Etcd.Options["max-txn-ops"] != "256" {
				t.Errorf("%+v", got.Spec)
			}
			if o := v.optionsAt(c.stop, RenderOptions{}); o.Passing != c.passing {
				t.Errorf("options %+v", o)
			}
			if v.cluster.Spec.Version != "3.7.3" || v.cluster.Spec.Etcd.Options["snapshot-count"] != "1000" {
				t.Error("the file itself was changed")
			}
		})
	}
}

// What Git asks of the last release, one on the way may not know: there it is left
// out. The last stop renders as ever.
func TestAPassedReleaseTakesWhatItKnows(t *testing.T) {
	c := inGit(toVersion("3.7.3"), func(c *schema.EtcdCluster) {
		c.Spec.Etcd.Options = map[string]string{"feature-gates": "FastLeaseKeepAlive=true", "heartbeat-interval": "200"}
	})
	v := &view{cluster: *c}
	stop := plan.Stop{Version: "3.5.35"}
	m, err := Render(v.clusterAt(stop), v.optionsAt(stop, ordersOptions()))
	if err != nil {
		t.Fatal(err)
	}
	args := m.StatefulSet.Spec.Template.Spec.Containers[0].Args
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "FastLeaseKeepAlive") }) || !slices.Contains(args, "--heartbeat-interval=200") {
		t.Errorf("%q", args)
	}
	if _, err := Render(v.clusterAt(stop), ordersOptions()); err == nil {
		t.Error("a release that is no stop on the way takes what it does not know")
	}
}
