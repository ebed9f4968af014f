package execute_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/restore/identity"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// 117, 121: a restore from its beginning to its check, each action twice.
func TestABackupBecomesACluster(t *testing.T) {
	reconcilertest.Restoring(t, func(w *reconcilertest.World) {
		stepsOf(w, w.Begins())
		r := w.Record()
		g := r.Recovering
		wantCluster, wantMember, err := identity.Of(g.Token, "orders-0", "https://orders-0.orders-peers.shop.svc:2380")
		if err != nil || r.Formed() || g.NewClusterID != wantCluster || g.NewMemberID != wantMember || r.Token != g.Token || g.Revision != 7 || len(g.SHA256) != 64 {
			t.Errorf("the record is %+v, recovering %+v: %v", r, g, err)
		}
		if w := r.Restored; w == nil || w.Name != "back" || w.FromCluster != "c0" || !w.At.IsZero() || strings.Contains(w.Object, "?") {
			t.Errorf("restored %+v", w)
		}
		stepsOf(w, action.IssueCertificates{}, action.ApplyObject{ObjectKind: "Service", Name: "orders-peers"}, action.CreateSet{Replicas: 0},
			action.CreateVolume{Member: "orders-0", Claim: "data-orders-0"})
		if w.Pod("orders-0") != nil {
			t.Fatal("a pod runs on a volume that waits for a backup")
		}
		claim := w.Claims()[0]
		if !naming.Owns(claim, w.Wish.EtcdCluster) || len(claim.OwnerReferences) > 0 || claim.Spec.Resources.Requests.Storage().String() != "8Gi" {
			t.Errorf("the claim is %+v", claim)
		}
		stepsOf(w, action.RestoreVolume{Member: "orders-0", Claim: "data-orders-0", ClaimUID: string(claim.UID), ClusterID: g.NewClusterID})
		all := reconcilertest.JobsOf(w)
		if len(all) != 1 || !strings.HasPrefix(all[0].Name, "orders-restore-") {
			t.Fatalf("Jobs %v", all)
		}
		if args := strings.Join(all[0].Spec.Template.Spec.Containers[0].Args, " "); strings.Contains(args, "--former-token") || !strings.Contains(args, "--sha256="+g.SHA256) {
			t.Errorf("it runs %s", args)
		}
		reconcilertest.JobEnded(w)
		stepsOf(w, action.AdoptRecovery{ClusterID: g.NewClusterID, Member: "orders-0", MemberID: g.NewMemberID})
		if r := w.Record(); r.ClusterID != g.NewClusterID || r.BornOn != "3.5" || !reflect.DeepEqual(r.Members, map[string]string{"orders-0": g.NewMemberID}) {
			t.Errorf("the record is %+v", r)
		}
		stepsOf(w, action.ResizeSet{SetUID: string(w.Set().UID), From: 0, To: 1, Partition: 1}, action.EndRecovery{OneShot: "restore back"})
		if r := w.Record(); r.Recovering != nil || len(r.Recovered) > 0 || !r.Restored.At.IsZero() || len(reconcilertest.JobsOf(w)) > 0 {
			t.Errorf("the record is %+v, Jobs %v", r, reconcilertest.JobsOf(w))
		}
		stepsOf(w, action.EndRestore{Restore: "back", SpecHash: "r2"})
		if r := w.Record(); r.Restored.At.IsZero() || r.Restored.SpecHash != "r2" {
			t.Errorf("restored %+v", r.Restored)
		}
	})
}

