package stores_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

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
