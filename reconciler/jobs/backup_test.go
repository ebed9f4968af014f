package jobs_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/etcd/memberstest"
	"github.com/quorate/quorate/reconciler/jobs"
)

// A cluster without TLS is asked in clear text, whatever Secret there is.
func TestTakeBackupInClearText(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, false)
	s.MustPut("colour", "green")
	dir := t.TempDir()
	m, err := jobs.Take(t.Context(), jobs.Task{
		From: memberstest.Target(t, s, s.Members[0]), URL: "file://" + dir + "/1.db?root=" + dir, Manifest: backup.Manifest{Member: "orders-0", Revision: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := (backup.Store{}).Verify(t.Context(), m.Object+"?root="+dir); err != nil || again.SHA256 != m.SHA256 {
		t.Errorf("%+v, %v", again, err)
	}
}

// 550: a cluster without TLS that asks for a password is shown those that its pod has.
func TestTakeBackupByAPassword(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, false, "--bcrypt-cost=4")
	from, c := memberstest.Target(t, s, s.Members[0]), s.Members[0].Client()
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(t.Context(), "root", "right"); return err },
		func() error { _, err := c.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := c.AuthEnable(t.Context()); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	task := jobs.Task{From: from, URL: "file://" + dir + "/1.db?root=" + dir, Manifest: backup.Manifest{Member: "orders-0", Revision: 1}}
	if _, err := jobs.Take(t.Context(), task); err == nil || !strings.Contains(err.Error(), "user name is empty") {
		t.Errorf("without one: %v", err)
	}
	task.Root = []etcd.Password{"wrong", "right"}
	if _, err := jobs.Take(t.Context(), task); err != nil {
		t.Error(err)
	}
}

// 116: what the Job's pod does, with a real cluster that speaks TLS.
func TestTakeBackup(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, true)
	s.MustPut("colour", "green")
	dir := t.TempDir()
	from := memberstest.Target(t, s, s.Members[0])
	from.TLS = nil // the pod has it from a Secret
	take := func(secret map[string][]byte, name string) (backup.Manifest, error) {
		return jobs.Take(t.Context(), jobs.Task{
			From: from, HTTPS: true, Secret: secret, URL: "file://" + dir + "/" + name + "?root=" + dir, Manifest: backup.Manifest{Member: "orders-0", Revision: 2},
			Bandwidth: 1 << 20, // more than there is to send: only its way is tried
		})
	}
	m, err := take(s.Secret.Data, "1.db")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := (backup.Store{}).Verify(t.Context(), m.Object+"?root="+dir); err != nil || again.SHA256 != m.SHA256 {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := take(map[string][]byte{"ca.crt": []byte("x")}, "2.db"); err == nil || !strings.Contains(err.Error(), "has no usable ca.crt") {
		t.Error(err)
	}
	from.ID = "1"
	if _, err := take(s.Secret.Data, "3.db"); err == nil || !strings.Contains(err.Error(), "it answers as member") {
		t.Errorf("somebody else was asked: %v", err)
	}
	if list, err := (backup.Store{}).List(t.Context(), "file://"+dir+"/?root="+dir); err != nil || len(list) != 1 || list[0].Member != "orders-0" {
		t.Errorf("%+v, %v", list, err)
	}
}
