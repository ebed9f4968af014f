package e2e

import (
	"fmt"
	"testing"
)

// TestRestoreKilledAtEachStep kills quorate at the beginning and at the end of each
// step of a restore in the place of a deleted cluster: it continues, and restores once (121).
func TestRestoreKilledAtEachStep(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "restart")
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	writer := w.load()
	writer.Stop()
	before, data := w.record(), w.data()
	deleted := want
	deleted.state, deleted.backup = "Deleted", "Required"
	w.commitFiles("Delete it, and restore it in its place", map[string]string{
		file: w.text(deleted), "clusters/restore.yaml": w.restoreFile("{clusterName: orders}", want),
	})
	w.killThroughout(want.version, 30)
	w.expectVersion(3, want.version)
	if found := w.data(); len(found) < 20 || fmt.Sprint(found) != fmt.Sprint(data) {
		t.Errorf("%d keys of %d, or others, are back", len(found), len(data))
	}
	now := w.record()
	if now.Restored == nil || now.Restored.At.IsZero() || now.ClusterID == before.ClusterID || len(now.Predecessors) != 1 || len(now.Members) != 3 {
		t.Errorf("the record is %+v", now)
	}
	if running := w.restores(); len(running) > 0 {
		t.Errorf("Jobs are left behind: %v", running)
	}
}
