package observe

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/classes"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// ClaimName is the claim of the member with that name.
func (v *View) ClaimName(member string) string { return naming.Claim(v.Record.Claims(), member) }

// describeVolumes describes the claims, by ordinal as a number. Those of a deleted
// cluster whose place this one has taken are never its own.
func (v *View) describeVolumes(g gathered) {
	for _, claim := range g.claims {
		if ofPredecessor(v.Record, v.Cluster, claim.Name) {
			continue
		}
		volume := *v.Volume(claim)
		if shouldGrow(v.Cluster, claim) {
			volume.NotExpandable = g.rigid[volume.Class]
		}
		v.Observed.Volumes = append(v.Observed.Volumes, volume)
	}
	slices.SortFunc(v.Observed.Volumes, func(a, b state.Volume) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Claim, b.Claim))
	})
}

// ofPredecessor reports whether a claim is that of a member of a deleted cluster.
func ofPredecessor(rec *record.Record, c desired.Cluster, claim string) bool {
	return rec != nil && slices.ContainsFunc(rec.Predecessors, func(p record.Predecessor) bool {
		return naming.MemberOfClaim(c.Metadata.Name, claim, p.ClaimPrefix) != ""
	})
}

// Volume describes one claim.
func (v *View) Volume(claim *corev1.PersistentVolumeClaim) *state.Volume {
	volume := observeVolume(v.Cluster.EtcdCluster, claim, v.Record.Claims())
	return &volume
}

// observeVolume describes one claim.
func observeVolume(c schema.EtcdCluster, claim *corev1.PersistentVolumeClaim, prefix string) state.Volume {
	size, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	growing, since := claimGrowth(claim)
	v := state.Volume{
		Claim: claim.Name, UID: string(claim.UID), Created: claim.CreationTimestamp.Time, Ordinal: -1, Size: size.Value(), Capacity: capacity.Value(),
		Holds: claim.Annotations[naming.AnnotationHolds], Keeps: claim.Annotations[naming.AnnotationKeeps],
		Bound:   claim.Status.Phase == corev1.ClaimBound,
		Pending: claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "", Terminating: claim.DeletionTimestamp != nil, Trouble: claimTrouble(claim),
		Growing: growing, GrowingSince: since,
	}
	v.GoingSince, v.Finalizers = pods.Going(claim)
	if v.Growing == "" && v.Capacity < v.Size {
		v.GrowingSince = LastChange(claim, "") // it was asked for, and nobody has begun
	}
	if member := naming.MemberOfClaim(c.Metadata.Name, claim.Name, prefix); member != "" {
		v.Member, v.Ordinal = member, naming.Ordinal(member)
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
			return string(condition.Type) + ": " + pods.LastLine(condition.Message)
		}
	}
	switch state := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]; state {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return string(state)
	}
	return ""
}

// claimGrowth returns how far the growth of a volume is, and since when.
func claimGrowth(claim *corev1.PersistentVolumeClaim) (text string, since time.Time) {
	for _, condition := range claim.Status.Conditions {
		under := condition.Type == corev1.PersistentVolumeClaimResizing || condition.Type == corev1.PersistentVolumeClaimFileSystemResizePending
		if under && condition.Status == corev1.ConditionTrue {
			text, since = strings.TrimSuffix(string(condition.Type)+": "+pods.LastLine(condition.Message), ": "), condition.LastTransitionTime.Time
		}
	}
	return text, since
}

// shouldGrow reports whether the volume of a claim is smaller than the file says.
func shouldGrow(c desired.Cluster, claim *corev1.PersistentVolumeClaim) bool {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && size.Value() < c.Spec.Storage.Size.Value()
}

func (o *Observer) classes() classes.Reader { return classes.Reader{Kube: o.Kube, Jobs: o.Jobs} }

// rigidClasses is why volumes cannot grow, by StorageClass, of those that should.
func (o *Observer) rigidClasses(ctx context.Context, rec *record.Record, c desired.Cluster, claims []*corev1.PersistentVolumeClaim) (map[string]string, error) {
	rigid := map[string]string{}
	for _, claim := range claims {
		class := ""
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		if _, asked := rigid[class]; asked || !shouldGrow(c, claim) || ofPredecessor(rec, c, claim.Name) {
			continue
		}
		why, err := o.classes().Rigidity(ctx, class)
		if err != nil {
			return nil, err
		}
		rigid[class] = why
	}
	return rigid, nil
}

// ClaimTemplateOf is what a StatefulSet asks for members' volumes.
func ClaimTemplateOf(set *appsv1.StatefulSet) *schema.StorageSpec {
	for _, claim := range set.Spec.VolumeClaimTemplates {
		return &schema.StorageSpec{
			Size: claim.Spec.Resources.Requests[corev1.ResourceStorage], StorageClassName: claim.Spec.StorageClassName,
		}
	}
	return nil
}
