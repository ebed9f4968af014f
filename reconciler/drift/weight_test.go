package drift_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/state"
)

// 298: what is not known to be harmless is not.
func TestWeigh(t *testing.T) {
	const etcd = `.spec.template.spec.containers[name="etcd"].`
	for _, c := range []struct {
		kind, path, live, want string
		weight                 state.Weight
	}{
		{"StatefulSet", ".metadata.labels.team", "", "", state.WeightLight},
		{"StatefulSet", ".spec.template.metadata.labels.app.kubernetes.io/instance", "", "", state.WeightLight},
		{"StatefulSet", ".spec.template.metadata.annotations.quorate.dev/template-hash", "", "", state.WeightMembers},
		{"StatefulSet", etcd + "imagePullPolicy", "Always", "IfNotPresent", state.WeightLight},
		{"StatefulSet", etcd + "resources.requests.memory", "", "", state.WeightLight},
		{"StatefulSet", etcd + "image", "mirror.example/etcd:v3.6.16", "quay.io/coreos/etcd:v3.6.16", state.WeightLight},
		{"StatefulSet", etcd + "image", "mirror.example/etcd:v3.5.35", "quay.io/coreos/etcd:v3.6.16", state.WeightMembers},
		{"StatefulSet", etcd + "image", "(not shown)", "(not shown)", state.WeightMembers},
		{"StatefulSet", etcd + "args", "", "", state.WeightMembers},
		{"StatefulSet", etcd + "readinessProbe.periodSeconds", "9", "1", state.WeightMembers},
		{"StatefulSet", etcd + `volumeMounts[mountPath="/var/lib/etcd"].name`, "", "", state.WeightMembers},
		{"StatefulSet", ".spec.template.spec.volumes[name=\"record\"]", "", "", state.WeightMembers},
		{"StatefulSet", ".spec.template.spec.tolerations", "", "", state.WeightLight},
		{"StatefulSet", ".spec.template.spec.terminationGracePeriodSeconds", "1", "60", state.WeightMembers},
		{"StatefulSet", ".spec.template.spec.somethingNew", "", "", state.WeightMembers},
		{"StatefulSet", ".spec.replicas", "2", "3", state.WeightAll},
		{"StatefulSet", ".spec.updateStrategy.type", "OnDelete", "RollingUpdate", state.WeightAll},
		{"StatefulSet", ".spec.revisionHistoryLimit", "2", "10", state.WeightLight},
		{"Service", ".spec.type", "NodePort", "ClusterIP", state.WeightLight},
		{"Service", ".spec.typeless", "", "", state.WeightMembers},
		{"Service", ".spec.selector", "", "", state.WeightMembers},
		{"Service", ".spec.publishNotReadyAddresses", "false", "true", state.WeightMembers},
		{"PodDisruptionBudget", ".spec.minAvailable", "0", "2", state.WeightMembers},
		{"PodDisruptionBudget", ".metadata.labels.team", "", "", state.WeightLight},
	} {
		if got := drift.Weigh(c.kind, drift.Drift{Changes: []drift.Change{{Path: ".metadata.labels.a"}, {Path: c.path, Live: c.live, Want: c.want}}}); got != c.weight {
			t.Errorf("%s %s: %d, want %d", c.kind, c.path, got, c.weight)
		}
	}
}

// 297: one answer that is not what was applied is enough to know; then it is tried less and less
// often. What others hold is no answer of the API server.
func TestAnsweredInVain(t *testing.T) {
	var f drift.Fights
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := drift.Drift{Fields: []string{".spec.type"}, Changes: []drift.Change{{Path: ".spec.type", Live: "NodePort", Want: "ClusterIP"}}}
	f.Answered("shop/orders", "Service/orders-client", meddling(".spec.type"), now)
	f.Answered("shop/orders", "Service/orders-client", drift.Drift{}, now)
	if fight := f.Find("shop/orders", "Service/orders-client", d); fight != nil {
		t.Fatalf("got %+v", fight)
	}
	for n, minutes := range []time.Duration{1, 2, 4, 8, 16, 16} {
		f.Answered("shop/orders", "Service/orders-client", d, now)
		fight := f.Find("shop/orders", "Service/orders-client", d)
		if fight == nil || !fight.ByAdmission() || fight.Until.Sub(now) != minutes*time.Minute || fight.Fields != ".spec.type (NodePort, wanted ClusterIP)" {
			t.Fatalf("%d: got %+v", n, fight)
		}
		now = fight.Until
	}
}

// 299: an object that is refused is tried again later each time, at once with another file, and
// keeps since when.
func TestRefused(t *testing.T) {
	var f drift.Fights
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	for n, seconds := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 960, 960} {
		f.Refused("shop/orders", "Service/a", "no", "1", now)
		r := f.Refusal("shop/orders", "Service/a", "1")
		if r == nil || r.Until.Sub(now) != seconds*time.Second || !r.Since.Equal(start) || r.Problem != "no" {
			t.Fatalf("%d: got %+v", n, r)
		}
		now = r.Until
	}
	if r := f.Refusal("shop/orders", "Service/a", "2"); r != nil {
		t.Errorf("with another file: %+v", r)
	}
	if r := f.Refused("shop/orders", "Service/a", "no", "2", now); r.Until.Sub(now) != 10*time.Second {
		t.Errorf("refused again: %+v", r)
	}
	f.Taken("shop/orders", "Service/a")
	if r := f.Refusal("shop/orders", "Service/a", "2"); r != nil {
		t.Errorf("once it is taken: %+v", r)
	}
}
