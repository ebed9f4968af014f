package reconciler_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// I3: each fact that the second decision rests on is read again, and one that cannot
// be had is an error: nothing is decided on half of them.
func TestTheSecondDecisionNeedsEveryFact(t *testing.T) {
	roll := action.StartRoll{Partition: 3}
	for name, test := range map[string]struct {
		action action.Action
		behind func(w *reconcilertest.World, v *observe.View)
		want   string
	}{
		"the record":      {roll, func(w *reconcilertest.World, _ *observe.View) { reconcilertest.Away(w, "configmaps") }, "read the record: "},
		"the StatefulSet": {roll, func(w *reconcilertest.World, _ *observe.View) { reconcilertest.Away(w, "statefulsets") }, "read the StatefulSet: "},
		"the pods":        {roll, func(w *reconcilertest.World, _ *observe.View) { reconcilertest.Away(w, "pods") }, "list the pods: "},
		"what is rendered": {roll, func(w *reconcilertest.World, v *observe.View) {
			v.Cluster.Spec.Etcd.Options = map[string]string{"no-such-flag": "1"}
			w.R.Observer.Forget(v.Cluster.Key())
		}, "no-such-flag"},
		"a node": {roll, func(w *reconcilertest.World, _ *observe.View) {
			reconcilertest.Ill(w, w.Pod("orders-1").CreationTimestamp.Time, func(*corev1.Pod) {})
			reconcilertest.Tie(w, corev1.ClaimBound, "host-1")
			reconcilertest.Away(w, "nodes")
		}, "get the node of orders-1: "},
		"the restore": {roll, func(w *reconcilertest.World, _ *observe.View) {
			reconcilertest.Asleep(w)
			reconcilertest.Away(w, "jobs")
		}, "read Job "},
		"the volumes where a member stops": {action.ResizeSet{}, func(w *reconcilertest.World, _ *observe.View) { reconcilertest.Away(w, "persistentvolumeclaims") }, "read PersistentVolumeClaim"},
		"the volumes where one joins":      {action.BeginJoin{Member: "orders-3"}, func(w *reconcilertest.World, _ *observe.View) { reconcilertest.Away(w, "persistentvolumeclaims") }, "read PersistentVolumeClaim"},
		"a Service":                        {action.ApplyObject{ObjectKind: "Service", Name: "orders-client"}, func(w *reconcilertest.World, _ *observe.View) { reconcilertest.Away(w, "services") }, "read Service orders-client: "},
		"the budget":                       {action.ApplyObject{ObjectKind: "PodDisruptionBudget", Name: "orders"}, func(w *reconcilertest.World, _ *observe.View) { reconcilertest.Away(w, "poddisruptionbudgets") }, "read PodDisruptionBudget orders: "},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				v := w.Look()
				test.behind(w, v)
				if _, err := w.R.Again(w.Context(), v, test.action); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			})
		})
	}
}

// I3: no member joins on the volume of the one before it: that it is being deleted the caches may
// not know yet.
func TestNoMemberJoinsOnAVolumeThatGoes(t *testing.T) {
	for _, goes := range []bool{false, true} {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			w.API.PrependReactor("list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				going := clustertest.Claim("data-orders-3", func(c *corev1.PersistentVolumeClaim) {
					c.Namespace, c.Labels, c.DeletionTimestamp = "shop", naming.OwnLabels(w.Wish.EtcdCluster), new(metav1.Now())
				})
				return goes, &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{*going}}, nil
			})
			w.Commit(clustertest.SetReplicas(5))
			for range 5 {
				_, _ = w.Pass() // it is tried again
				time.Sleep(5 * time.Second)
			}
			if j := w.Record().Joining; (j != nil) == goes {
				t.Errorf("a volume goes: %t, joining: %+v", goes, j)
			}
		})
	}
}

// What is about to be applied is compared as the API server has it: the caches may
// not know yet that it was.
func TestObjectsAreComparedPastTheCaches(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Look()
		w.API.PrependReactor("get", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			resource := a.GetResource()
			gone := resource.Resource == "services" || resource.Resource == "poddisruptionbudgets"
			return gone, nil, apierrors.NewNotFound(resource.GroupResource(), "gone")
		})
		for _, a := range []action.ApplyObject{{ObjectKind: "Service", Name: "orders-client"}, {ObjectKind: "PodDisruptionBudget", Name: "orders"}} {
			v, err := w.R.Observer.Refresh(w.Context(), before, a.ObjectKind, a.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range v.Observed.Objects {
				if asked := o.Kind == a.ObjectKind && o.Name == a.Name; asked != (o.State == state.ObjectMissing) {
					t.Errorf("%s: %+v", a, o)
				}
			}
		}
	})
}
