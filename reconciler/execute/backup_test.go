package execute_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// 111: what the file says of encryption is applied: only the owner of the private
// key reads the backup, and the cluster continues with it.
func TestBackupsAreEncryptedForTheRecipients(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Database = backuptest.Snapshot(8192)
		w.Commit(clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) {
			c.Spec.Backup.Destination.Encryption.Recipients = []string{identity.Recipient().String()}
		})
		w.MustDo(execute.TakeForTest())
		url := w.Record().Backup.URL
		m, err := backup.Store{Identity: identity.String()}.Verify(w.Context(), url)
		if err != nil || !m.Encrypted || m.SHA256 != w.Record().Backup.SHA256 {
			t.Errorf("%+v, %v", m, err)
		}
		w.MustDo(action.StartRoll{Partition: 3, From: "3.6.12", To: "3.6.16"})
		var g record.Recovering
		err = w.R.Executor.Rest(w.Context(), &g, backup.Store{}, action.BeginRecovery{ClusterID: "c1", ObjectURL: url, Version: "3.6.16"}, schema.RecoverySpec{})
		backuptest.WantError(t, err, "is encrypted", identity.Recipient().String(), "spec.recovery.decryption.secretName")
	}, clustertest.SetVersion("3.6.12"))
}

// 112: the Secret is read for each backup, so that one that was missing or is rotated
// needs no restart; and one that is missing is never the daemon's own identity.
func TestCredentialsOfBackupsComeFromTheSecret(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		named := func(c *schema.EtcdCluster) { c.Spec.Backup.Destination.Credentials.SecretName = "s3" }
		w.Commit(clustertest.SetVersion("3.6.16"), named)
		err := w.Do(execute.TakeForTest())
		backuptest.WantError(t, err, "the Secret shop/s3", "does not exist", "credentials.secretName")
		if len(w.Etcd.Calls) != 0 || w.Record().Backup != nil {
			t.Errorf("etcd was asked %q, the record has %+v", w.Etcd.Calls, w.Record().Backup)
		}
		secrets := w.API.CoreV1().Secrets("shop")
		secret := clustertest.StoreSecret("s3", nil)
		if _, err := secrets.Create(w.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		store := func() backup.Store {
			s, err := w.R.Executor.Stores.OfCluster(w.Context(), w.Wish, "s3://backups/?region=eu-west-1")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if store().FromEnvironment() {
			t.Error("a Secret without data passes for none, so that the daemon's own credentials would be used")
		}
		secret.Data = map[string][]byte{"access-key-id": []byte("a"), "secret-access-key": []byte("hunter2")}
		if _, err := secrets.Update(w.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := string(store().Credentials["secret-access-key"]); got != "hunter2" {
			t.Error("the rotated Secret is not read")
		}
		w.Etcd.Database = backuptest.Snapshot(4096)
		w.MustDo(execute.TakeForTest())
		if text := fmt.Sprintf("%+v", *w.Record().Backup); strings.Contains(text, "hunter2") {
			t.Error("the record has the secret")
		}
	}, clustertest.SetVersion("3.6.12"))
}

// A cluster's own backup that was cut off leaves nothing: its place was noted before
// its first byte, and the next backup tidies it. One that came to its end stays.
func TestWhatACutOffBackupLeftIsRemoved(t *testing.T) {
	for name, finished := range map[string]bool{"cut off": false, "finished, and not recorded": true} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Commit(clustertest.SetVersion("3.6.16"))
				w.Etcd.Stream = func(context.Context) io.Reader { return reconcilertest.Failing{Err: errors.New("killed")} }
				if err := w.Do(execute.TakeForTest()); err == nil {
					t.Fatal("it was taken")
				}
				left := w.Record().BackupBegun
				path := strings.TrimPrefix(desired.WithoutQuery(left), "file://")
				if finished {
					if _, err := (backup.Store{}).Save(w.Context(), left, bytes.NewReader(w.Etcd.Database), backup.Manifest{}); err != nil {
						t.Fatal(err)
					}
				} else if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
					t.Fatal(err)
				}
				w.Etcd.Stream = nil
				w.MustDo(execute.TakeForTest())
				if _, err := os.Stat(path); (err == nil) != finished {
					t.Errorf("what was left: %v", err)
				}
				if r := w.Record(); r.BackupBegun != "" || r.Backup == nil || r.Backup.URL == left {
					t.Errorf("the record is %+v", r)
				}
			}, clustertest.SetVersion("3.6.12"))
		})
	}
}

// 194: that no restore could read the backup before an upgrade is told by the plan, a line
// and an Event, once. It is taken all the same, and holds nothing.
func TestABackupBeforeAnUpgradeThatNoRestoreCouldReadIsReported(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Database = backuptest.Snapshot(8192)
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.DrainEvents()
		w.MustDo(execute.TakeForTest())
		first := w.Record().Backup.Unreachable
		if !strings.Contains(first, "/shop/orders/…: this store gives out no URL") {
			t.Errorf("the record says %q", first)
		}
		for range 3 {
			w.MustPass()
		}
		told := func(text string) bool {
			return strings.Contains(text, "no restore can read the last backup, which was taken for 3.6.16") && strings.Contains(text, "podAccess.claimName")
		}
		status := w.Status("EtcdCluster", "orders").Status.Cluster
		if !slices.ContainsFunc(status.Warnings, told) || status.Hold != nil && status.Hold.Rule == "backup" {
			t.Errorf("the status is %+v", status)
		}
		events := slices.DeleteFunc(w.DrainEvents(), func(e string) bool { return !strings.Contains(e, "no restore can read") })
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning") {
			t.Errorf("the Events are %q", events)
		}
		w.Commit(clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Backup.Destination.PodAccess.ClaimName = "backups" })
		w.MustDo(execute.TakeForTest())
		if why := w.Record().Backup.Unreachable; why != "" {
			t.Errorf("with a volume the record says %q", why)
		}
	}, clustertest.SetVersion("3.6.12"))
}
