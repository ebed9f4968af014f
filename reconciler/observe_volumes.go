package reconciler

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// claimPrefix begins the name of every member's claim: a StatefulSet names it
// after its template and the pod.
const claimPrefix = "data-"

// ClaimName is the claim of the member with that name.
func ClaimName(member string) string { return claimPrefix + member }

// observeVolumes describes the claims, by ordinal as a number.
func (v *view) observeVolumes(claims []*corev1.PersistentVolumeClaim) {
	for _, claim := range claims {
		v.observed.Volumes = append(v.observed.Volumes, observeVolume(v.cluster.EtcdCluster, claim))
	}
	slices.SortFunc(v.observed.Volumes, func(a, b plan.Volume) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Claim, b.Claim))
	})
}

// observeVolume describes one claim.
func observeVolume(c schema.EtcdCluster, claim *corev1.PersistentVolumeClaim) plan.Volume {
	size, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	v := plan.Volume{
		Claim: claim.Name, UID: string(claim.UID), Ordinal: -1, Size: size.Value(), Capacity: capacity.Value(),
		Bound: claim.Status.Phase == corev1.ClaimBound, Terminating: claim.DeletionTimestamp != nil, Trouble: claimTrouble(claim),
	}
	if member := strings.TrimPrefix(claim.Name, claimPrefix); member == MemberName(c, memberOrdinal(member)) && member != claim.Name {
		v.Member, v.Ordinal = member, int32(memberOrdinal(member))
	}
	if claim.Spec.StorageClassName != nil {
		v.Class = *claim.Spec.StorageClassName
	}
	return v
}

// claimTrouble is what Kubernetes says is wrong with a claim, or "". That a claim
// waits for its first pod is no trouble.
func claimTrouble(claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase == corev1.ClaimLost {
		return "the volume behind the claim is lost"
	}
	for _, condition := range claim.Status.Conditions {
		failed := condition.Type == corev1.PersistentVolumeClaimControllerResizeError || condition.Type == corev1.PersistentVolumeClaimNodeResizeError
		if failed && condition.Status == corev1.ConditionTrue {
			return string(condition.Type) + ": " + lastLine(condition.Message)
		}
	}
	return ""
}
