package reconciler

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/schema"
)

// storeOf is how the store of a destination is reached.
func (r *Reconciler) storeOf(ctx context.Context, namespace string, d schema.Destination) (backup.Store, error) {
	store, err := r.storeWith(ctx, namespace, d.Credentials.SecretName)
	store.Recipients = d.Encryption.Recipients
	return store, err
}

// storeWith reaches a store with the credentials of a Secret; "" for those of the
// daemon. The Secret is read each time, and not from the cache: rotated ones work
// at once.
func (r *Reconciler) storeWith(ctx context.Context, namespace, name string) (backup.Store, error) {
	if name == "" {
		return backup.Store{}, nil
	}
	secret, err := r.kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return backup.Store{}, fmt.Errorf("the Secret %s/%s with the credentials of the backup store does not exist: create it, or correct credentials.secretName", namespace, name)
	}
	if err != nil {
		return backup.Store{}, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	// One without data must not pass for none.
	store := backup.Store{Credentials: make(map[string][]byte, len(secret.Data))}
	maps.Copy(store.Credentials, secret.Data)
	return store, nil
}

// clusterStore is storeOf for what the cluster's own file says.
func (r *Reconciler) clusterStore(ctx context.Context, c Cluster) (backup.Store, error) {
	return r.storeOf(ctx, c.Metadata.Namespace, c.Spec.Backup.Destination)
}
