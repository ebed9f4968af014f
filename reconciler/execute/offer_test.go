package execute_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
)

// 120: a recovery rests on what its backup says of itself.
func TestARecoveryRestsOnItsBackup(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		url := reconcilertest.StoredBackup(w.T, func(m *backup.Manifest) { m.ClusterID, m.EtcdVersion = "c1", "3.6.16" })
		begin := action.BeginRecovery{OneShot: "x", ClusterID: "c1", Member: "orders-0", ObjectURL: url, Version: "3.6.16"}
		backuptest.WantError(t, w.Do(begin), "begin the recovery", "no URL by which a pod could read")
		w.Sign(func(context.Context, backup.Store, string, time.Duration) (string, error) {
			return "https://store/1.db", nil
		})
		w.MustDo(begin)
		if g := w.Record().Recovering; g == nil || g.Revision != 7 || len(g.SHA256) != 64 || g.ObjectURL != url {
			t.Errorf("it rests on %+v", g)
		}
	})
}

// The record does not change for a backup that is refused, and there is no Secret
// where nothing is offered.
func TestARefusedBackupBeginsNothing(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		err := w.Do(action.BeginRecovery{OneShot: "x", ClusterID: "c1", Member: "orders-0", ObjectURL: "file:///nowhere/1.db", Version: "3.6.16"})
		if err == nil || w.Record().Recovering != nil {
			t.Errorf("%v, the record is %+v", err, w.Record())
		}
		w.MustDo(action.BeginRecovery{OneShot: "y", ClusterID: "c1", Member: "orders-0", Revision: 7, Version: "3.6.16"})
		g := w.Record().Recovering
		if err := w.R.Executor.OfferBackup(w.Context(), w.Look(), *g); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if o, err := w.API.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", jobs.RestoreName("orders", *g)); err == nil {
			t.Errorf("there is a Secret: %v", o)
		}
	})
}

// A recovery reads its backup as a hold names it, with the parameters of --backup-url, and
// nowhere else as the daemon.
func TestARecoveryReadsWhereTheDaemonMay(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		begin := action.BeginRecovery{OneShot: "x", ClusterID: "c1", Member: "orders-0", Version: "3.6.16"}
		begin.ObjectURL = "s3://backups/shop/orders/1.db?region=us-east-1&endpoint=https://attacker.example"
		backuptest.WantError(t, w.Do(begin), "begin the recovery", "is not used: the parameter endpoint ")
		begin.ObjectURL = "azblob://backups/1.db?domain=attacker.example"
		backuptest.WantError(t, w.Do(begin), "is not used: the parameter domain ")
		// With the parameters of the flag it would be reached without TLS.
		w.Reconfigure(func(o *reconciler.Options) {
			o.BackupURL = "s3://backups/{{ .UID }}.db?region=us-east-1&endpoint=http://minio"
		})
		begin.ObjectURL = "s3://backups/shop/orders/1.db"
		backuptest.WantError(t, w.Do(begin), "is not used: by its parameter endpoint it is reached without TLS")
		if w.Record().Recovering != nil {
			t.Errorf("the record is %+v", w.Record())
		}
	})
}

// 190: a URL may end with the credentials that signed it, long before the time that it
// names: it is signed again for as long as the restore runs, and no longer.
func TestAnOfferIsRenewedWhileTheRestoreRuns(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		signed := 0
		w.Sign(func(context.Context, backup.Store, string, time.Duration) (string, error) {
			signed++
			return fmt.Sprintf("https://store/1.db?signature=%d", signed), nil
		})
		url := reconcilertest.StoredBackup(w.T, func(m *backup.Manifest) { m.ClusterID, m.EtcdVersion = "c1", "3.6.16" })
		w.Wish.Spec.Recovery.ObjectURL = url
		w.MustDo(action.BeginRecovery{OneShot: "x", ClusterID: "c1", Member: "orders-1", ObjectURL: url, Version: "3.6.16"})
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0, Partition: 3})
		w.Settle()
		g := *w.Record().Recovering
		w.MustDo(action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: g.NewClusterID})
		offered := func() string {
			t.Helper()
			secret, err := w.API.CoreV1().Secrets("shop").Get(w.Context(), jobs.RestoreName("orders", g), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return string(secret.Data["url"])
		}
		first := offered()
		w.MustPass()
		if offered() != first {
			t.Errorf("it is signed at once again")
		}
		time.Sleep(6 * time.Minute)
		w.MustPass()
		second := offered()
		if second == first {
			t.Errorf("after six minutes it is %s", second)
		}
		time.Sleep(time.Minute)
		w.MustPass()
		if offered() != second {
			t.Error("it is signed with every pass")
		}
		// One that somebody deleted is written again: the pod would wait for it forever.
		if err := w.API.CoreV1().Secrets("shop").Delete(w.Context(), jobs.RestoreName("orders", g), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.MustPass()
		if offered() == second {
			t.Error("it is the deleted one")
		}
	})
}

// 192: a backup in the files of a volume is restored by a Job that mounts the claim with
// them; what it reads by does not end, and is not written again.
func TestABackupOnAVolumeIsRestored(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		url := reconcilertest.StoredBackup(w.T, func(m *backup.Manifest) { m.ClusterID, m.EtcdVersion = "c1", "3.6.16" })
		begin := action.BeginRecovery{OneShot: "x", ClusterID: "c1", Member: "orders-1", ObjectURL: url, Version: "3.6.16"}
		backuptest.WantError(t, w.Do(begin), "name a PersistentVolumeClaim that has the files in podAccess.claimName")
		w.Wish.Spec.Backup.Destination.PodAccess.ClaimName, w.Wish.Spec.Recovery.ObjectURL = "backups", url
		w.MustDo(begin)
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0, Partition: 3})
		w.Settle()
		g := *w.Record().Recovering
		w.MustDo(action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: g.NewClusterID})
		pod := reconcilertest.JobsOf(w)[0].Spec.Template.Spec
		root := backup.FileRoot(url)
		if v, m := pod.Volumes[2], pod.Containers[0].VolumeMounts[2]; root == "" || v.PersistentVolumeClaim.ClaimName != "backups" || m.Name != v.Name || m.MountPath != root || !m.ReadOnly {
			t.Errorf("it mounts %+v as %+v", v, m)
		}
		offered := func() *corev1.Secret {
			t.Helper()
			secret, err := w.API.CoreV1().Secrets("shop").Get(w.Context(), jobs.RestoreName("orders", g), metav1.GetOptions{})
			if err != nil || string(secret.Data["object"]) != url || len(secret.Data["url"]) > 0 {
				t.Fatalf("%v, %+v", err, secret)
			}
			return secret
		}
		first := offered().ResourceVersion
		time.Sleep(time.Hour)
		w.MustPass()
		if offered().ResourceVersion != first {
			t.Error("it is written again")
		}
	})
}
