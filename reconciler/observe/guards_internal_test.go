package observe

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/naming"
)

// Pods that the StatefulSet has not replaced yet run its current revision: while it
// has not seen its newest template either, no revision but the recorded one counts.
func TestCurrentTemplateIsThatOfThePods(t *testing.T) {
	revision := func(hash, version string) *appsv1.ControllerRevision {
		var set appsv1.StatefulSet
		set.Spec.Template.Annotations = map[string]string{naming.AnnotationTemplateHash: hash, naming.AnnotationVersion: version}
		raw, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: raw}}
	}
	live := liveCluster{revisions: map[string]*appsv1.ControllerRevision{
		"old": revision("h1", "3.6.12"), "new": revision("h2", "3.6.16"), "broken": {Data: runtime.RawExtension{Raw: []byte("{")}},
	}}
	for name, c := range map[string]struct {
		current, update string
		seen            int64
		hash, version   string
	}{
		"done":                            {"new", "new", 2, "h3", "3.6.17"},
		"rolling":                         {"old", "new", 2, "h1", "3.6.12"},
		"the newest template is not seen": {"old", "old", 1, "h1", "3.6.12"},
		"a revision that is gone":         {"gone", "new", 2, "", ""},
		"a revision nobody can read":      {"broken", "new", 2, "", ""},
	} {
		v := &View{Cluster: desired.Cluster{EtcdCluster: clustertest.Orders()}, Set: &appsv1.StatefulSet{}}
		v.Set.Generation, v.Set.Status.ObservedGeneration = 2, c.seen
		v.Set.Status.CurrentRevision, v.Set.Status.UpdateRevision = c.current, c.update
		v.Set.Spec.Template.Annotations = map[string]string{naming.AnnotationTemplateHash: "h3", naming.AnnotationVersion: "3.6.17"}
		v.describeSet(gathered{liveCluster: live})
		if s := v.Observed.Set; s.CurrentTemplate != c.hash || s.CurrentVersion != c.version {
			t.Errorf("%s: %s of %s", name, s.CurrentTemplate, s.CurrentVersion)
		}
	}
}

func TestDescribeDrift(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for want, d := range map[string]drift.Drift{
		"spec.type, spec.ports":         {Fields: []string{"spec.type", "spec.ports"}},
		"spec.type, changed by kubectl": {Fields: []string{"spec.type"}, Manager: "kubectl", Time: noon},
	} {
		if got := drift.Describe(d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