// 117, 119, 122: the same by itself, pass after pass. Clients may come when it is
// over, and it is never done again: not by another daemon, nor when the file gives
// way to that of the cluster, nor when it comes back.
func TestARestoreRunsToItsEndByItself(t *testing.T) {
	reconcilertest.Restoring(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Replicas = 1 })
		for range 60 {
			w.MustPass()
			time.Sleep(time.Second)
			reconcilertest.RestoreGoesOn(w)
			r := w.Record()
			if r.Restored.At.IsZero() && w.AdmitsClients() {
				t.Fatal("clients are let in before it is over")
			}
			if !r.Restored.At.IsZero() && w.AdmitsClients() && r.Applied != nil {
				break
			}
		}
		r := w.Record()
		if r.Restored.At.IsZero() || !w.AdmitsClients() || r.Applied == nil {
			p, err := w.R.Plan(w.Context(), w.Wish)
			t.Fatalf("the record is %+v, done was %q, the plan is %s, %v", r, actions(w), p.Text(), err)
		}
		pod, template := w.Pod("orders-0").UID, w.Set().Spec.Template.Annotations[naming.AnnotationTemplateHash]
		wish := w.Wish.Restore
		for name, as := range map[string]*desired.Restore{"as it was": wish, "as a cluster": nil, "back again": wish} {
			w.Wish.Restore = as
			for range 5 {
				w.MustPass()
				time.Sleep(time.Second)
			}
			if again := w.Record(); again.ClusterID != r.ClusterID || again.Recovering != nil || w.Pod("orders-0").UID != pod || w.Set().Spec.Template.Annotations[naming.AnnotationTemplateHash] != template {
				t.Errorf("%s: the record is %+v, done was %q", name, again, actions(w))
			}
		}
		w.Wish.Restore = &desired.Restore{Name: "back", SpecHash: "r9", Source: wish.Source}
		if p, err := w.R.Plan(w.Context(), w.Wish); err != nil || p.Hold == nil || p.Hold.Rule != "restore" {
			t.Errorf("%s, %v", p.Text(), err)
		}
	})
}

// 120, 127, I9: a backup that cannot be restored is refused, and nothing is made.
func TestARestoreThatIsRefusedMakesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*backup.Manifest)
		source func(*schema.RestoreSource)
		want   string
	}{
		"absent":    {source: func(s *schema.RestoreSource) { s.ObjectURL = "file:///nowhere/1.db" }, want: "does not exist"},
		"by name":   {source: func(s *schema.RestoreSource) { s.ObjectURL, s.Schedule = "", "nightly" }, want: "nobody knows where its backups are"},
		"elsewhere": {source: func(s *schema.RestoreSource) { s.Credentials.SecretName = "key" }, want: "the Secret shop/key with the credentials of the backup store does not exist"},
		"too new":   {edit: func(m *backup.Manifest) { m.EtcdVersion = "3.7.3" }, want: `was made by etcd "3.7.3"`},
		"storage":   {edit: func(m *backup.Manifest) { m.EtcdVersion, m.StorageVersion = "3.6.16", "3.7.0" }, want: `storage version "3.7.0"`},
		"too old":   {edit: func(m *backup.Manifest) { m.EtcdVersion = "3.4.34" }, want: "3.4.34"},
		"of nobody": {edit: func(m *backup.Manifest) { m.EtcdVersion = "" }, want: "cannot start on that"},
	} {
		t.Run(name, func(t *testing.T) {
			edit := c.edit
			if edit == nil {
				edit = func(*backup.Manifest) {}
			}
			reconcilertest.Restoring(t, func(w *reconcilertest.World) {
				if c.source != nil {
					c.source(&w.Wish.Restore.Source)
				}
				if err := w.Do(w.Begins()); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if all := w.Contents(); len(all) > 0 || len(w.Claims()) > 0 {
					t.Errorf("there is %v", all)
				}
			}, edit)
		})
	}
}

