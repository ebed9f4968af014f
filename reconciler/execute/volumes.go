package execute

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// growVolume asks for a larger volume in the claim that the decision was made on.
// One that asks for as much already counts as done.
func (e *Executor) growVolume(ctx context.Context, v *observe.View, a action.GrowVolume) error {
	live, err := e.Kube.CoreV1().PersistentVolumeClaims(v.Cluster.Metadata.Namespace).Get(ctx, a.Claim, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("grow claim %s: %w", a.Claim, err)
	}
	size := live.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case string(live.UID) != a.UID || live.DeletionTimestamp != nil:
		return fmt.Errorf("grow claim %s: %w", a.Claim, state.ErrChanged)
	case size.Value() >= a.To:
		return nil
	}
	err = e.patchClaim(ctx, live, nil, map[string]any{"resources": map[string]any{"requests": map[string]string{
		string(corev1.ResourceStorage): resource.NewQuantity(a.To, resource.BinarySI).String(),
	}}})
	if err != nil {
		return fmt.Errorf("grow claim %s: %w", a.Claim, err)
	}
	return nil
}

// tryClass starts the Job that mounts a volume of a class. One that is there counts as started.
func tryClass(ctx context.Context, e *Executor, v *observe.View, a action.TryClass) error {
	job := jobs.RenderTrial(v.Cluster, v.Set, e.Options.GuardImage, a.Class, a.Size)
	return e.Jobs.Start(ctx, jobs.OfTrial(v.Cluster), job)
}

// releaseSet deletes the StatefulSet that the decision was made on, and orphans
// its pods: that nothing but it goes is the API server's word, not a race.
func (e *Executor) releaseSet(ctx context.Context, v *observe.View, a action.ReleaseSet) error {
	if v.Set == nil || v.Set.DeletionTimestamp != nil {
		return nil
	}
	if string(v.Set.UID) != a.SetUID {
		return fmt.Errorf("release the pods: %w", state.ErrChanged)
	}
	orphan := metav1.DeletePropagationOrphan
	err := e.Kube.AppsV1().StatefulSets(v.Cluster.Metadata.Namespace).Delete(ctx, v.Set.Name, metav1.DeleteOptions{
		PropagationPolicy: &orphan,
		Preconditions:     &metav1.Preconditions{UID: &v.Set.UID, ResourceVersion: &v.Set.ResourceVersion},
	})
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("release the pods: %w: %w", state.ErrChanged, err)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("release the pods: %w", err)
	}
	return nil
}

// createSet creates the StatefulSet for as many members as there are, which may
// not be as many as Git asks for. Its partition is above them: pods that it takes
// over stay unchanged.
func (e *Executor) createSet(ctx context.Context, v *observe.View, a action.CreateSet) error {
	m, err := v.Manifests()
	if err != nil {
		return err
	}
	return e.applySetAs(ctx, v, *m.StatefulSet, a.Replicas, a.Replicas)
}
