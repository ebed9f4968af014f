package reconciler

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// executeLifecycle carries out what puts a cluster to sleep, wakes it, or deletes
// it.
func (r *Reconciler) executeLifecycle(ctx context.Context, v *view, action plan.Action) error {
	switch a := action.(type) {
	case plan.Hibernate:
		return r.setHibernated(ctx, v, true)
	case plan.Wake:
		return r.setHibernated(ctx, v, false)
	case plan.BeginDeletion:
		return r.beginDeletion(ctx, v, a)
	case plan.Revive:
		return r.updateRecord(ctx, v, func(record *Record) { record.Deleted = false })
	case plan.DeleteObject:
		return r.deleteObject(ctx, v, a)
	case plan.ForgetCluster:
		return r.forgetCluster(ctx, v)
	default:
		return fmt.Errorf("%s neither begins nor ends a cluster", action)
	}
}

// setHibernated writes down whether the members sleep.
func (r *Reconciler) setHibernated(ctx context.Context, v *view, asleep bool) error {
	return r.updateRecord(ctx, v, func(record *Record) { record.Hibernated = asleep })
}

// beginDeletion writes down that the cluster is being deleted, and as what its
// members may come back.
func (r *Reconciler) beginDeletion(ctx context.Context, v *view, a plan.BeginDeletion) error {
	return r.updateRecord(ctx, v, func(record *Record) {
		if record.Deleted = true; a.Version != "" {
			record.Applied = &AppliedRecord{Settings: a.Settings, Version: a.Version, Commit: v.cluster.Commit}
		}
	})
}

// deleteObject deletes one object of a cluster that Git wants deleted, and only
// one that quorate has made: it is read again, and must carry quorate's labels
// and the UID that was read.
func (r *Reconciler) deleteObject(ctx context.Context, v *view, a plan.DeleteObject) error {
	ns := v.cluster.Metadata.Namespace
	var err error
	switch a.Kind {
	case "StatefulSet":
		// Its pods are gone; should one have come back, it must not be left alone.
		err = deleteOwn(ctx, r.kube.AppsV1().StatefulSets(ns), v.cluster.EtcdCluster, a.Name, metav1.DeletePropagationForeground)
	case "Service":
		err = deleteOwn(ctx, r.kube.CoreV1().Services(ns), v.cluster.EtcdCluster, a.Name, metav1.DeletePropagationBackground)
	case "PodDisruptionBudget":
		err = deleteOwn(ctx, r.kube.PolicyV1().PodDisruptionBudgets(ns), v.cluster.EtcdCluster, a.Name, metav1.DeletePropagationBackground)
	case "Secret":
		err = deleteOwn(ctx, r.kube.CoreV1().Secrets(ns), v.cluster.EtcdCluster, a.Name, metav1.DeletePropagationBackground)
	default:
		return fmt.Errorf("delete %s %s: quorate keeps no such object", a.Kind, a.Name)
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", a.Kind, a.Name, err)
	}
	return nil
}

// forgetCluster deletes the record, once nothing is left that it speaks of.
func (r *Reconciler) forgetCluster(ctx context.Context, v *view) error {
	c := v.cluster.EtcdCluster
	err := deleteOwn(ctx, r.kube.CoreV1().ConfigMaps(c.Metadata.Namespace), c, RecordName(c), metav1.DeletePropagationBackground)
	if err != nil {
		return fmt.Errorf("delete the record: %w", err)
	}
	return nil
}

// deleter is what deleting needs of a client for one kind.
type deleter[L metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (L, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// deleteOwn deletes an object that carries quorate's labels for the cluster. One
// that is gone is deleted.
func deleteOwn[L metav1.Object](ctx context.Context, client deleter[L], c schema.EtcdCluster, name string, how metav1.DeletionPropagation) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isOurs(live, c) {
		return errors.New("it does not carry quorate's labels, so it is somebody else's: look at it and delete it by hand")
	}
	uid := live.GetUID()
	err = client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &how})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isOurs says whether an object carries the labels of what quorate makes for c.
func isOurs(live metav1.Object, c schema.EtcdCluster) bool {
	for key, value := range OwnLabels(c) {
		if live.GetLabels()[key] != value {
			return false
		}
	}
	return true
}