// 111: an encrypted backup is restored with a private key that only the step which
// restores is given: the daemon checks what is stored, and reads no key. Without a
// Secret that has one, nothing is made.
func TestAnEncryptedBackupIsRestoredWithoutTheDaemonsKnowingTheKey(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	url := "file://" + dir + "/1.db?root=" + dir
	m := backup.Manifest{ClusterID: "c0", EtcdVersion: "3.6.16", Revision: 7, Hash: 99, HashRevision: 6, CompactRevision: 2}
	if _, err := (backup.Store{Recipients: []string{identity.Recipient().String()}}).Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
		t.Fatal(err)
	}
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.AsksRestore(url)
		backuptest.WantError(t, w.Do(w.Begins()), "is encrypted", identity.Recipient().String(), "spec.source.decryption.secretName")
		if all := w.Contents(); len(all) > 0 {
			t.Fatalf("there is %v", all)
		}
		w.Wish.Restore.Source.Decryption.SecretName = "age"
		w.MustDo(w.Begins())
		g := w.Record().Recovering
		if g.Decryption != "age" || g.Hash != 99 || g.HashRevision != 6 || g.CompactRevision != 2 {
			t.Errorf("recovering %+v", g)
		}
		step := jobs.RenderRestore(w.Wish, nil, "quorate:1", "data-orders-0", *g, stores.Way{}).Spec.Template.Spec.Containers[0]
		from := map[string]string{}
		for _, e := range step.Env {
			from[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
		if from["QUORATE_BACKUP_IDENTITY"] != "age/identity" || len(from) != 1 {
			t.Errorf("it is given %v", from)
		}
		if args := strings.Join(step.Args, " "); !strings.Contains(args, "--hash=99 --hash-revision=6 --compact-revision=2") {
			t.Errorf("it runs %s", args)
		}
		for _, a := range w.API.Actions() {
			if get, ok := a.(clienttesting.GetAction); ok && a.GetResource().Resource == "secrets" && get.GetName() == "age" {
				t.Error("the daemon reads the private key")
			}
		}
	})
}

