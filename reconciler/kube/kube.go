// Package kube has what all writes to Kubernetes have in common: quorate is the owner
// of what it applies, and deletes only what it has made.
package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// FoundOrNil turns "not found" into nil without an error.
func FoundOrNil[T any](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// ApplyOptions make quorate the owner of what it applies: Git wins.
func ApplyOptions() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: naming.FieldManager, Force: true}
}

// ApplyError tells what could not be applied, nil without an error. Most often a
// conflict is a controller that has written the status at the same time.
func ApplyError(kind, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("apply %s %s: %w: %w", kind, name, state.ErrChanged, err)
	}
	return fmt.Errorf("apply %s %s: %w", kind, name, err)
}

// Client is what applying needs of a client for one kind.
type Client[L drift.LiveObject, W any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (L, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (L, error)
	Apply(ctx context.Context, want W, o metav1.ApplyOptions) (L, error)
}

// Apply applies an object, and removes what others have added to its spec.
func Apply[L drift.LiveObject, W any](ctx context.Context, client Client[L, W], name string, want W) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	default:
		if _, err := OwnAdditions(ctx, client, live, want); err != nil {
			return err
		}
	}
	_, err = client.Apply(ctx, want, ApplyOptions())
	return err
}

// OwnAdditions makes quorate the owner of what others have added to the spec, so
// that the next apply removes it. It changes nothing else, and returns the object
// in its state then.
func OwnAdditions[L drift.LiveObject, W any](ctx context.Context, client Client[L, W], live L, want W) (L, error) {
	patch, err := drift.TakeOver(live, want)
	if err != nil || patch == nil {
		return live, err
	}
	return client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: naming.FieldManager})
}

// Deleter is what deleting needs of a client for one kind.
type Deleter[L metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (L, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// DeleteOwn deletes an object that carries quorate's labels for the cluster. One
// that is gone is deleted.
func DeleteOwn[L metav1.Object](ctx context.Context, client Deleter[L], c schema.EtcdCluster, name string, how metav1.DeletionPropagation) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !naming.Owns(live, c) {
		return errors.New("it does not carry quorate's labels, so it is foreign: check it and delete it manually")
	}
	uid := live.GetUID()
	err = client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &how})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
