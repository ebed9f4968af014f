package observe_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
)

// Why a volume cannot grow; what nobody may read is no error.
func TestClassesThatDoNotGrow(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		classes := storagev1.SchemeGroupVersion.WithResource("storageclasses")
		for name, allowed := range map[string]*bool{"grows": new(true), "rigid": new(false), "silent": nil} {
			w.Put(classes, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: allowed})
		}
		check := func(class, want string) {
			t.Helper()
			got, err := w.R.Observer.Rigidity(w.Context(), class)
			if err != nil || !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%s: %q, want %q: %v", class, got, want, err)
			}
		}
		check("grows", "")
		check("rigid", "does not allow it")
		check("silent", "does not allow it")
		check("absent", "no longer exists")
		check("", "only volumes of a class can grow")
		answer := apierrors.NewForbidden(storagev1.Resource("storageclasses"), "grows", errors.New("no"))
		w.API.PrependReactor("get", "storageclasses", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
		check("grows", "quorate may not read StorageClass grows")
		answer = apierrors.NewInternalError(errors.New("away"))
		if _, err := w.R.Observer.Rigidity(w.Context(), "grows"); err == nil || !strings.Contains(err.Error(), "read StorageClass grows") {
			t.Errorf("%v", err)
		}
	})
}

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
