package reconciler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/schema"
)

// offerTime is for how long a restore may read a backup: its pod may have to wait
// for its node.
const offerTime = 6 * time.Hour

// rest rests a recovery on a backup, which is read whole and checked. A backup of
// another cluster, or one that the members' release cannot take, is refused.
func (e *Executor) rest(ctx context.Context, g *RecoveringRecord, store backup.Store, a action.BeginRecovery, d schema.DecryptionSpec) error {
	m, err := store.Verify(ctx, a.ObjectURL)
	if err != nil {
		return err
	}
	if m.ClusterID != a.ClusterID {
		return fmt.Errorf("the backup at %s is of cluster %s, and this is cluster %s: name a backup of this one", m.Object, m.ClusterID, a.ClusterID)
	}
	if !startsOn(m.EtcdVersion, a.Version) {
		return fmt.Errorf("the backup at %s was made by etcd %q, and the pods are made for %s, which cannot start on it: name another one", m.Object, m.EtcdVersion, a.Version)
	}
	if g.Verified, err = m.Verified(d, "spec.recovery.decryption.secretName"); err != nil {
		return err
	}
	// Fail now rather than when the restore Job reads the backup.
	_, err = e.stores.SignURL(ctx, store, a.ObjectURL)
	return err
}

// SignURL is a URL by which a pod without credentials reads a backup, for as long as a
// restore may take. Asked before, it says early what a restore could not do.
func (s Stores) SignURL(ctx context.Context, store backup.Store, objectURL string) (string, error) {
	if s.Sign != nil {
		return s.Sign(ctx, store, objectURL, offerTime)
	}
	return store.Sign(ctx, objectURL, offerTime)
}

// offerBackup writes the Secret by which the restore finds its backup.
func (e *Executor) offerBackup(ctx context.Context, v *view, g RecoveringRecord) error {
	if g.ObjectURL == "" {
		return nil
	}
	store, err := e.stores.OpenWith(ctx, v.cluster.Metadata.Namespace, g.Credentials)
	if err != nil {
		return err
	}
	c := v.cluster.Metadata
	secret := corev1ac.Secret(restoreName(c.Name, g), c.Namespace).WithLabels(map[string]string{naming.LabelRestoreOf: c.Name})
	return e.stores.Offer(ctx, store, g.ObjectURL, secret)
}

// Offer writes the Secret by which a pod reads a backup: a URL that is good for some
// hours, and the certificate of the store's CA, where it has one of its own.
func (s Stores) Offer(ctx context.Context, store backup.Store, objectURL string, secret *corev1ac.SecretApplyConfiguration) error {
	signed, err := s.SignURL(ctx, store, objectURL)
	if err != nil {
		return err
	}
	data := map[string]string{keyBackupURL: signed}
	if ca := store.Authority(); len(ca) > 0 {
		data[keyBackupCA] = string(ca)
	}
	secret.WithType(corev1.SecretTypeOpaque).WithStringData(data)
	if _, err := s.Kube.CoreV1().Secrets(*secret.Namespace).Apply(ctx, secret, kube.ApplyOptions()); err != nil {
		return fmt.Errorf("write Secret %s: %w", *secret.Name, err)
	}
	return nil
}
