package execute_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// signed notes what is signed.
func signed(w *reconcilertest.World) *[]string {
	var urls []string
	w.Sign(func(_ context.Context, _ backup.Store, objectURL string, _ time.Duration) (string, error) {
		urls = append(urls, objectURL)
		return "https://store/" + objectURL + "&signature=x", nil
	})
	return &urls
}

// stored puts a backup below the directory of all backups.
func stored(w *reconcilertest.World, at string, m backup.Manifest) (objectURL string) {
	w.Helper()
	objectURL = "file://" + w.Backups + "/" + at + "?root=" + w.Backups
	if _, err := (backup.Store{}).Save(w.Context(), objectURL, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
		w.Fatal(err)
	}
	return objectURL
}

// restoresOnto is a recovery of orders-1 that has come to its volume, and the action that
// restores there what the record names.
func restoresOnto(w *reconcilertest.World) action.RestoreVolume {
	reconcilertest.Asleep(w)
	return action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: w.Record().Recovering.NewClusterID}
}

// wantNoOffer wants neither a Job nor a Secret.
func wantNoOffer(w *reconcilertest.World) {
	w.Helper()
	if n := len(reconcilertest.JobsOf(w)); n > 0 {
		w.Errorf("%d Jobs", n)
	}
	secrets, err := w.API.CoreV1().Secrets("shop").List(w.Context(), metav1.ListOptions{LabelSelector: naming.LabelRestoreOf})
	if err != nil || len(secrets.Items) > 0 {
		w.Errorf("%+v, %v", secrets.Items, err)
	}
}

// 470: a record that says that a backup is being restored has it given out only where Git
// names it: by its URL, or by the place of this cluster's backups and the manifest.
func TestAForgedRecoveryGivesNothingOut(t *testing.T) {
	users, orders := backup.Manifest{Namespace: "bank", Name: "users", ClusterID: "c9"}, backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1"}
	for name, c := range map[string]struct {
		at, url string
		m       backup.Manifest
		commit  func(url string) func(*schema.EtcdCluster)
		want    string
	}{
		"another's":                      {at: "bank/users/1.db", m: users, want: "Git puts those of shop/orders at"},
		"another's, at the same place":   {at: "shop/orders/1.db", m: users, want: "says that it is of bank/users"},
		"another's, by dots":             {at: "bank/users/1.db", url: "shop/orders/../../bank/users/1.db", m: users, want: "Git puts those of shop/orders at"},
		"its own manifest, elsewhere":    {at: "bank/users/1.db", m: orders, want: "Git puts those of shop/orders at"},
		"its own":                        {at: "shop/orders/1.db", m: orders},
		"another's, which Git names":     {at: "bank/users/1.db", m: users, commit: func(url string) func(*schema.EtcdCluster) { return execute.AsksRecovery("orders-1", url) }},
		"another's, and Git names a key": {at: "bank/users/1.db", m: users, commit: func(url string) func(*schema.EtcdCluster) { return execute.AsksRecovery("orders-1", url+"2") }, want: "Git puts those of shop/orders at"},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				urls := signed(w)
				url := stored(w, c.at, c.m)
				a := restoresOnto(w)
				if c.url != "" {
					url = "file://" + w.Backups + "/" + c.url + "?root=" + w.Backups
				}
				w.Notes(func(r *record.Record) {
					r.Recovering.ObjectURL, r.Recovering.SHA256, r.Recovering.Size = url, "0a", 8<<10
				})
				if c.commit != nil {
					w.Wish.Spec.Recovery = schema.RecoverySpec{}
					c.commit(url)(&w.Wish.EtcdCluster)
				}
				err := w.Do(a)
				if c.want == "" {
					if err != nil || len(*urls) != 1 || (*urls)[0] != url || len(reconcilertest.JobsOf(w)) != 1 {
						t.Errorf("signed %q, %v", *urls, err)
					}
					return
				}
				backuptest.WantError(t, err, "offer the backup of the restore", c.want, "name that backup in the file")
				if len(*urls) > 0 {
					t.Errorf("signed %q", *urls)
				}
				wantNoOffer(w)
			})
		})
	}
}

// 470: the same while a restore runs, whose offer is renewed: what a record is changed to is
// not signed.
func TestAnOfferIsNotRenewedForAnother(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		urls := signed(w)
		own := stored(w, "shop/orders/1.db", backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1"})
		another := stored(w, "bank/users/1.db", backup.Manifest{Namespace: "bank", Name: "users", ClusterID: "c9"})
		a := restoresOnto(w)
		w.Notes(func(r *record.Record) { r.Recovering.ObjectURL = own })
		w.MustDo(a)
		w.Notes(func(r *record.Record) { r.Recovering.ObjectURL = another })
		time.Sleep(10 * time.Minute)
		err := w.R.Executor.KeepOffered(w.Context(), w.Look())
		backuptest.WantError(t, err, "sign the URL of the backup again", "Git puts those of shop/orders at")
		if len(*urls) != 1 {
			t.Errorf("signed %q", *urls)
		}
		w.Notes(func(r *record.Record) { r.Recovering.ObjectURL = own })
		if err := w.R.Executor.KeepOffered(w.Context(), w.Look()); err != nil || len(*urls) != 2 {
			t.Errorf("signed %q, %v", *urls, err)
		}
	})
}

