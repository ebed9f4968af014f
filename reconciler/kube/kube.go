// Package kube has what requests to Kubernetes have in common: quorate is the owner
// of what it applies, deletes only what it has made, and lists some at a time.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

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

// ErrForeign is why an object is not applied whose name something else has.
var ErrForeign = errors.New("an object of this name exists, and it is not quorate's: it carries neither quorate's labels for this cluster nor fields that quorate has applied")

// Apply applies an object of c, and removes what others have added to its spec. It returns
// what the API server has made of it. What quorate did not make is not touched, also where it
// comes in between: only what was found to be quorate's own is applied by force.
func Apply[L drift.LiveObject, W any](ctx context.Context, client Client[L, W], c schema.EtcdCluster, name string, want W) (answer L, err error) {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return client.Apply(ctx, want, metav1.ApplyOptions{FieldManager: naming.FieldManager})
	case err != nil:
		return answer, err
	case !Made(live, c):
		return answer, ErrForeign
	}
	if live, err = OwnAdditions(ctx, client, live, want); err != nil {
		return answer, err
	}
	patch, err := withUID(want, live.GetUID())
	if err != nil {
		return answer, err
	}
	return client.Patch(ctx, name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: naming.FieldManager, Force: new(true)})
}

// withUID is an object to apply with a precondition: the UID of the live one.
func withUID(want any, uid types.UID) ([]byte, error) {
	text, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &object.Object); err != nil {
		return nil, err
	}
	object.SetUID(uid)
	return json.Marshal(object.Object)
}

// Made reports whether quorate has made an object for c: it carries the labels of it; or fields
// that quorate has applied, where somebody took the labels off.
func Made(live metav1.Object, c schema.EtcdCluster) bool {
	if naming.Owns(live, c) {
		return true
	}
	of, labelled := live.GetLabels()[naming.LabelCluster]
	return (!labelled || of == c.Metadata.Name) && slices.ContainsFunc(live.GetManagedFields(), drift.IsOwn)
}

// Refusal is why an object is not taken as it is applied, and whether that is what an error is
// about: not one of the connection, of the load, or of another writer.
func Refusal(err error) (problem string, refused bool) {
	if errors.Is(err, ErrForeign) {
		return ErrForeign.Error(), true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	switch status.Status().Reason {
	case metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonInternalError,
		metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonRequestEntityTooLarge:
		return status.Status().Message, true
	default:
		return "", false
	}
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
