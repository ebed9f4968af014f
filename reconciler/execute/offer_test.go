package execute_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
)

// 120: a recovery rests on what its backup says of itself.
func TestARecoveryRestsOnItsBackup(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
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
