package reconciler

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
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

// A pod without credentials can read the backup, and nothing else, by the URL that
// it is given; the URL does not hold the credentials.
func TestABackupIsOfferedToTheRestore(t *testing.T) {
	s := backuptest.StartS3(t)
	snapshot := backuptest.Snapshot(64 << 10)
	m := offered(t, s.URL("c1.db"), snapshot)
	var g record.Recovering
	e := &Executor{}
	if err := e.Rest(t.Context(), &g, backup.Store{}, action.BeginRecovery{ClusterID: "c1", ObjectURL: s.URL("c1.db"), Version: "3.6.16"}, schema.DecryptionSpec{}); err != nil {
		t.Fatal(err)
	}
	if g.Revision != 7 || g.SHA256 != m.SHA256 || g.Size != m.Size {
		t.Errorf("it rests on %+v, the backup is %+v", g, m)
	}
	signed, err := backup.Store{}.Sign(t.Context(), s.URL("c1.db"), stores.OfferTime)
	if err != nil || strings.Contains(signed, backuptest.Secret) {
		t.Fatalf("%v, or the secret is in the URL", err)
	}
	get := func(url string) (int, []byte) {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, text
	}
	if code, text := get(signed); code != http.StatusOK || !bytes.Equal(text, snapshot) {
		t.Errorf("the store answers %d with %d bytes", code, len(text))
	}
	plain, _, _ := strings.Cut(signed, "?")
	if code, _ := get(plain); code == http.StatusOK {
		t.Error("the test proves nothing: anybody can read the bucket")
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
		err := e.Rest(t.Context(), &g, backup.Store{}, action.BeginRecovery{ClusterID: "c1", ObjectURL: url(name + "/1.db"), Version: "3.6.16"}, schema.DecryptionSpec{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// 120: a recovery rests on what its backup says of itself.
func TestARecoveryRestsOnItsBackup(t *testing.T) {
	formed(t, func(w *world) {
		url := storedBackup(w.T, func(m *backup.Manifest) { m.ClusterID, m.EtcdVersion = "c1", "3.6.16" })
		begin := action.BeginRecovery{OneShot: "x", ClusterID: "c1", Member: "orders-0", ObjectURL: url, Version: "3.6.16"}
		backuptest.WantError(t, w.do(begin), "begin the recovery", "no URL by which a pod could read")
		w.sign(func(context.Context, backup.Store, string, time.Duration) (string, error) {
			return "https://store/1.db", nil
		})
		w.mustDo(begin)
		if g := w.record().Recovering; g == nil || g.Revision != 7 || len(g.SHA256) != 64 || g.ObjectURL != url {
			t.Errorf("it rests on %+v", g)
		}
	})
}

// The record does not change for a backup that is refused, and there is no Secret
// where nothing is offered.
func TestARefusedBackupBeginsNothing(t *testing.T) {
	formed(t, func(w *world) {
		err := w.do(action.BeginRecovery{OneShot: "x", ClusterID: "c1", Member: "orders-0", ObjectURL: "file:///nowhere/1.db", Version: "3.6.16"})
		if err == nil || w.record().Recovering != nil {
			t.Errorf("%v, the record is %+v", err, w.record())
		}
		w.mustDo(action.BeginRecovery{OneShot: "y", ClusterID: "c1", Member: "orders-0", Revision: 7, Version: "3.6.16"})
		g := w.record().Recovering
		if err := w.r.executor.OfferBackup(w.Context(), w.look(), *g); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if o, err := w.api.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", jobs.RestoreName("orders", *g)); err == nil {
			t.Errorf("there is a Secret: %v", o)
		}
	})
}
