package reconciler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// offerTime is for how long a restore may read a backup: its pod may have to wait
// for its node.
const offerTime = 6 * time.Hour

// rest rests a recovery on a backup, which is read whole and checked. A backup of
// another cluster, or one that the members' release cannot take, is refused.
func (r *Reconciler) rest(ctx context.Context, g *RecoveringRecord, store backup.Store, a plan.BeginRecovery, d schema.DecryptionSpec) error {
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
	if g.VerifiedBackup, err = verified(m, d, "spec.recovery.decryption.secretName"); err != nil {
		return err
	}
	// Not to find out later that the restore cannot read it.
	_, err = r.sign(ctx, store, a.ObjectURL, offerTime)
	return err
}

// signURL is a URL by which a pod without credentials reads a backup.
func signURL(ctx context.Context, store backup.Store, objectURL string, expiry time.Duration) (string, error) {
	return store.Sign(ctx, objectURL, expiry)
}

// offerBackup writes the Secret by which the restore finds its backup.
func (r *Reconciler) offerBackup(ctx context.Context, v *view, g RecoveringRecord) error {
	if g.ObjectURL == "" {
		return nil
	}
	store, err := r.storeWith(ctx, v.cluster.Metadata.Namespace, g.Credentials)
	if err != nil {
		return err
	}
	c := v.cluster.Metadata
	secret := corev1ac.Secret(restoreName(c.Name, g), c.Namespace).WithLabels(map[string]string{labelRestore: c.Name})
	return r.offer(ctx, store, g.ObjectURL, secret)
}

// offer writes the Secret by which a pod reads a backup: a URL that is good for some
// hours, and the certificate of the store's CA, where it has one of its own.
func (r *Reconciler) offer(ctx context.Context, store backup.Store, objectURL string, secret *corev1ac.SecretApplyConfiguration) error {
	signed, err := r.sign(ctx, store, objectURL, offerTime)
	if err != nil {
		return err
	}
	data := map[string]string{keyBackupURL: signed}
	if ca := store.Authority(); len(ca) > 0 {
		data[keyBackupCA] = string(ca)
	}
	secret.WithType(corev1.SecretTypeOpaque).WithStringData(data)
	if _, err := r.kube.CoreV1().Secrets(*secret.Namespace).Apply(ctx, secret, applyOptions()); err != nil {
		return fmt.Errorf("write Secret %s: %w", *secret.Name, err)
	}
	return nil
}
