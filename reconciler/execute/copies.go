package execute

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/copies"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// copier writes the copies of applications' Secrets in other namespaces.
type copier struct{ *Executor }

// write makes a copy what its source is now. Both are read past the caches. What is there and is no
// copy of this cluster's is not touched, also where it comes in between.
func (e copier) write(ctx context.Context, v *observe.View, a action.CopyCertificate) error {
	c := v.Certified()
	source, err := e.source(ctx, c, a.Secret)
	switch {
	case err != nil:
		return fmt.Errorf("read Secret %s: %w", a.Secret, err)
	case source == nil:
		return fmt.Errorf("%s: the Secret is not there any more: %w", a, state.ErrChanged)
	}
	there, err := e.find(ctx, c, a.Namespace, a.Secret)
	if err == nil {
		err = e.put(ctx, certs.MakeCopy(c, source, a.Namespace, there), there)
	}
	return e.done(v, a, a.Namespace+"/"+a.Secret, err)
}

// refresh makes the copies that exist what their sources are now, read past the caches. Those that
// cannot be written keep nothing back, and those that are missing have no client yet.
func (e copier) refresh(ctx context.Context, c schema.EtcdCluster) error {
	for _, client := range c.Spec.TLS.Clients {
		for _, namespace := range client.Namespaces {
			if err := e.again(ctx, c, client.Secret(c.Metadata.Name), namespace); err != nil {
				if _, refused := copies.Refusal(err); !refused {
					return err
				}
			}
		}
	}
	return nil
}

// again makes a copy that exists what its source is now.
func (e copier) again(ctx context.Context, c schema.EtcdCluster, name, namespace string) error {
	there, err := e.find(ctx, c, namespace, name)
	if err != nil || there == nil {
		return err
	}
	source, err := e.source(ctx, c, name)
	if err != nil || source == nil {
		return err
	}
	return e.put(ctx, certs.MakeCopy(c, source, namespace, there), there)
}

// source is the Secret of an application in the namespace of the cluster, nil where there is none.
func (e copier) source(ctx context.Context, c schema.EtcdCluster, name string) (*corev1.Secret, error) {
	source, err := kube.FoundOrNil(e.Kube.CoreV1().Secrets(c.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil || source == nil || !certs.IsClients(c, source) {
		return nil, err
	}
	return source, nil
}

// put writes a copy, in place of the one that is there; nil is one that is as it should be.
func (e copier) put(ctx context.Context, made, there *corev1.Secret) (err error) {
	switch {
	case made == nil:
	case there == nil:
		_, err = e.Kube.CoreV1().Secrets(made.Namespace).Create(ctx, made, metav1.CreateOptions{FieldManager: naming.FieldManager})
	default:
		_, err = e.Kube.CoreV1().Secrets(made.Namespace).Update(ctx, made, metav1.UpdateOptions{FieldManager: naming.FieldManager})
	}
	return err
}

// remove deletes a copy that is not wanted.
func (e copier) remove(ctx context.Context, v *observe.View, a action.DeleteCopy) error {
	there, err := e.find(ctx, v.Cluster.EtcdCluster, a.Namespace, a.Secret)
	switch {
	case errors.Is(err, kube.ErrForeign):
		err = state.ErrChanged // it was one when that was decided
	case err == nil && there != nil:
		err = e.Kube.CoreV1().Secrets(a.Namespace).Delete(ctx, a.Secret, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &there.UID}})
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return e.done(v, a, a.Namespace+"/"+a.Secret, err)
}

// find reads the copy, nil where there is none. The error is kube.ErrForeign for what is none.
func (e copier) find(ctx context.Context, c schema.EtcdCluster, namespace, name string) (*corev1.Secret, error) {
	there, err := kube.FoundOrNil(e.Kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err == nil && there != nil && !certs.IsCopy(c, there) {
		return nil, kube.ErrForeign
	}
	return there, err
}

// done notes that a copy is as it should be, unless there is an error.
func (e copier) done(v *observe.View, act action.Action, object string, err error) error {
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s: %w: %w", act, state.ErrChanged, err)
	case err != nil:
		return fmt.Errorf("%s: %w", act, err)
	}
	e.Fights.Taken(v.Cluster.Key(), copies.Object(object))
	return nil
}
