package execute_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// kept stores backups of shop/orders in a directory, and returns the template of their URLs.
func kept(t *testing.T, backups map[string]backup.Manifest) string {
	t.Helper()
	dir := t.TempDir()
	template := "file://" + dir + "/orders/{{ .UID }}.db?root=" + dir
	for uid, m := range backups {
		m.Namespace, m.Name, m.EtcdVersion = "shop", "orders", "3.6.16"
		object := strings.Replace(template, "{{ .UID }}", uid, 1)
		if _, err := (backup.Store{}).Save(t.Context(), object, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
			t.Fatal(err)
		}
	}
	return template
}

// asksNewest lets Git ask for the newest backup of a cluster.
func asksNewest(w *reconcilertest.World, template string, edits ...func(*schema.RestoreSource)) {
	w.AsksRestore("")
	source := schema.RestoreSource{ClusterName: "orders"}
	for _, edit := range edits {
		edit(&source)
	}
	w.Wish.Restore.Source = source
	w.Wish.Restore.From = &desired.RestoreFrom{Cluster: "orders", Destination: schema.Destination{ObjectURLTemplate: template}}
}

// The world begins on 2000-01-01.
func on(month, day int) time.Time {
	return time.Date(1999, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

// 168, 169: the newest backup is that of the cluster that is meant. Where two may be meant,
// none is chosen, nothing is made, and the candidates are named side by side; Git then
// names one.
func TestANewestBackupThatIsNotClearIsRefused(t *testing.T) {
	tomorrow := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)
	two := map[string]backup.Manifest{
		"old": {ClusterID: "c1", Revision: 900, Keys: 300, Time: on(12, 1)}, "older": {ClusterID: "c1", Revision: 800, Keys: 290, Time: on(11, 1)},
		"new": {ClusterID: "c2", Revision: 12, Keys: 3, Time: on(12, 2)},
	}
	ahead := map[string]backup.Manifest{"good": {ClusterID: "c1", Revision: 9, Time: on(12, 1)}, "ahead": {ClusterID: "c1", Revision: 7, Time: tomorrow}}
	ofRecord := func(id string) func(*reconcilertest.World) {
		return func(w *reconcilertest.World) {
			rec := record.New("orders-1")
			rec.ClusterID, rec.Members, rec.Deleted = id, map[string]string{"orders-0": "a0"}, true
			if err := (record.Store{Kube: w.API}).Create(w.Context(), w.Wish.EtcdCluster, rec); err != nil {
				t.Fatal(err)
			}
			w.Settle()
		}
	}
	for name, c := range map[string]struct {
		backups map[string]backup.Manifest
		there   func(*reconcilertest.World)
		source  func(*schema.RestoreSource)
		chosen  string
		refused []string
	}{
		"of two clusters": {backups: two, refused: []string{
			"the backups are of 2 clusters, and no record says which one is meant", "of cluster c1, ", "revision 900 with 300 keys", "/orders/old.db (2 backups)",
			"of cluster c2, ", "revision 12 with 3 keys", "/orders/new.db (1 backup)", "spec.source.objectURL", "spec.source.clusterID",
		}},
		"of the one that Git names":              {backups: two, source: func(s *schema.RestoreSource) { s.ClusterID = "c1" }, chosen: "old.db"},
		"of the other one that Git names":        {backups: two, source: func(s *schema.RestoreSource) { s.ClusterID = "c2" }, chosen: "new.db"},
		"of one that there is not":               {backups: two, source: func(s *schema.RestoreSource) { s.ClusterID = "c3" }, refused: []string{"there is no backup of cluster orders with cluster ID c3 among the 3 backups"}},
		"of the one that the record names":       {backups: two, there: ofRecord("c1"), chosen: "old.db"},
		"of one that was made without a restore": {backups: two, there: ofRecord("c2"), refused: []string{"looks like a cluster that began empty", "revision 900", "revision 12"}},
		"of one that the record does not name":   {backups: two, there: ofRecord("c9"), refused: []string{"none of them is of the cluster that the record names", "c9", "c1", "c2"}},
		"dated in the future":                    {backups: ahead, refused: []string{"the first one is dated in the future", "good.db", "ahead.db", "2000-01-02T00:00:00Z"}},
		"before a time":                          {backups: ahead, source: func(s *schema.RestoreSource) { s.Before = &metav1.Time{Time: on(12, 30)} }, chosen: "good.db"},
	} {
		template := kept(t, c.backups)
		reconcilertest.Run(t, func(w *reconcilertest.World) {
			edit := c.source
			if edit == nil {
				edit = func(*schema.RestoreSource) {}
			}
			asksNewest(w, template, edit)
			begins := w.Begins()
			if c.there != nil {
				c.there(w)
				begins.InPlace = true
			}
			err := w.Do(begins)
			if c.chosen != "" {
				if err != nil || !strings.HasSuffix(w.Record().Restored.Object, c.chosen) {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
			if err == nil {
				t.Errorf("%s: %s is restored", name, w.Record().Restored.Object)
				return
			}
			backuptest.WantError(t, err, c.refused...)
			if _, made := w.Contents()["ConfigMap orders-record"]; made && c.there == nil {
				t.Errorf("%s: there is a record", name)
			}
		})
	}
}

// 184: a backup that a drill has condemned is not chosen where the store took no word of it
// and the schedule's record alone knows; a record that cannot be read might condemn any.
func TestABackupCondemnedInAScheduleIsNotChosen(t *testing.T) {
	template := kept(t, map[string]backup.Manifest{
		"good": {ClusterID: "c1", Revision: 7, Time: on(12, 1)}, "newest": {ClusterID: "c1", Revision: 9, Time: on(12, 2), Drill: backup.Drill{Time: on(12, 3), Result: backup.DrillPassed}},
	})
	object := desired.WithoutQuery(strings.Replace(template, "{{ .UID }}", "newest", 1))
	verdict := func(day int, result string) string {
		return fmt.Sprintf(`{"formatVersion": 1, "verdicts": {%q: {"time": %q, "result": %q}}}`, object, on(12, day).Format(time.RFC3339), result)
	}
	for name, c := range map[string]struct{ record, namespace, chosen string }{
		"bad":                                 {verdict(4, "the hash differs"), "shop", "good.db"},
		"bad, and good since by its manifest": {verdict(2, "the hash differs"), "shop", "newest.db"},
		"good":                                {verdict(4, backup.DrillPassed), "shop", "newest.db"},
		"of another namespace":                {verdict(4, "the hash differs"), "lab", "newest.db"},
		"not readable":                        {"{", "shop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Run(t, func(w *reconcilertest.World) {
				asksNewest(w, template)
				cm := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: "nightly-backup-schedule", Namespace: c.namespace, Labels: map[string]string{naming.LabelSchedule: "nightly"}},
					Data:       map[string]string{naming.KeyRecord: c.record},
				}
				if _, err := w.API.CoreV1().ConfigMaps(c.namespace).Create(w.Context(), cm, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				err := w.Do(w.Begins())
				if c.chosen == "" {
					backuptest.WantError(t, err, "schedule nightly", "shop/nightly-backup-schedule is not readable", "spec.source.objectURL")
					return
				}
				if err != nil || !strings.HasSuffix(w.Record().Restored.Object, c.chosen) {
					t.Errorf("%v, %+v", err, w.Record().Restored)
				}
			})
		})
	}
}
