package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/test/lab"
)

// TestScheduledBackups takes one backup once and others every minute, of which two
// are kept, and kills the daemon in between: none is lost, and none is taken twice.
func TestScheduledBackups(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "schedule")
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	writer := w.load()

	// 95, 96: both are asked for by one commit.
	w.commitFiles("Ask for backups", map[string]string{file: w.text(want), "clusters/backups.yaml": w.backupFiles("minutely", "* * * * *", 2)})
	w.awaitBackup("EtcdBackup " + w.namespace + "/before-sale")
	w.awaitBackup("EtcdBackupSchedule " + w.namespace + "/minutely")

	// 98: another process continues.
	w.must(w.daemon.Restart())
	w.mark = w.daemon.Log.Mark()
	w.awaitBackup("EtcdBackupSchedule " + w.namespace + "/minutely")
	w.awaitBackup("EtcdBackupSchedule " + w.namespace + "/minutely")

	// 102: two are left of the schedule, and the one that was asked for.
	w.eventually("two of the schedule to be left", holdLimit, func(ctx context.Context) (bool, error) {
		once, scheduled, err := w.taken(ctx)
		return len(once) == 1 && len(scheduled) == 2, err
	})
	_, scheduled, err := w.taken(t.Context())
	w.must(err)
	if a, b := scheduled[0].Time.Truncate(time.Minute), scheduled[1].Time.Truncate(time.Minute); a.Equal(b) {
		t.Errorf("two backups for one minute: %s", a)
	}
	for _, m := range scheduled {
		if m.ClusterID != w.record().ClusterID || m.Hash == 0 || m.EtcdVersion != want.version {
			t.Errorf("%+v", m)
		}
	}
	w.finishLoad(writer)
}

// awaitBackup waits for a good backup of a request.
func (w *world) awaitBackup(request string) {
	w.Helper()
	w.await("a backup of "+request, changeLimit, func(l lab.LogLine) bool {
		return l.Msg == "backup taken" && l.Request == request
	})
}

// taken are the backups of this test's namespace that were asked for once, and
// those of its schedule, newest first.
func (w *world) taken(ctx context.Context) (once, scheduled []backup.Manifest, err error) {
	w.must(shared.store.UseCredentials())
	list, err := backup.Store{Drivers: clouds.Drivers()}.List(ctx, shared.store.ObjectURL(w.namespace+"/"))
	for _, m := range list {
		if m.Request == "before-sale" {
			once = append(once, m)
		} else if m.Schedule != "" {
			scheduled = append(scheduled, m)
		}
	}
	return once, scheduled, err
}

// backupFiles is a document that asks for one backup, before-sale, and for those of a
// schedule, of which some are kept.
func (w *world) backupFiles(schedule, times string, keep int) string {
	return fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdBackup
metadata: {name: before-sale, namespace: %[1]s}
spec: {source: {clusterName: orders}}
---
apiVersion: quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  schedule: %[3]q
  retention: {keepLast: %[4]d}
  backupTemplate: {source: {clusterName: orders}}
`, w.namespace, schedule, times, keep)
}
