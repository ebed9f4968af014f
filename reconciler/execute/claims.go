package execute

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/state"
)

// recordHoldings writes on each claim what its volume holds.
func (e *Executor) recordHoldings(ctx context.Context, v *observe.View, a action.RecordHoldings) error {
	for _, h := range a.Volumes {
		if err := e.recordHolding(ctx, v, h); err != nil {
			return fmt.Errorf("record whose data volume claim %s holds: %w", h.Claim, err)
		}
	}
	return nil
}

// recordHolding writes on the claim that the decision was made on what the pod said
// that has it. The claim is read first: a pod that was there before and is there
// after that has kept others from replacing it in between.
func (e *Executor) recordHolding(ctx context.Context, v *observe.View, h action.Holding) error {
	ns := v.Cluster.Metadata.Namespace
	claim, err := e.Kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, h.Claim, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod, err := e.Kube.CoreV1().Pods(ns).Get(ctx, h.Member, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read its pod: %w", err)
	}
	foreign := h.Holds == state.HoldsForeign
	switch {
	case string(claim.UID) != h.UID, claim.DeletionTimestamp != nil, string(pod.UID) != h.PodUID,
		foreign != (pods.Damage(pod) == state.DamageForeign), !foreign && pod.DeletionTimestamp != nil:
		return state.ErrChanged
	case claim.Annotations[naming.AnnotationHolds] == h.Holds:
		return nil
	}
	return e.patchClaim(ctx, claim, map[string]string{naming.AnnotationHolds: h.Holds}, nil)
}

// patchClaim changes the claim that was read, and none that has changed since: what is
// nil of the annotations and the spec stays.
func (e *Executor) patchClaim(ctx context.Context, live *corev1.PersistentVolumeClaim, annotations map[string]string, spec map[string]any) error {
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
	_, err = e.Kube.CoreV1().PersistentVolumeClaims(live.Namespace).Patch(ctx, live.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: naming.FieldManager})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", state.ErrChanged, err)
	}
	return err
}
