package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

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
		"bound": {clustertest.Claim("data-orders-2", nil), usual},
		"growing": {clustertest.Claim("data-orders-2", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Gi")}
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
		}), like(func(v *state.Volume) { v.Size, v.Growing = 16*gi, "FileSystemResizePending" })},
		"too large to grow": {clustertest.Claim("data-orders-2", func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
				corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible,
			}
		}), like(func(v *state.Volume) { v.Trouble = "ControllerResizeInfeasible" })},
		"does not grow":              {clustertest.Claim("data-orders-2", failedResize(corev1.PersistentVolumeClaimNodeResizeError, corev1.ConditionTrue)), like(func(v *state.Volume) { v.Trouble = "NodeResizeError: the disk is full" })},
		"does not grow in its store": {clustertest.Claim("data-orders-2", failedResize(corev1.PersistentVolumeClaimControllerResizeError, corev1.ConditionTrue)), like(func(v *state.Volume) { v.Trouble = "ControllerResizeError: the disk is full" })},
		"is being resized":           {clustertest.Claim("data-orders-2", failedResize(corev1.PersistentVolumeClaimResizing, corev1.ConditionTrue)), like(func(v *state.Volume) { v.Growing = "Resizing: the disk is full" })},
		"was being resized":          {clustertest.Claim("data-orders-2", failedResize(corev1.PersistentVolumeClaimResizing, corev1.ConditionFalse)), usual},
		"did not grow once":          {clustertest.Claim("data-orders-2", failedResize(corev1.PersistentVolumeClaimControllerResizeError, corev1.ConditionFalse)), usual},
		"waits for its first pod": {clustertest.Claim("data-orders-2", func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		}), like(func(v *state.Volume) { v.Capacity, v.Bound, v.Pending = 0, false, true })},
		"lost":                      {clustertest.Claim("data-orders-2", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), like(func(v *state.Volume) { v.Bound, v.Trouble = false, "the volume behind the claim is lost" })},
		"made":                      {clustertest.Claim("data-orders-2", func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = now }), like(func(v *state.Volume) { v.Created = now.Time })},
		"being deleted":             {clustertest.Claim("data-orders-2", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }), like(func(v *state.Volume) { v.Terminating, v.GoingSince = true, now.Time })},
		"without a class":           {clustertest.Claim("data-orders-2", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), like(func(v *state.Volume) { v.Class = "" })},
		"of the tenth":              {clustertest.Claim("data-orders-10", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "data-orders-10", "orders-10", 10 })},
		"of another cluster's name": {clustertest.Claim("data-orders-eu-2", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "data-orders-eu-2", "", -1 })},
		"of no member at all":       {clustertest.Claim("orders-2", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "orders-2", "", -1 })},
		"with an odd number":        {clustertest.Claim("data-orders-02", nil), like(func(v *state.Volume) { v.Claim, v.Member, v.Ordinal = "data-orders-02", "", -1 })},
	} {
		t.Run(name, func(t *testing.T) {
			if got := observeVolume(clustertest.Orders(), test.claim, naming.ClaimPrefix); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestVolumesAreInTheOrderOfTheirMembers(t *testing.T) {
	v := View{Cluster: desired.Cluster{EtcdCluster: clustertest.Orders()}}
	v.describeVolumes(gathered{liveCluster: liveCluster{claims: []*corev1.PersistentVolumeClaim{clustertest.Claim("data-orders-10", nil), clustertest.Claim("data-orders-9", nil)}}})
	if len(v.Observed.Volumes) != 2 || v.Observed.Volumes[0].Ordinal != 9 {
		t.Errorf("got %+v", v.Observed.Volumes)
	}
}
