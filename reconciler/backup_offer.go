package reconciler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/plan"
)

// offerTime is for how long a restore may read a backup: its pod may have to wait
// for its node.
const offerTime = 6 * time.Hour

// rest rests a recovery on a backup, which is read whole and checked. A backup of
// another cluster, or one that the members' release cannot take, is refused.
func (g *RecoveringRecord) rest(ctx context.Context, store backup.Store, a plan.BeginRecovery) error {
	m, err := store.Verify(ctx, a.ObjectURL)
	if err != nil {
		return err
	}
	if m.ClusterID != a.ClusterID {
		return fmt.Errorf("the backup at %s is of cluster %s, and this is cluster %s: name a backup of this one", m.Object, m.ClusterID, a.ClusterID)
	}
	if m.Encrypted {
		// The pod that restores is given a URL, and no private key.
		return fmt.Errorf("the backup at %s is encrypted, and a recovery in place has no private key: go on from a member, or restore it with an EtcdRestore that names the Secret with the key", m.Object)
	}
	if !startsOn(m.EtcdVersion, a.Version) {
		return fmt.Errorf("the backup at %s was made by etcd %q, and the pods are made for %s, which cannot start on it: name another one", m.Object, m.EtcdVersion, a.Version)
	}
	g.Revision, g.SHA256, g.Size = m.Revision, m.SHA256, m.Size
	// Not to find out later that the restore cannot read it.
	_, err = store.Sign(ctx, a.ObjectURL, offerTime)
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
	signed, err := r.sign(ctx, store, g.ObjectURL, offerTime)
	if err != nil {
		return err
	}
	c := v.cluster.EtcdCluster
	name := restoreName(c.Metadata.Name, g)
	secret := corev1ac.Secret(name, c.Metadata.Namespace).WithLabels(map[string]string{labelRestore: c.Metadata.Name}).
		WithType(corev1.SecretTypeOpaque).WithStringData(map[string]string{keyBackupURL: signed})
	if _, err := r.kube.CoreV1().Secrets(c.Metadata.Namespace).Apply(ctx, secret, applyOptions()); err != nil {
		return fmt.Errorf("write Secret %s: %w", name, err)
	}
	return nil
}