// 118, I3, I7: what exists is seen although the caches do not know it yet.
func TestARestoreLooksAgain(t *testing.T) {
	for name, put := range map[string]func(w *reconcilertest.World){
		"pod": func(w *reconcilertest.World) {
			w.Put(reconcilertest.PodsResource(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-0", Namespace: "shop", Labels: naming.OwnLabels(w.Wish.EtcdCluster)}})
		},
		"claim": func(w *reconcilertest.World) {
			w.Put(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-orders-0", Namespace: "shop", Labels: naming.OwnLabels(w.Wish.EtcdCluster)}})
		},
		"StatefulSet": func(w *reconcilertest.World) {
			w.Put(reconcilertest.SetsResource(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop"}})
		},
	} {
		reconcilertest.Restoring(t, func(w *reconcilertest.World) {
			v := w.Look()
			put(w)
			if err := w.R.Executor.Execute(w.Context(), v, w.Begins()); err == nil {
				t.Errorf("%s: it is restored over", name)
			}
			if _, there := w.Contents()["ConfigMap orders-record"]; there {
				t.Errorf("%s: there is a record", name)
			}
		})
	}
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		was := w.Record()
		w.AsksRestore(reconcilertest.StoredBackup(t))
		if err := w.Do(w.Begins()); err == nil || !reflect.DeepEqual(w.Record(), was) {
			t.Errorf("a living cluster's record is %+v: %v", w.Record(), err)
		}
		inPlace := w.Begins()
		inPlace.InPlace = true
		if err := w.Do(inPlace); err == nil || !reflect.DeepEqual(w.Record(), was) {
			t.Errorf("a living cluster's record is %+v: %v", w.Record(), err)
		}
	})
}

// 135: a pod that carries a cluster's labels and no member's name is no member of it.
func TestARestoreTakesACopyForNoMember(t *testing.T) {
	reconcilertest.Restoring(t, func(w *reconcilertest.World) {
		w.Put(reconcilertest.PodsResource(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-0-debug", Namespace: "shop", Labels: naming.OwnLabels(w.Wish.EtcdCluster)}})
		w.MustDo(w.Begins())
		if w.Record().Recovering == nil {
			t.Errorf("the record is %+v", w.Record())
		}
	})
}

// I7: a volume is made for the first member of a restore that continues, and for
// nobody else.
func TestAVolumeIsMadeForTheRestoreAlone(t *testing.T) {
	a := action.CreateVolume{Member: "orders-0", Claim: "data-orders-0"}
	for name, test := range map[string]struct {
		edit   func(*record.Record)
		action action.CreateVolume
	}{
		"no restore goes on": {func(r *record.Record) { r.Recovering = nil }, a},
		"it is a recovery":   {func(r *record.Record) { r.Restored = nil }, a},
		"it has formed":      {func(r *record.Record) { r.ClusterID, r.Members = "c9", map[string]string{"orders-0": "a0"} }, a},
		"another member":     {func(*record.Record) {}, action.CreateVolume{Member: "orders-1", Claim: "data-orders-1"}},
		"another claim":      {func(*record.Record) {}, action.CreateVolume{Member: "orders-0", Claim: "data-orders-1"}},
	} {
		reconcilertest.Restoring(t, func(w *reconcilertest.World) {
			w.MustDo(w.Begins())
			if err := w.R.Executor.Note(w.Context(), w.Look(), test.edit); err != nil {
				t.Fatal(err)
			}
			if err := w.Do(test.action); !errors.Is(err, state.ErrChanged) || len(w.Claims()) > 0 {
				t.Errorf("%s: %v, the claims are %q", name, err, claimsOf(w))
			}
		})
	}
	reconcilertest.Restoring(t, func(w *reconcilertest.World) {
		w.MustDo(w.Begins())
		theirs := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: a.Claim, Namespace: "shop"}}
		w.Put(reconcilertest.ClaimsResource(), theirs)
		backuptest.WantError(t, w.Do(a), "create the volume claim data-orders-0", "somebody else's")
		v := w.Look()
		w.API.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, clustertest.ErrAway })
		if err := w.R.Executor.Execute(w.Context(), v, a); !errors.Is(err, clustertest.ErrAway) {
			t.Errorf("whose it is cannot be read: %v", err)
		}
	})
}

// 128: in the place of a cluster that Git has deleted: first it is deleted, then
// the backup comes on new volumes, under the same names for clients. The old
// volumes stay, and nothing of the new cluster ever touches them.
func TestARestoreTakesThePlaceOfADeletedCluster(t *testing.T) {
	url := reconcilertest.StoredBackup(t)
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		was, authority := w.Record(), w.Contents()["Secret orders-ca"]
		former := w.Wish.EtcdCluster
		former.Spec.State, former.Spec.Deletion.Backup = schema.StateDeleted, schema.BackupSkip
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Replicas = 1 })
		w.AsksRestore(url)
		w.Wish.Restore.Former = &former
		for range 90 {
			if _, err := w.Pass(); err != nil && !strings.Contains(err.Error(), "changed between") {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			reconcilertest.RestoreGoesOn(w)
			if r := w.Record(); r.Restored != nil && !r.Restored.At.IsZero() && r.Applied != nil {
				break
			}
		}
		r := w.Record()
		if r.Restored == nil || r.Restored.At.IsZero() || r.ClusterID == was.ClusterID || r.Token == was.Token {
			t.Fatalf("the record is %+v, done was %q", r, actions(w))
		}
		var kept record.Record
		if len(r.Predecessors) != 1 || json.Unmarshal(r.Predecessors[0].Record, &kept) != nil || kept.Token != was.Token || kept.ClusterID != was.ClusterID || r.Predecessors[0].ClaimPrefix != "data" {
			t.Errorf("predecessors %+v", r.Predecessors)
		}
		names := claimsOf(w)
		for _, name := range []string{"data-orders-0", "data-orders-1", "data-orders-2", r.ClaimPrefix + "-orders-0"} {
			if !slices.Contains(names, name) {
				t.Errorf("%s is gone: %v", name, names)
			}
		}
		if got := w.Set().Spec.VolumeClaimTemplates[0].Name; got != r.ClaimPrefix || !strings.HasPrefix(got, "data-r") {
			t.Errorf("the claims begin with %s, the record says %s", got, r.ClaimPrefix)
		}
		for _, c := range w.Set().Spec.Template.Spec.Containers {
			if c.Name == naming.ContainerEtcd && c.VolumeMounts[0].Name != r.ClaimPrefix {
				t.Errorf("etcd mounts %v", c.VolumeMounts)
			}
		}
		if !w.AdmitsClients() || !reflect.DeepEqual(w.Contents()["Secret orders-ca"], authority) {
			t.Error("clients cannot come back as they are")
		}
		if volumes := w.Look().Observed.Volumes; len(volumes) != 1 || volumes[0].Member != "orders-0" {
			t.Errorf("the volumes are taken for %+v", volumes)
		}
	})
}