// 470: how a store is opened, Git says: not by the daemon's own rights where it names a
// Secret, nor by a Secret or a claim that the record names.
func TestAForgedWayIsNotGone(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		urls := signed(w)
		own := stored(w, "shop/orders/1.db", backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1"})
		a := restoresOnto(w)
		w.Notes(func(r *record.Record) {
			r.Recovering.ObjectURL, r.Recovering.Credentials, r.Recovering.PodAccess.ClaimName = desired.WithoutQuery(own)+"?root=/&endpoint=http://169.254.169.254", "theirs", "theirs"
		})
		w.MustDo(a)
		if len(*urls) != 1 || (*urls)[0] != own {
			t.Errorf("signed %q, want %s", *urls, own)
		}
	})
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		urls := signed(w)
		own := stored(w, "shop/orders/1.db", backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1"})
		a := restoresOnto(w)
		w.Notes(func(r *record.Record) { r.Recovering.ObjectURL = own })
		w.Wish.Spec.Backup.Destination.Credentials.SecretName = "s3"
		backuptest.WantError(t, w.Do(a), "the Secret shop/s3", "does not exist")
		if len(*urls) > 0 {
			t.Errorf("signed %q", *urls)
		}
	})
}

// 470, 117: a restore that has begun goes on with what its file names, by URL or by the place
// of a cluster; when the file names something else meanwhile, it is not the record that
// decides.
func TestARestoreRestoresWhatItsFileNames(t *testing.T) {
	for name, c := range map[string]struct {
		source func(w *reconcilertest.World, url string)
		want   string
	}{
		"by its URL":      {func(w *reconcilertest.World, url string) { w.Wish.Restore.Source.ObjectURL = url }, ""},
		"another URL":     {func(w *reconcilertest.World, url string) { w.Wish.Restore.Source.ObjectURL = url + "2" }, "Git puts those of shop/orders at"},
		"by its cluster":  {func(w *reconcilertest.World, _ string) { from(w, "users", "/shop/users/") }, ""},
		"another cluster": {func(w *reconcilertest.World, _ string) { from(w, "stock", "/shop/users/") }, "says that it is of shop/users"},
		"another place":   {func(w *reconcilertest.World, _ string) { from(w, "users", "/shop/stock/") }, "Git puts those of shop/orders at"},
		"nothing is known": {func(w *reconcilertest.World, _ string) {
			w.Wish.Restore.Source = schema.RestoreSource{ClusterName: "users"}
		}, "Git puts those of shop/orders at"},
		"no restore any more":  {func(w *reconcilertest.World, _ string) { w.Wish.Restore = nil }, "Git puts those of shop/orders at"},
		"and no place is left": {func(w *reconcilertest.World, _ string) { w.Wish.Restore, w.R.Executor.Stores.BackupURL = nil, "" }, "which the file does not"},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Run(t, func(w *reconcilertest.World) {
				url := stored(w, "shop/users/1.db", backup.Manifest{Namespace: "shop", Name: "users", ClusterID: "c0", EtcdVersion: "3.6.16", Revision: 7})
				w.AsksRestore(url)
				urls := signed(w)
				stepsOf(w, w.Begins(), action.CreateSet{Replicas: 0}, action.CreateVolume{Member: "orders-0", Claim: "data-orders-0"})
				*urls = nil
				c.source(w, url)
				err := w.Do(action.RestoreVolume{Member: "orders-0", Claim: "data-orders-0", ClaimUID: string(w.Claims()[0].UID), ClusterID: w.Record().Recovering.NewClusterID})
				if c.want == "" {
					if err != nil || len(*urls) != 1 || (*urls)[0] != url {
						t.Errorf("signed %q, %v", *urls, err)
					}
					return
				}
				backuptest.WantError(t, err, c.want, "name that backup in the file")
				if len(*urls) > 0 {
					t.Errorf("signed %q", *urls)
				}
				wantNoOffer(w)
			})
		})
	}
}

// from lets Git restore the newest backup of a cluster, whose backups lie below a directory.
func from(w *reconcilertest.World, cluster, directory string) {
	w.Wish.Restore.Source = schema.RestoreSource{ClusterName: cluster}
	w.Wish.Restore.From = &desired.RestoreFrom{Cluster: cluster, Destination: schema.Destination{ObjectURLTemplate: "file://" + w.Backups + directory + "{{ .UID }}.db?root=" + w.Backups}}
}

