package reconciler

import (
	"context"
	"fmt"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// rest rests a recovery on a backup, which is read whole and checked. A backup of
// another cluster, or one that the members' release cannot take, is refused.
func (e *Executor) rest(ctx context.Context, g *record.Recovering, store backup.Store, a action.BeginRecovery, d schema.DecryptionSpec) error {
	m, err := store.Verify(ctx, a.ObjectURL)
	if err != nil {
		return err
	}
	if m.ClusterID != a.ClusterID {
		return fmt.Errorf("the backup at %s is of cluster %s, and this is cluster %s: name a backup of this one", m.Object, m.ClusterID, a.ClusterID)
	}
	if !release.StartsOn(m.EtcdVersion, a.Version) {
		return fmt.Errorf("the backup at %s was made by etcd %q, and the pods are made for %s, which cannot start on it: name another one", m.Object, m.EtcdVersion, a.Version)
	}
	if g.Verified, err = m.Verified(d, "spec.recovery.decryption.secretName"); err != nil {
		return err
	}
	// Fail now rather than when the restore Job reads the backup.
	_, err = e.stores.SignURL(ctx, store, a.ObjectURL)
	return err
}

// offerBackup writes the Secret by which the restore finds its backup.
func (e *Executor) offerBackup(ctx context.Context, v *view, g record.Recovering) error {
	if g.ObjectURL == "" {
		return nil
	}
	store, err := e.stores.OpenWith(ctx, v.cluster.Metadata.Namespace, g.Credentials)
	if err != nil {
		return err
	}
	c := v.cluster.Metadata
	secret := corev1ac.Secret(jobs.RestoreName(c.Name, g), c.Namespace).WithLabels(map[string]string{naming.LabelRestoreOf: c.Name})
	return e.stores.Offer(ctx, store, g.ObjectURL, secret)
}
