package execute_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// 206: a backup that has no room on the volumes of the new cluster is refused before
// anything is made, and with the size to ask for; a compressed one by what is in it.
func TestARestoreThatHasNoRoomIsNotBegun(t *testing.T) {
	object := "file://" + t.TempDir() + "/1.db"
	store := backup.Store{Compress: true}
	if _, err := store.Save(t.Context(), object, bytes.NewReader(backuptest.Snapshot(32<<20)), backup.Manifest{Namespace: "shop", Name: "orders", EtcdVersion: "3.6.16", Revision: 7, Time: time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	const want = "has 32Mi, so that its restore needs 179.2Mi, and the volumes of the new cluster have 170Mi; set spec.clusterTemplate.storage.size to more than that"
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.AsksRestore(object)
		w.Wish.Spec.Storage.Size = resource.MustParse("170Mi")
		chosen, err := w.R.Executor.Stores.Choose(w.Context(), w.Wish, w.R.Executor.Now())
		if err != nil || !strings.Contains(chosen.Problem, want) {
			t.Errorf("%+v, %v", chosen, err)
		}
		if err := w.Do(w.Begins()); err == nil || !strings.Contains(err.Error(), want) || len(w.Contents()) > 0 {
			t.Errorf("%v", err)
		}
		w.Wish.Spec.Storage.Size = resource.MustParse("180Mi")
		if err := w.Do(w.Begins()); err != nil {
			t.Error(err)
		}
	})
}

// 126: what is chosen is looked for where the files say, and read whole.
func TestARestoreFindsItsBackup(t *testing.T) {
	dir := t.TempDir()
	url := "file://" + dir + "/orders/{{ .UID }}.db?root=" + dir
	for uid, m := range map[string]backup.Manifest{
		"one": {Namespace: "shop", Name: "orders", EtcdVersion: "3.6.16", Revision: 7, Time: time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC)},
		"two": {Namespace: "shop", Name: "orders", EtcdVersion: "3.6.16", Revision: 8, Time: time.Date(1999, 12, 2, 0, 0, 0, 0, time.UTC)},
	} {
		object := strings.Replace(url, "{{ .UID }}", uid, 1)
		if _, err := (backup.Store{}).Save(t.Context(), object, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		before *metav1.Time
		want   string
	}{
		"the newest":         {nil, "two.db"},
		"before a time":      {&metav1.Time{Time: time.Date(1999, 12, 2, 0, 0, 0, 0, time.UTC)}, "one.db"},
		"before all of them": {&metav1.Time{Time: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)}, ""},
	} {
		reconcilertest.Run(t, func(w *reconcilertest.World) {
			w.AsksRestore("")
			w.Wish.Restore.Source = schema.RestoreSource{ClusterName: "orders", Before: c.before}
			w.Wish.Restore.From = &desired.RestoreFrom{Cluster: "orders", Destination: schema.Destination{ObjectURLTemplate: url}}
			err := w.Do(w.Begins())
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), "there is no backup of cluster orders before 1999-01-01T00:00:00Z among the 2 backups at file://") {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Record().Restored.Object; !strings.HasSuffix(got, c.want) {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		})
	}
}
