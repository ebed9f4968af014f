package execute_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
)

// 168, 26: what is restored is what the plan has named, also when a newer one has come
// since; and while it runs, it is named.
func TestWhatIsRestoredIsWhatThePlanNamed(t *testing.T) {
	dir := t.TempDir()
	template := "file://" + dir + "/orders/{{ .UID }}.db?root=" + dir
	save := func(uid string, m backup.Manifest) {
		m.Namespace, m.Name, m.ClusterID, m.EtcdVersion = "shop", "orders", "c0", "3.6.16"
		if _, err := (backup.Store{}).Save(t.Context(), strings.Replace(template, "{{ .UID }}", uid, 1), bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
			t.Fatal(err)
		}
	}
	save("old", backup.Manifest{Revision: 7, Keys: 2, Time: time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC)})
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.AsksRestore("")
		w.Wish.Restore.Source = schema.RestoreSource{ClusterName: "orders"}
		w.Wish.Restore.From = &desired.RestoreFrom{Cluster: "orders", Destination: schema.Destination{ObjectURLTemplate: template}}
		p, err := w.R.Plan(w.Context(), w.Wish)
		if err != nil || len(p.Steps) == 0 {
			t.Fatalf("%s, %v", p.Text(), err)
		}
		named := "taken 1999-12-01T00:00:00Z of cluster c0, at revision 7 with 2 keys, 8.03Ki, file://" + dir + "/orders/old.db; none is newer"
		if !strings.Contains(p.Steps[0].Reason, named) {
			t.Errorf("the plan says %q", p.Steps[0].Reason)
		}
		save("new", backup.Manifest{Revision: 9, Time: time.Date(1999, 12, 2, 0, 0, 0, 0, time.UTC)})
		w.MustDo(p.Steps[0].Action)
		r := w.Record().Restored
		if !strings.HasSuffix(r.Object, "/old.db") || !strings.HasSuffix(r.Chosen, "; 1 newer: 1 of cluster c0") {
			t.Errorf("restored %+v", r)
		}
		v := w.Look()
		if s := report.RestoreStatus(v, p, *w.Wish.Restore); s.Status.Restore.Backup != r.Chosen {
			t.Errorf("the status says %+v", s.Status.Restore)
		}
	})
}
