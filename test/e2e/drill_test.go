package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/test/lab"
)

// TestRestoreDrills restores the backups of a schedule on trial: one that was damaged
// in its store is found bad, kept and reported; the next one is good; and a daemon that
// is killed in the middle of a drill finds it again. Nothing of a drill is left.
func TestRestoreDrills(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "drill")
	want := spec{version: "3.6.16", replicas: 1}
	w.create(want)
	writer := w.load()
	writer.Stop()
	schedule := func(how string) map[string]string {
		return map[string]string{file: w.text(want), "clusters/backups.yaml": fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: minutely, namespace: %s}
spec:
  schedule: "* * * * *"
  verify: {restore: %s}
  retention: {keepLast: 9}
  backupTemplate: {source: {clusterName: orders}}
`, w.namespace, how)}
	}
	w.commitFiles("Ask for backups", schedule("Never"))
	w.awaitBackup("EtcdBackupSchedule " + w.namespace + "/minutely")

	// 106, 107: what is stored changes behind quorate's back.
	_, taken, err := w.taken(t.Context())
	w.must(err)
	w.must(shared.store.Spoil(strings.TrimPrefix(taken[0].Object, "s3://"+lab.Bucket+"/")))
	w.commitFiles("Restore them on trial", schedule("Always"))
	w.awaitDrill("restore drill found a bad backup")
	w.await("a backup", changeLimit, func(l lab.LogLine) bool { return l.Msg == "backup taken" })
	w.awaitDrill("restore drill passed")

	// 98: another process continues with the next one.
	w.awaitDrill("restore drill started")
	w.must(w.daemon.Restart())
	w.mark = w.daemon.Log.Mark()
	w.awaitDrill("restore drill passed")
	w.commitFiles("That is enough", schedule("Never"))

	_, all, err := w.taken(t.Context())
	w.must(err)
	passed := 0
	for _, m := range all {
		switch {
		case m.Object == taken[0].Object:
			if !strings.Contains(m.Drill.Result, "the one that was verified has") {
				t.Errorf("the damaged one: %+v", m.Drill)
			}
		case m.Drill.Result == backup.DrillPassed:
			passed++
			t.Logf("restored on trial in %s: %d keys at revision %d", m.Drill.Duration, m.Drill.Keys, m.Drill.Revision)
			if m.Drill.Keys < 20 || m.Drill.Hash != m.Hash || m.Drill.Revision < m.Revision || m.Drill.Duration <= 0 {
				t.Errorf("%+v of %+v", m.Drill, m)
			}
		case m.Drill.Result != "":
			t.Errorf("a good one: %+v", m.Drill)
		}
	}
	if passed < 2 {
		t.Errorf("%d drills passed", passed)
	}
	w.eventually("nothing to be left of drills", holdLimit, func(ctx context.Context) (bool, error) {
		named := metav1.ListOptions{LabelSelector: "quorate.dev/drill-of"}
		pods, err := w.cluster.Client.CoreV1().Pods(w.namespace).List(ctx, named)
		if err != nil {
			return false, err
		}
		secrets, err := w.cluster.Client.CoreV1().Secrets(w.namespace).List(ctx, named)
		return err == nil && len(pods.Items) == 0 && len(secrets.Items) == 0, err
	})
}

// awaitDrill waits for what is said of a drill of the schedule.
func (w *world) awaitDrill(says string) {
	w.Helper()
	w.await(says, changeLimit, func(l lab.LogLine) bool {
		return l.Msg == says && l.Request == "EtcdBackupSchedule "+w.namespace+"/minutely"
	})
}
