package execute

import (
	"bytes"
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// offered is a backup of cluster c1 at revision 7, made by etcd 3.6.16.
func offered(t *testing.T, url string, snapshot []byte, edits ...func(*backup.Manifest)) backup.Manifest {
	t.Helper()
	m := backup.Manifest{ClusterID: "c1", EtcdVersion: "3.6.16", Revision: 7}
	for _, edit := range edits {
		edit(&m)
	}
	saved, err := backup.Store{}.Save(t.Context(), url, bytes.NewReader(snapshot), m)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// A recovery records what the manifest says of the backup, once a pod without credentials can read it.
func TestRecoveryRecordsItsBackup(t *testing.T) {
	dir := t.TempDir()
	url := "file://" + dir + "/c1.db?root=" + dir
	m := offered(t, url, backuptest.Snapshot(64<<10))
	signed := ""
	e := &Executor{Stores: stores.Stores{Sign: func(_ context.Context, _ backup.Store, objectURL string, _ time.Duration) (string, error) {
		signed = objectURL
		return "https://store/c1.db?signature=x", nil
	}}}
	var g record.Recovering
	begin := action.BeginRecovery{ClusterID: "c1", ObjectURL: url, Version: "3.6.16"}
	if err := e.Rest(t.Context(), &g, backup.Store{}, begin, schema.RecoverySpec{}); err != nil {
		t.Fatal(err)
	}
	if g.Revision != 7 || g.SHA256 != m.SHA256 || g.Size != m.Size || signed != url {
		t.Errorf("it rests on %+v, the backup is %+v, and a URL was signed for %q", g, m, signed)
	}
}

// I8, I11, 120: what cannot be gone on from is refused before anything is touched.
func TestABackupThatARecoveryRefuses(t *testing.T) {
	dir := t.TempDir()
	url := func(name string) string { return "file://" + dir + "/" + name + "?root=" + dir }
	snapshot := backuptest.Snapshot(8 << 10)
	offered(t, url("other/1.db"), snapshot, func(m *backup.Manifest) { m.ClusterID = "c9" })
	offered(t, url("newer/1.db"), snapshot, func(m *backup.Manifest) { m.EtcdVersion = "3.7.3" })
	offered(t, url("older/1.db"), snapshot, func(m *backup.Manifest) { m.EtcdVersion = "3.4.34" })
	offered(t, url("unknown/1.db"), snapshot, func(m *backup.Manifest) { m.EtcdVersion = "" })
	offered(t, url("local/1.db"), snapshot)
	e := &Executor{}
	for name, want := range map[string]string{
		"other":   "is of cluster c9, and this is cluster c1: name a backup of this one",
		"newer":   `was made by etcd "3.7.3", and the pods are made for 3.6.16, which cannot start on it`,
		"older":   `was made by etcd "3.4.34"`,
		"unknown": `was made by etcd ""`,
		"local":   "gives out no URL by which a pod could read the backup",
		"absent":  "no backup is stored there",
	} {
		var g record.Recovering
		err := e.Rest(t.Context(), &g, backup.Store{}, action.BeginRecovery{ClusterID: "c1", ObjectURL: url(name + "/1.db"), Version: "3.6.16"}, schema.RecoverySpec{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// AsksRecovery is a commit that asks for a recovery of c1.
func AsksRecovery(member, objectURL string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.Recovery = schema.RecoverySpec{ClusterID: "c1", Member: member, ObjectURL: objectURL}
	}
}

func HasDrift(objects []state.Object) bool {
	for _, o := range objects {
		if o.Kind == "StatefulSet" && o.State != state.ObjectInSync {
			return true
		}
	}
	return false
}

// I13, I24: the record changes only from what an action rests on.
func TestRecoveryRecordTransitions(t *testing.T) {
	g := record.Recovering{OneShot: "a", ClusterID: "c1", Token: "t2", NewClusterID: "c2", Member: "orders-1", NewMemberID: "b1"}
	fresh := func() record.Record {
		return record.Record{ClusterID: "c1", Token: "t1", Members: map[string]string{"orders-1": "a1"}}
	}
	adopt := action.AdoptRecovery{From: "c1", ClusterID: "c2", Member: "orders-1", MemberID: "b1"}
	r := fresh()
	r.Joining = &record.Joining{Member: "orders-3"}
	if r.AdoptRecovery(adopt) || r.EndRecovery(action.EndRecovery{OneShot: "a"}, time.Now()) {
		t.Error("what has not begun goes on")
	}
	if !r.BeginRecovery(g) || r.Joining != nil || r.Recovering.FormerToken != "t1" {
		t.Errorf("it does not begin: %+v", r)
	}
	other := g
	other.OneShot = "b"
	if r.BeginRecovery(other) {
		t.Error("another one begins meanwhile")
	}
	if r.EndRecovery(action.EndRecovery{OneShot: "a"}, time.Now()) {
		t.Error("it ends before the identity has changed")
	}
	for _, wrong := range []action.AdoptRecovery{
		{From: "c0", ClusterID: "c2", Member: "orders-1", MemberID: "b1"},
		{From: "c1", ClusterID: "c3", Member: "orders-1", MemberID: "b1"},
		{From: "c1", ClusterID: "c2", Member: "orders-2", MemberID: "b1"},
		{From: "c1", ClusterID: "c2", Member: "orders-1", MemberID: "b2"},
	} {
		if r.AdoptRecovery(wrong) || r.ClusterID != "c1" {
			t.Errorf("%+v is taken", wrong)
		}
	}
	for range 2 {
		if !r.AdoptRecovery(adopt) || r.Token != "t2" {
			t.Errorf("the identity is %+v", r)
		}
	}
	for range 2 {
		if !r.EndRecovery(action.EndRecovery{OneShot: "a"}, time.Now()) || len(r.Recovered) != 1 {
			t.Errorf("the end is %+v", r)
		}
	}
	for name, test := range map[string]struct {
		edit func(*record.Record)
		a    action.EndRecovery
		want bool
	}{
		"a restore that is over":                 {func(r *record.Record) { r.Restored = &record.Restored{} }, action.EndRecovery{OneShot: "restore back"}, true},
		"a restore that never was":               {func(*record.Record) {}, action.EndRecovery{OneShot: "restore back"}, false},
		"a recovery that never was, restored":    {func(r *record.Record) { r.Restored = &record.Restored{} }, action.EndRecovery{OneShot: "b", ClusterID: "c1"}, false},
		"a restore that is not over":             {func(r *record.Record) { r.Restored, r.Recovering = &record.Restored{}, &g }, action.EndRecovery{OneShot: "restore back"}, false},
		"another recovery than that under way":   {func(r *record.Record) { r.Recovering, r.ClusterID = &g, "c2" }, action.EndRecovery{OneShot: "b", ClusterID: "c1"}, false},
		"one recovery, although another is over": {func(r *record.Record) { r.Recovered = []record.Recovered{{OneShot: "b"}} }, action.EndRecovery{OneShot: "a", ClusterID: "c1"}, false},
	} {
		r := fresh()
		test.edit(&r)
		if got := r.EndRecovery(test.a, time.Now()); got != test.want || (r.Recovering != nil) != strings.Contains(name, "not over") && !strings.Contains(name, "under way") {
			t.Errorf("the end of %s: %t, %+v", name, got, r)
		}
	}
	// What the restore before it has told of the logs is long over.
	restored := fresh()
	restored.BornOn, restored.Restored = "3.6", &record.Restored{EtcdVersion: "3.5.35", At: time.Now()}
	if !restored.BeginRecovery(g) || !restored.AdoptRecovery(adopt) || restored.BornOn != "3.6" {
		t.Errorf("born on %s", restored.BornOn)
	}
	wrong := fresh()
	wrong.Recovering, wrong.ClusterID = &g, "c9"
	if wrong.AdoptRecovery(adopt) || wrong.ClusterID != "c9" {
		t.Error("another cluster gets the new identity")
	}
	wrong.Recovering = nil
	if wrong.BeginRecovery(g) {
		t.Error("another cluster is recovered")
	}
}

// I13: the end of a restore is recorded once, for that restore, and when its
// first member stands.
func TestTheEndOfARestoreIsWrittenOnce(t *testing.T) {
	before, now := time.Now().Add(-time.Hour), time.Now().UTC()
	for name, test := range map[string]struct {
		from record.Restore
		goes *record.Recovering
		want bool
		at   time.Time
	}{
		"its end":             {record.Restore{Restored: &record.Restored{Name: "back"}}, nil, true, now},
		"one that was before": {record.Restore{Restored: &record.Restored{Name: "back", At: before}}, nil, true, before},
		"another's":           {record.Restore{Restored: &record.Restored{Name: "forth"}}, nil, false, time.Time{}},
		"none":                {record.Restore{}, nil, false, time.Time{}},
		"while it goes on":    {record.Restore{Restored: &record.Restored{Name: "back"}}, &record.Recovering{}, false, time.Time{}},
	} {
		r := record.Record{Restore: test.from, Recovery: record.Recovery{Recovering: test.goes}}
		got := r.EndRestore(action.EndRestore{Restore: "back"}, now)
		if at := cmp.Or(r.Restored, &record.Restored{}).At; got != test.want || !at.Equal(test.at) {
			t.Errorf("%s: %t, at %s", name, got, at)
		}
	}
}
