package reconciler

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// testClaim is a bound claim of 8 GiB.
func testClaim(name string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class, eight := "standard", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "db", UID: "u"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: eight}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: eight},
	}
	if change != nil {
		change(claim)
	}
	return claim
}

// failedResize is a claim whose volume does not grow.
func failedResize(kind corev1.PersistentVolumeClaimConditionType, status corev1.ConditionStatus) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: kind, Status: status, Message: "first\nthe disk is full"}}
	}
}

func TestVolumeAsThePlannerSeesIt(t *testing.T) {
	const gi = int64(1) << 30
	usual := state.Volume{
		Claim: "data-orders-2", UID: "u", Member: "orders-2", Ordinal: 2, Size: 8 * gi, Capacity: 8 * gi, Class: "standard", Bound: true,
	}
	like := func(change func(*state.Volume)) state.Volume {
		v := usual
		change(&v)
		return v
	}
	now := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  state.Volume
	}{
		"bound": {testClaim("data-orders-2", nil), usual},
		"growing": {testClaim("data-orders-2", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Gi")}
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
		}), like(func(v *state.Volume) { v.Size, v.Growing = 16*gi, "FileSystemResizePending" })},
		"too large to grow": {testClaim("data-orders-2", func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
				corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible,
			}
		}), like(func(v *state.Volume) { v.Trouble = "ControllerResizeInfeasible" })},
		"does not grow":              {testClaim("data-orders-2", failedResize(corev1.PersistentVolumeClaimNodeResizeError, corev1.ConditionTrue)), like(func(v *state.Volume) { v.Trouble = "NodeResizeError: the disk is full" })},
		"does not grow in its store": {testClaim("data-orders-2", failedResize(corev1.PersistentVolumeClaimControllerResizeError, corev1.ConditionTrue)), like(func(v *state.Volume) { v.Trouble = "ControllerResizeError: the disk is full" })},
		"is being resized":           {testClaim("data-orders-2", failedResize(corev1.PersistentVolumeClaimResizing, corev1.ConditionTrue)), like(func(v *state.Volume) { v.Growing = "Resizing: the disk is full" })},
		"was being resized":          {testClaim("data-orders-2", failedResize(corev1.PersistentVolumeClaimResizing, corev1.ConditionFalse)), usual},
		"did not grow once":          {testClaim("data-orders-2", failedResize(corev1.PersistentVolumeClaimControllerResizeError, corev1.ConditionFalse)), usual},
		"waits for its first pod": {testClaim("data-orders-2", func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		}), like(func(v *state.Volume) { v.Capacity, v.Bound = 0, false })},
		"lost":                      {testClaim("data-orders-2", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), like(func(v *state.Volume) { v.Bound, v.Trouble = false, "the volume behind the claim is lost" })},
		"being deleted":             {testClaim("data-orders-2", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }), like(func(v *state.Volume) { v.Terminating = true })},
		"without a class":           {testClaim("data-orders-2", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), like(func(v *state.Volume) { v.Class = "" })},
		"of the tenth":              {testClaim("data-orders-10", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "data-orders-10", "orders-10", 10 })},
		"of another cluster's name": {testClaim("data-orders-eu-2", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "data-orders-eu-2", "", -1 })},
		"of no member at all":       {testClaim("orders-2", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "orders-2", "", -1 })},
		"with an odd number":        {testClaim("data-orders-02", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "data-orders-02", "", -1 })},
	} {
		t.Run(name, func(t *testing.T) {
			if got := observeVolume(clustertest.Orders(), test.claim, naming.ClaimPrefix); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// Why a volume cannot grow; what nobody may read is no error.
func TestClassesThatDoNotGrow(t *testing.T) {
	formed(t, func(w *world) {
		classes := storagev1.SchemeGroupVersion.WithResource("storageclasses")
		for name, allowed := range map[string]*bool{"grows": new(true), "rigid": new(false), "silent": nil} {
			w.put(classes, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: allowed})
		}
		check := func(class, want string) {
			t.Helper()
			got, err := w.r.observer.Rigidity(w.Context(), class)
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
		w.api.PrependReactor("get", "storageclasses", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
		check("grows", "quorate may not read StorageClass grows")
		answer = apierrors.NewInternalError(errors.New("away"))
		if _, err := w.r.observer.Rigidity(w.Context(), "grows"); err == nil || !strings.Contains(err.Error(), "read StorageClass grows") {
			t.Errorf("%v", err)
		}
	})
}

func TestVolumesAreInTheOrderOfTheirMembers(t *testing.T) {
	v := view{cluster: desired.Cluster{EtcdCluster: clustertest.Orders()}}
	v.observeVolumes([]*corev1.PersistentVolumeClaim{testClaim("data-orders-10", nil), testClaim("data-orders-9", nil)})
	if len(v.observed.Volumes) != 2 || v.observed.Volumes[0].Ordinal != 9 {
		t.Errorf("got %+v", v.observed.Volumes)
	}
}