// 471: what a cluster's record says was begun is removed only where Git puts the backups of
// this cluster, by the name of one.
func TestAForgedBeginningOfAClusterRemovesNothing(t *testing.T) {
	for name, at := range map[string]string{
		"what another takes": "bank/users/20260101T000000Z-0a1b2c.db",
		"another's manifest": "bank/users/1.db" + backup.ManifestSuffix,
		"a file of its own":  "shop/orders/keep.db",
		"by dots":            "shop/orders/../../bank/users/20260101T000000Z-0a1b2c.db",
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Commit(clustertest.SetVersion("3.6.16"))
				stored(w, "bank/users/1.db", backup.Manifest{Namespace: "bank", Name: "users", ClusterID: "c9"})
				stored(w, "shop/orders/1.db", backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1"})
				path := w.Backups + "/" + at
				if !strings.HasSuffix(at, backup.ManifestSuffix) {
					if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				w.Notes(func(r *record.Record) { r.BackupBegun = "file://" + path + "?root=" + w.Backups })
				w.MustDo(execute.TakeForTest())
				if _, err := os.Stat(path); err != nil {
					t.Errorf("it is gone: %v", err)
				}
				if told := w.Lines("incomplete backup may have left an object", "error"); len(told) != 1 || !strings.Contains(told[0], "Git puts those of shop/orders at") {
					t.Errorf("told of %q", told)
				}
			}, clustertest.SetVersion("3.6.12"))
		})
	}
}

// 473: a Job and a Secret of the name of a restore's are that restore's only where they carry
// its label: others are not followed, not written, and not removed.
func TestAForgedNameReachesNoOtherJob(t *testing.T) {
	job := func(w *reconcilertest.World, labels map[string]string) string {
		name := jobs.RestoreName("orders", *w.Record().Recovering)
		ended := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels}}
		ended.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		if _, err := w.API.BatchV1().Jobs("shop").Create(w.Context(), ended, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		return name
	}
	secret := func(w *reconcilertest.World) string {
		name := jobs.RestoreName("orders", *w.Record().Recovering)
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Data: map[string][]byte{"password": []byte("x")}}
		if _, err := w.API.CoreV1().Secrets("shop").Create(w.Context(), s, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		return name
	}
	wantSecret := func(w *reconcilertest.World, name string) {
		w.Helper()
		if s, err := w.API.CoreV1().Secrets("shop").Get(w.Context(), name, metav1.GetOptions{}); err != nil || len(s.Data) != 1 {
			w.Errorf("%+v, %v", s, err)
		}
	}
	for _, labels := range []map[string]string{nil, {naming.LabelRestoreOf: "users"}} {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			a := restoresOnto(w)
			v := w.Look()
			name := job(w, labels)
			_, err := w.R.Observer.Observe(w.Context(), w.Wish)
			backuptest.WantError(t, err, "read Job "+name, "it is not quorate's", "delete or rename it")
			backuptest.WantError(t, w.R.Executor.Execute(w.Context(), v, a), "create Job "+name, "it is not quorate's")
		})
	}
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		urls := signed(w)
		own := stored(w, "shop/orders/1.db", backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1"})
		a := restoresOnto(w)
		w.Notes(func(r *record.Record) { r.Recovering.ObjectURL = own })
		name := secret(w)
		backuptest.WantError(t, w.Do(a), "write Secret "+name, "is not quorate's", "delete or rename it")
		wantSecret(w, name)
		if len(reconcilertest.JobsOf(w)) > 0 {
			t.Errorf("there is a Job: %q", *urls)
		}
	})
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		restoresOnto(w)
		v, name := w.Look(), secret(w)
		job(w, nil)
		g := w.Record().Recovering
		w.Notes(func(r *record.Record) { r.ClusterID = g.NewClusterID })
		if err := w.R.Executor.Execute(w.Context(), v, action.EndRecovery{OneShot: g.OneShot, ClusterID: "c1"}); err != nil {
			t.Error(err)
		}
		wantSecret(w, name)
		if n := len(reconcilertest.JobsOf(w)); n != 1 {
			t.Errorf("%d Jobs", n)
		}
	})
}

// 473: members that a record names are those of this cluster: nothing is noted on the claims
// of another.
func TestAForgedMemberMarksNoClaimOfAnother(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		restoresOnto(w)
		users := w.Wish.EtcdCluster
		users.Metadata.Name = "users"
		w.Put(reconcilertest.ClaimsResource(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-users-0", Namespace: "shop", Labels: naming.OwnLabels(users)}})
		w.Notes(func(r *record.Record) { r.Recovering.Members["users-0"] = "a7" })
		g := w.Record().Recovering
		w.MustDo(action.AdoptRecovery{From: "c1", ClusterID: g.NewClusterID, Member: g.Member, MemberID: g.NewMemberID})
		for _, claim := range w.Claims() {
			if kept, own := claim.Annotations[naming.AnnotationKeeps], claim.Name != "data-users-0"; (kept == "c1") != own {
				t.Errorf("%s keeps %q", claim.Name, kept)
			}
		}
	})
}
