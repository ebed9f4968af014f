package observe_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
)

// 277, 280: what becomes of a member's claim is read past the caches before an action, and
// a claim that its pod mounts and that does not exist is told of the pod.
func TestClaimsAreReadPastTheCaches(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Tie(w, corev1.ClaimBound)
		p := w.Pod("orders-1").DeepCopy()
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-orders-1"},
		}})
		w.Put(reconcilertest.PodsResource(), p)
		w.Settle()
		before := w.Look()
		if pod := before.Observed.Pod("orders-1"); pod.Unclaimed || before.Observed.Volume("orders-1").Terminating {
			t.Fatalf("%+v", pod)
		}
		gone := false
		w.API.PrependReactor("list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			list := &corev1.PersistentVolumeClaimList{}
			if !gone {
				claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-orders-1", Labels: naming.OwnLabels(w.Wish.EtcdCluster), DeletionTimestamp: new(metav1.Now())}}
				list.Items = append(list.Items, claim)
			}
			return true, list, nil
		})
		v, err := w.R.Observer.Refresh(w.Context(), before, "PersistentVolumeClaim", "")
		if err != nil {
			t.Fatal(err)
		}
		if !v.Observed.Volume("orders-1").Terminating || v.Observed.Pod("orders-1").Unclaimed {
			t.Errorf("%+v, %v", v.Observed.Volumes, err)
		}
		gone = true
		if v, err = w.R.Observer.Refresh(w.Context(), before, "PersistentVolumeClaim", ""); err != nil || !v.Observed.Pod("orders-1").Unclaimed {
			t.Errorf("%+v, %v", v.Observed.Pods, err)
		}
	})
}
