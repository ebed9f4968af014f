package stores

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/kube"
)

// OfferTime is for how long a restore may read a backup: its pod may have to wait
// for its node.
const OfferTime = 6 * time.Hour

// SignURL is a URL by which a pod without credentials reads a backup, for as long as a
// restore may take. Asked before, it says early what a restore could not do.
func (s Stores) SignURL(ctx context.Context, store backup.Store, objectURL string) (string, error) {
	if s.Sign != nil {
		return s.Sign(ctx, store, objectURL, OfferTime)
	}
	return store.Sign(ctx, objectURL, OfferTime)
}

// Offer writes the Secret by which a pod reads a backup: a URL that is good for some
// hours, and the certificate of the store's CA, where it has one of its own.
func (s Stores) Offer(ctx context.Context, store backup.Store, objectURL string, secret *corev1ac.SecretApplyConfiguration) error {
	signed, err := s.SignURL(ctx, store, objectURL)
	if err != nil {
		return err
	}
	data := map[string]string{KeyURL: signed}
	if ca := store.Authority(); len(ca) > 0 {
		data[KeyCA] = string(ca)
	}
	secret.WithType(corev1.SecretTypeOpaque).WithStringData(data)
	if _, err := s.Kube.CoreV1().Secrets(*secret.Namespace).Apply(ctx, secret, kube.ApplyOptions()); err != nil {
		return fmt.Errorf("write Secret %s: %w", *secret.Name, err)
	}
	return nil
}

const (
	// KeyURL is the key of the URL in a Secret that offers a backup.
	KeyURL = "url"
	// KeyCA is the key of the certificate of the store's CA in it.
	KeyCA = "ca.crt"
)