// 120, 166: a backup whose keys have another hash than etcd said is refused, and the hold
// says how to restore it all the same. The sha256 of another backup changes nothing;
// its own lets a second Job begin, each action twice, and nothing of both is left.
func TestAnotherHashIsAcceptedForOneBackup(t *testing.T) {
	reconcilertest.Restoring(t, func(w *reconcilertest.World) {
		stepsOf(w, w.Begins(), action.CreateSet{Replicas: 0}, action.CreateVolume{Member: "orders-0", Claim: "data-orders-0"})
		g := w.Record().Recovering
		a := action.RestoreVolume{Member: "orders-0", Claim: "data-orders-0", ClaimUID: string(w.Claims()[0].UID), ClusterID: g.NewClusterID}
		stepsOf(w, a)
		first := reconcilertest.JobsOf(w)[0]
		w.Put(reconcilertest.PodsResource(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "refuses", Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: first.Name}},
			Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
				jobstest.Ended(jobs.RestoreContainer, jobs.ExitHashMismatch, "quorate: the backup is unfit: the hash of its keys"),
			}},
		})
		if r := w.Look().Observed.Restore; r.State != state.RestoreRunning || r.AcceptHashMismatch != "" {
			t.Errorf("as long as it runs: %+v", r)
		}
		reconcilertest.JobEndedWith(w, batchv1.JobFailed)
		for _, word := range []string{"", strings.Repeat("0a", 32)} {
			w.Wish.Restore.Source.AcceptHashMismatch = word
			r := w.Look().Observed.Restore
			if want := fmt.Sprintf("commit spec.source.acceptHashMismatch: %q", g.SHA256); r.State != state.RestoreFailed || !strings.Contains(r.Detail, want) {
				t.Errorf("with the word %q: %+v, want %s", word, r, want)
			}
		}
		w.Wish.Restore.Source.AcceptHashMismatch = g.SHA256
		if r := w.Look().Observed.Restore; r != (state.Restore{AcceptHashMismatch: g.SHA256}) {
			t.Errorf("with its own: %+v", r)
		}
		a.AcceptHashMismatch = g.SHA256
		stepsOf(w, a)
		all := reconcilertest.JobsOf(w)
		if len(all) != 2 || all[1].Name != first.Name+"-2" || !slices.Contains(all[1].Spec.Template.Spec.Containers[0].Args, "--accept-hash-mismatch="+g.SHA256) {
			t.Fatalf("Jobs %+v", all)
		}
		w.Wish.Restore.Source.AcceptHashMismatch = "" // what has begun goes to its end
		if r := w.Look().Observed.Restore; r.State != state.RestoreRunning || r.Job != all[1].Name {
			t.Errorf("the second: %+v", r)
		}
		stepsOf(w, action.AdoptRecovery{ClusterID: g.NewClusterID, Member: "orders-0", MemberID: g.NewMemberID}, action.EndRecovery{OneShot: "restore back"})
		if all := reconcilertest.JobsOf(w); len(all) > 0 {
			t.Errorf("Jobs are left: %v", all)
		}
	})
}

// 166, I3: no other backup is accepted, and no other recovery's.
func TestWhatIsAcceptedIsOfThisBackup(t *testing.T) {
	reconcilertest.Restoring(t, func(w *reconcilertest.World) {
		stepsOf(w, w.Begins(), action.CreateSet{Replicas: 0}, action.CreateVolume{Member: "orders-0", Claim: "data-orders-0"})
		a := action.RestoreVolume{
			Member: "orders-0", Claim: "data-orders-0", ClaimUID: string(w.Claims()[0].UID), ClusterID: w.Record().Recovering.NewClusterID,
			AcceptHashMismatch: strings.Repeat("0a", 32),
		}
		if err := w.Do(a); !errors.Is(err, state.ErrChanged) || len(reconcilertest.JobsOf(w)) > 0 || w.Record().Recovering.AcceptHashMismatch != "" {
			t.Errorf("%v", err)
		}
	})
}
