package execute

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
)

// beginDeletion records that the cluster is being deleted, and as what its
// members may come back.
func (e *Executor) beginDeletion(ctx context.Context, v *observe.View, a action.BeginDeletion) error {
	return e.note(ctx, v, func(rec *record.Record) {
		rec.Deleted = true
		rec.Saw(highest(v.Observed.Rounds)) // the last time that its members are asked
		rec.NoteFloors(v.Observed.Round(), e.Now())
		if a.Version != "" {
			rec.Applied = &record.Applied{Settings: a.Settings, Version: a.Version, Commit: v.Cluster.Commit, Accepted: v.Cluster.Accepted}
		}
	})
}

// deleteObject deletes one object of a cluster that Git wants deleted, and only
// one that quorate has made: it is read again, and must carry quorate's labels
// and the UID that was read.
func (e *Executor) deleteObject(ctx context.Context, v *observe.View, a action.DeleteObject) error {
	ns := v.Cluster.Metadata.Namespace
	var err error
	switch a.ObjectKind {
	case "StatefulSet":
		err = e.deleteSet(ctx, v, a.Name)
	case "Service":
		err = kube.DeleteOwn(ctx, e.Kube.CoreV1().Services(ns), v.Cluster.EtcdCluster, a.Name, metav1.DeletePropagationBackground)
	case "PodDisruptionBudget":
		err = kube.DeleteOwn(ctx, e.Kube.PolicyV1().PodDisruptionBudgets(ns), v.Cluster.EtcdCluster, a.Name, metav1.DeletePropagationBackground)
	case "Secret":
		err = kube.DeleteOwn(ctx, e.Kube.CoreV1().Secrets(ns), v.Cluster.EtcdCluster, a.Name, metav1.DeletePropagationBackground)
	default:
		return fmt.Errorf("delete %s %s: quorate keeps no such object", a.ObjectKind, a.Name)
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", a.ObjectKind, a.Name, err)
	}
	return nil
}

// deleteSet deletes the StatefulSet, and no claim with it. Where an earlier retention policy has
// made it the owner of claims, they lose their owner first.
func (e *Executor) deleteSet(ctx context.Context, v *observe.View, name string) error {
	ns := v.Cluster.Metadata.Namespace
	claims, err := e.Kube.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list volume claims, which may go with it: %w", err)
	}
	// Its pods are gone; should one have come back, it must not be left alone.
	how := metav1.DeletePropagationForeground
	if slices.ContainsFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool { return goesWithSet(claim, name) }) {
		how = metav1.DeletePropagationOrphan
	}
	return kube.DeleteOwn(ctx, e.Kube.AppsV1().StatefulSets(ns), v.Cluster.EtcdCluster, name, how)
}

// goesWithSet reports whether Kubernetes deletes a claim with the StatefulSet of this name.
func goesWithSet(claim corev1.PersistentVolumeClaim, name string) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "StatefulSet" && o.Name == name })
}

// forgetCluster deletes the record, once nothing is left that it speaks of.
func (e *Executor) forgetCluster(ctx context.Context, v *observe.View) error {
	c := v.Cluster.EtcdCluster
	err := kube.DeleteOwn(ctx, e.Kube.CoreV1().ConfigMaps(c.Metadata.Namespace), c, naming.Record(c.Metadata.Name), metav1.DeletePropagationBackground)
	if err != nil {
		return fmt.Errorf("delete the record: %w", err)
	}
	return nil
}
