package reconciler

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/plan"
)

// AnnotationHolds stands on a volume claim: the ID in hexadecimal of the member
// whose data quorate has seen on the volume, or plan.HoldsForeign. It goes with the
// claim, so that another claim of the same name is never taken for this one.
const AnnotationHolds = "quorate.dev/holds"

// recordHoldings writes on each claim what its volume holds.
func (r *Reconciler) recordHoldings(ctx context.Context, v *view, a plan.RecordHoldings) error {
	for _, h := range a.Volumes {
		if err := r.recordHolding(ctx, v, h); err != nil {
			return fmt.Errorf("record whose data volume claim %s holds: %w", h.Claim, err)
		}
	}
	return nil
}

// recordHolding writes on the claim that the decision was made on what the pod said
// that has it. The claim is read first: a pod that was there before and is there
// after that has kept anybody from replacing it in between.
func (r *Reconciler) recordHolding(ctx context.Context, v *view, h plan.Holding) error {
	ns := v.cluster.Metadata.Namespace
	claim, err := r.kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, h.Claim, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod, err := r.kube.CoreV1().Pods(ns).Get(ctx, h.Member, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read its pod: %w", err)
	}
	foreign := h.Holds == plan.HoldsForeign
	switch {
	case string(claim.UID) != h.UID, claim.DeletionTimestamp != nil, string(pod.UID) != h.PodUID,
		foreign != (podDamage(pod) == plan.DamageForeign), !foreign && pod.DeletionTimestamp != nil:
		return errChanged
	case claim.Annotations[AnnotationHolds] == h.Holds:
		return nil
	}
	return r.patchClaim(ctx, claim, map[string]string{AnnotationHolds: h.Holds}, nil)
}

// patchClaim changes a claim as it was read, and none that has changed since: what is
// nil of the annotations and the spec stays.
func (r *Reconciler) patchClaim(ctx context.Context, live *corev1.PersistentVolumeClaim, annotations map[string]string, spec map[string]any) error {
	type metadata struct {
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	}
	patch, err := json.Marshal(struct {
		Metadata metadata       `json:"metadata"`
		Spec     map[string]any `json:"spec,omitempty"`
	}{metadata{live.UID, live.ResourceVersion, annotations}, spec})
	if err != nil {
		return err
	}
	_, err = r.kube.CoreV1().PersistentVolumeClaims(live.Namespace).Patch(ctx, live.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	return err
}
