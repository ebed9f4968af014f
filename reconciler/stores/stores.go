package stores

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/backup/signing"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/schema"
)

// Stores reaches the stores of backups. Credentials come from Secrets, which are read
// each time and not from a cache: rotated ones work at once.
type Stores struct {
	Kube kubernetes.Interface
	Log  *slog.Logger
	// Sign gives out the URL by which a pod without credentials reads a backup. Default
	// that of the store itself.
	Sign func(ctx context.Context, store backup.Store, objectURL string, expiry time.Duration) (string, error)
	// Drivers are those of the stores that are no directories.
	Drivers driver.Set
	// Calls says how long and how often the stores are called, for all together.
	Calls *backup.Calls
	// BackupURL is the template of the daemon's place for backups, "" for none. Its
	// parameters say where the daemon's own credentials go.
	BackupURL string
	// More are templates of further places that the daemon's own credentials serve, see
	// schema.ObjectURLPlace. Without one they serve that of BackupURL alone.
	More []string
	// Keys sign the manifests of backups, and say whose are trusted; nil for none.
	Keys *signing.Keys
	// Insecure lets stores be reached without TLS.
	Insecure bool
}

// Open is the store of a destination, to reach what is at a URL.
func (s Stores) Open(ctx context.Context, namespace string, d schema.Destination, objectURL string) (backup.Store, error) {
	store, err := s.OpenWith(ctx, namespace, d.Credentials.SecretName, objectURL)
	store.Recipients, store.Compress = d.Encryption.Recipients, d.Compression != schema.CompressionNone
	return store, err
}

// OpenWith is a store with the credentials of a Secret, "" for those of the daemon, to
// reach what is at a URL, and nothing else: each URL is judged before anything is sent.
func (s Stores) OpenWith(ctx context.Context, namespace, name, objectURL string) (backup.Store, error) {
	store, err := s.with(ctx, namespace, name)
	if err == nil {
		err = s.permit(namespace, store, objectURL)
	}
	if err != nil {
		return backup.Store{}, err
	}
	store.Key = s.Keys.Own()
	return store, nil
}

// with is a store with the credentials of a Secret.
func (s Stores) with(ctx context.Context, namespace, name string) (backup.Store, error) {
	if name == "" {
		return backup.Store{Drivers: s.Drivers, Calls: s.Calls}, nil
	}
	secret, err := s.Kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return backup.Store{}, fmt.Errorf("the Secret %s/%s with the credentials of the backup store does not exist: create it, or correct credentials.secretName", namespace, name)
	}
	if err != nil {
		return backup.Store{}, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	if err := kube.Allowed(secret); err != nil {
		return backup.Store{}, err
	}
	// One without data must not pass for none.
	store := backup.Store{Drivers: s.Drivers, Calls: s.Calls, Credentials: make(map[string][]byte, len(secret.Data))}
	maps.Copy(store.Credentials, secret.Data)
	return store, nil
}

// OfCluster is the store of the backups that a cluster's own file asks for.
func (s Stores) OfCluster(ctx context.Context, c desired.Cluster, objectURL string) (backup.Store, error) {
	return s.Open(ctx, c.Metadata.Namespace, c.Spec.Backup.Destination, objectURL)
}
