package observe_test

import (
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/reconcilertest"
)

// 398: before a roll stops a member it is known whether the node takes it back that alone has
// its volume.
func TestANodeThatTakesNoNewPodIsToldBeforeARoll(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		pod := w.Pod("orders-1")
		pod.Spec.NodeName = "n1"
		w.Put(reconcilertest.PodsResource(), pod)
		// Which is another template than that of the pods, too.
		w.Wish.Spec.PodTemplate.Spec.Tolerations = []corev1.Toleration{{Key: "etcd", Operator: corev1.TolerationOpExists}}
		node := func(spec corev1.NodeSpec) {
			w.Put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "host-1"}}, Spec: spec,
			})
		}
		tainted := func(key string, effect corev1.TaintEffect) corev1.NodeSpec {
			return corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Value: "yes", Effect: effect}}}
		}
		atRest := func() *observe.View {
			v := w.Look()
			v.Desired.Template = v.Observed.Pods[0].Template
			return v
		}
		check := func(when string, v *observe.View, by string) {
			t.Helper()
			if err := w.R.Observer.ReadPlaces(w.Context(), v); err != nil || v.Observed.PlacesUnread {
				t.Fatal(err)
			}
			again, err := w.R.Observer.Refresh(w.Context(), v, "", "") // the second decision knows it, too
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []*observe.View{v, again} {
				if p := p.Observed.Pod("orders-1"); p.ShutBy != by || (p.Shut == "n1") != (by != "") {
					t.Errorf("%s: %q, because it %q; want %q", when, p.Shut, p.ShutBy, by)
				}
			}
		}
		node(corev1.NodeSpec{Unschedulable: true})
		reconcilertest.Tie(w, corev1.ClaimBound)
		check("a volume that can go elsewhere", w.Look(), "")
		reconcilertest.Tie(w, corev1.ClaimBound, "host-2")
		check("a volume of another node", w.Look(), "")
		reconcilertest.Tie(w, corev1.ClaimBound, "host-1")
		check("cordoned", w.Look(), "is cordoned")
		check("no roll", atRest(), "")
		node(tainted("dedicated", corev1.TaintEffectNoSchedule))
		check("a taint", w.Look(), "has the taint dedicated=yes:NoSchedule, which the members do not tolerate")
		node(tainted("dedicated", corev1.TaintEffectPreferNoSchedule))
		check("a wish", w.Look(), "")
		node(tainted("etcd", corev1.TaintEffectNoExecute))
		check("a taint that the members tolerate", w.Look(), "")
		node(corev1.NodeSpec{})
		check("a node like any other", w.Look(), "")

		node(corev1.NodeSpec{Unschedulable: true})
		answer := func(verb, resource string, err error) {
			w.API.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
		answer("get", "persistentvolumes", apierrors.NewForbidden(corev1.Resource("persistentvolumes"), "", errors.New("no")))
		check("volumes that may not be read", w.Look(), "")
		answer("get", "persistentvolumes", errors.New("the API server is away"))
		backuptest.WantError(t, w.R.Observer.ReadPlaces(w.Context(), w.Look()), "read the volume of orders-1", "away")
		answer("list", "nodes", errors.New("the API server is away"))
		backuptest.WantError(t, w.R.Observer.ReadPlaces(w.Context(), w.Look()), "get the node of orders-", "away")
		if err := w.R.Observer.ReadPlaces(w.Context(), atRest()); err != nil {
			t.Errorf("nothing is stopped, and a node is read: %v", err)
		}
	})
}

// 555: where an only member may be replaced by way of a second one, it is known when its node is
// drained, and clients are led to the member that stays.
func TestADrainedNodeIsSeenWhereItsMemberCanLeave(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		pod := w.Pod("orders-0")
		pod.Spec.NodeName = "n1"
		w.Put(reconcilertest.PodsResource(), pod)
		node := func(spec corev1.NodeSpec) {
			w.Put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: spec})
		}
		check := func(when, by string) {
			t.Helper()
			if p := w.Look().Observed.Pod("orders-0"); p.DrainedBy != by || (p.Drained == "n1") != (by != "") {
				t.Errorf("%s: %q, because it %q; want %q", when, p.Drained, p.DrainedBy, by)
			}
		}
		node(corev1.NodeSpec{Unschedulable: true})
		check("three members", "")
		w.Wish.Spec.Replicas, w.Wish.Spec.Upgrade.MaxSurge = 1, 1
		synctest.Wait() // the caches see the node of the pod
		check("one member", "is cordoned")
		w.Wish.Spec.PodTemplate.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		check("one that tolerates that", "")
		w.Wish.Spec.PodTemplate.Spec.Tolerations = nil
		node(corev1.NodeSpec{})
		check("a node like any other", "")
		node(corev1.NodeSpec{Unschedulable: true})
		w.Wish.Spec.Upgrade.MaxSurge = 0
		check("without the field", "")
		w.Wish.Spec.Upgrade.MaxSurge = 1
		w.API.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
		})
		check("nodes that may not be read", "")
	})
}
