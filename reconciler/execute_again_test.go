package reconciler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// away lets the API server answer no question about one resource.
func away(w *world, resource string) {
	w.api.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errAway })
}

// I3: each fact that the second decision rests on is read anew, and one that cannot
// be had is an error: nothing is decided on half of them.
func TestTheSecondDecisionNeedsEveryFact(t *testing.T) {
	roll := action.StartRoll{Partition: 3}
	for name, test := range map[string]struct {
		action action.Action
		behind func(w *world, v *view)
		want   string
	}{
		"the record":      {roll, func(w *world, _ *view) { away(w, "configmaps") }, "read the record: "},
		"the StatefulSet": {roll, func(w *world, _ *view) { away(w, "statefulsets") }, "read the StatefulSet: "},
		"the pods":        {roll, func(w *world, _ *view) { away(w, "pods") }, "list the pods: "},
		"what is rendered": {roll, func(_ *world, v *view) {
			v.cluster.Spec.Etcd.Options = map[string]string{"no-such-flag": "1"}
			v.cluster.Digest = ""
		}, "no-such-flag"},
		"a node": {roll, func(w *world, _ *view) {
			ill(w, w.pod("orders-1").CreationTimestamp.Time, func(*corev1.Pod) {})
			tie(w, corev1.ClaimBound, "host-1")
			away(w, "nodes")
		}, "look for the node of orders-1: "},
		"the restore": {roll, func(w *world, _ *view) { asleep(w); away(w, "jobs") }, "read Job "},
		"a Service":   {action.ApplyObject{ObjectKind: "Service", Name: "orders-client"}, func(w *world, _ *view) { away(w, "services") }, "read Service orders-client: "},
		"the budget":  {action.ApplyObject{ObjectKind: "PodDisruptionBudget", Name: "orders"}, func(w *world, _ *view) { away(w, "poddisruptionbudgets") }, "read PodDisruptionBudget orders: "},
	} {
		t.Run(name, func(t *testing.T) {
			formed(t, func(w *world) {
				v := w.look()
				test.behind(w, v)
				if _, err := w.r.Again(w.Context(), v, test.action); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			})
		})
	}
}

// What is about to be applied is compared as the API server has it: the caches may
// not know yet that it was.
func TestObjectsAreComparedPastTheCaches(t *testing.T) {
	formed(t, func(w *world) {
		for _, a := range []action.ApplyObject{{ObjectKind: "Service", Name: "orders-client"}, {ObjectKind: "PodDisruptionBudget", Name: "orders"}} {
			v := w.look()
			live, err := w.r.observer.readLive(w.Context(), w.wish)
			if err != nil {
				t.Fatal(err)
			}
			live.services, live.budget = map[string]*corev1.Service{}, nil
			if err := w.r.observer.compareAgain(w.Context(), v, live, a); err != nil {
				t.Fatal(err)
			}
			for _, o := range v.observed.Objects {
				if asked := o.Kind == a.ObjectKind && o.Name == a.Name; asked != (o.State == state.ObjectInSync) && o.Kind != "StatefulSet" {
					t.Errorf("%s: %+v", a, o)
				}
			}
		}
	})
}
