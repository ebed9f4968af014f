package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// restoring is a world in which Git asks for a restore into orders, and nothing
// exists but the backup.
func restoring(t *testing.T, test func(w *world), edits ...func(*backup.Manifest)) {
	t.Helper()
	url := storedBackup(t, edits...)
	inWorld(t, func(w *world) {
		w.asksRestore(url)
		test(w)
	})
}

// storedBackup is a backup in a directory.
func storedBackup(t *testing.T, edits ...func(*backup.Manifest)) string {
	t.Helper()
	dir := t.TempDir()
	url := "file://" + dir + "/1.db?root=" + dir
	m := backup.Manifest{ClusterID: "c0", EtcdVersion: "3.5.35", Revision: 7}
	for _, edit := range edits {
		edit(&m)
	}
	if _, err := (backup.Store{}).Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
		t.Fatal(err)
	}
	return url
}

// asksRestore lets Git ask for a restore.
func (w *world) asksRestore(url string) {
	w.sign(func(_ context.Context, _ backup.Store, objectURL string, _ time.Duration) (string, error) {
		return "https://store/" + objectURL + "&signature=x", nil
	})
	w.wish.Restore = &desired.Restore{Name: "back", SpecHash: "r1", Source: schema.RestoreSource{ObjectURL: url}}
	w.etcd.members = w.etcd.members[:1]
}

// begins is the action that begins the restore.
func (w *world) begins() action.BeginRestore {
	return action.BeginRestore{
		Restore: "back", SpecHash: "r1", SourceHash: schema.SourceHash(w.wish.Restore.Source), Source: desired.SourceText(w.wish.Restore.Source),
		Member: "orders-0", Version: "3.6.16",
	}
}

// admitsClients says whether the Service for clients is there.
func (w *world) admitsClients() bool {
	_, there := w.contents()["Service orders-client"]
	return there
}

// restoreGoesOn lets the Job end, and then the first member answer.
func restoreGoesOn(w *world) {
	switch r := w.record(); {
	case r.Recovering != nil && len(jobsOf(w)) == 1 && r.ClusterID == "":
		jobEnded(w)
	case r.Recovering != nil && r.ClusterID != "":
		startsAlone(w, "orders-0", 7+situation.RecoveryBump)
	}
}

// 117, 121: a restore from its beginning to its check, each action twice.
func TestABackupBecomesACluster(t *testing.T) {
	restoring(t, func(w *world) {
		stepsOf(w, w.begins())
		r := w.record()
		g := r.Recovering
		wantCluster, wantMember, err := restore.Identity(g.Token, "orders-0", "https://orders-0.orders-peers.shop.svc:2380")
		if err != nil || r.Formed() || g.NewClusterID != wantCluster || g.NewMemberID != wantMember || r.Token != g.Token || g.Revision != 7 || len(g.SHA256) != 64 {
			t.Errorf("the record is %+v, recovering %+v: %v", r, g, err)
		}
		if w := r.Restored; w == nil || w.Name != "back" || w.FromCluster != "c0" || !w.At.IsZero() || strings.Contains(w.Object, "?") {
			t.Errorf("restored %+v", w)
		}
		stepsOf(w, action.IssueCertificates{}, action.ApplyObject{ObjectKind: "Service", Name: "orders-peers"}, action.CreateSet{Replicas: 0},
			action.CreateVolume{Member: "orders-0", Claim: "data-orders-0"})
		if w.pod("orders-0") != nil {
			t.Fatal("a pod runs on a volume that waits for a backup")
		}
		claim := w.claims()[0]
		if !naming.Owns(claim, w.wish.EtcdCluster) || len(claim.OwnerReferences) > 0 || claim.Spec.Resources.Requests.Storage().String() != "8Gi" {
			t.Errorf("the claim is %+v", claim)
		}
		stepsOf(w, action.RestoreVolume{Member: "orders-0", Claim: "data-orders-0", ClaimUID: string(claim.UID), ClusterID: g.NewClusterID})
		all := jobsOf(w)
		if len(all) != 1 || !strings.HasPrefix(all[0].Name, "orders-restore-") {
			t.Fatalf("Jobs %v", all)
		}
		if args := strings.Join(all[0].Spec.Template.Spec.Containers[0].Args, " "); strings.Contains(args, "--former-token") || !strings.Contains(args, "--sha256="+g.SHA256) {
			t.Errorf("it runs %s", args)
		}
		jobEnded(w)
		stepsOf(w, action.AdoptRecovery{ClusterID: g.NewClusterID, Member: "orders-0", MemberID: g.NewMemberID})
		if r := w.record(); r.ClusterID != g.NewClusterID || r.BornOn != "3.5" || !reflect.DeepEqual(r.Members, map[string]string{"orders-0": g.NewMemberID}) {
			t.Errorf("the record is %+v", r)
		}
		stepsOf(w, action.ResizeSet{SetUID: string(w.set().UID), From: 0, To: 1, Partition: 1}, action.EndRecovery{OneShot: "restore back"})
		if r := w.record(); r.Recovering != nil || len(r.Recovered) > 0 || !r.Restored.At.IsZero() || len(jobsOf(w)) > 0 {
			t.Errorf("the record is %+v, Jobs %v", r, jobsOf(w))
		}
		stepsOf(w, action.EndRestore{Restore: "back", SpecHash: "r2"})
		if r := w.record(); r.Restored.At.IsZero() || r.Restored.SpecHash != "r2" {
			t.Errorf("restored %+v", r.Restored)
		}
	})
}

// 117, 119, 122: the same by itself, pass after pass. Clients may come when it is
// over, and it is never done again: not by another daemon, nor when the file gives
// way to that of the cluster, nor when it comes back.
func TestARestoreRunsToItsEndByItself(t *testing.T) {
	restoring(t, func(w *world) {
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Replicas = 1 })
		for range 60 {
			w.mustPass()
			time.Sleep(time.Second)
			restoreGoesOn(w)
			r := w.record()
			if r.Restored.At.IsZero() && w.admitsClients() {
				t.Fatal("clients are let in before it is over")
			}
			if !r.Restored.At.IsZero() && w.admitsClients() && r.Applied != nil {
				break
			}
		}
		r := w.record()
		if r.Restored.At.IsZero() || !w.admitsClients() || r.Applied == nil {
			p, err := w.r.Plan(w.Context(), w.wish)
			t.Fatalf("the record is %+v, done was %q, the plan is %s, %v", r, actions(w), p.Text(), err)
		}
		pod, template := w.pod("orders-0").UID, w.set().Spec.Template.Annotations[naming.AnnotationTemplateHash]
		wish := w.wish.Restore
		for name, as := range map[string]*desired.Restore{"as it was": wish, "as a cluster": nil, "back again": wish} {
			w.wish.Restore = as
			for range 5 {
				w.mustPass()
				time.Sleep(time.Second)
			}
			if again := w.record(); again.ClusterID != r.ClusterID || again.Recovering != nil || w.pod("orders-0").UID != pod || w.set().Spec.Template.Annotations[naming.AnnotationTemplateHash] != template {
				t.Errorf("%s: the record is %+v, done was %q", name, again, actions(w))
			}
		}
		w.wish.Restore = &desired.Restore{Name: "back", SpecHash: "r9", Source: wish.Source}
		if p, err := w.r.Plan(w.Context(), w.wish); err != nil || p.Hold == nil || p.Hold.Rule != "restore" {
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
			restoring(t, func(w *world) {
				if c.source != nil {
					c.source(&w.wish.Restore.Source)
				}
				if err := w.do(w.begins()); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if all := w.contents(); len(all) > 0 || len(w.claims()) > 0 {
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
	inWorld(t, func(w *world) {
		w.asksRestore(url)
		backuptest.WantError(t, w.do(w.begins()), "is encrypted", identity.Recipient().String(), "spec.source.decryption.secretName")
		if all := w.contents(); len(all) > 0 {
			t.Fatalf("there is %v", all)
		}
		w.wish.Restore.Source.Decryption.SecretName = "age"
		w.mustDo(w.begins())
		g := w.record().Recovering
		if g.Decryption != "age" || g.Hash != 99 || g.HashRevision != 6 || g.CompactRevision != 2 {
			t.Errorf("recovering %+v", g)
		}
		step := jobs.RenderRestore(w.wish, nil, "quorate:1", "data-orders-0", *g).Spec.Template.Spec.Containers[0]
		from := map[string]string{}
		for _, e := range step.Env {
			from[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
		if from["QUORATE_BACKUP_IDENTITY"] != "age/identity" || len(from) != 3 {
			t.Errorf("it is given %v", from)
		}
		if args := strings.Join(step.Args, " "); !strings.Contains(args, "--hash=99 --hash-revision=6 --compact-revision=2") {
			t.Errorf("it runs %s", args)
		}
		for _, a := range w.api.Actions() {
			if get, ok := a.(clienttesting.GetAction); ok && a.GetResource().Resource == "secrets" && get.GetName() == "age" {
				t.Error("the daemon reads the private key")
			}
		}
	})
}

// 118, I3, I7: what exists is seen although the caches do not know it yet.
func TestARestoreLooksAgain(t *testing.T) {
	for name, put := range map[string]func(w *world){
		"pod": func(w *world) {
			w.put(podsResource(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-0", Namespace: "shop", Labels: naming.OwnLabels(w.wish.EtcdCluster)}})
		},
		"claim": func(w *world) {
			w.put(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-orders-0", Namespace: "shop", Labels: naming.OwnLabels(w.wish.EtcdCluster)}})
		},
		"StatefulSet": func(w *world) {
			w.put(setsResource(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop"}})
		},
	} {
		restoring(t, func(w *world) {
			v := w.look()
			put(w)
			if err := w.r.executor.execute(w.Context(), v, w.begins()); err == nil {
				t.Errorf("%s: it is restored over", name)
			}
			if _, there := w.contents()["ConfigMap orders-record"]; there {
				t.Errorf("%s: there is a record", name)
			}
		})
	}
	formed(t, func(w *world) {
		was := w.record()
		w.asksRestore(storedBackup(t))
		if err := w.do(w.begins()); err == nil || !reflect.DeepEqual(w.record(), was) {
			t.Errorf("a living cluster's record is %+v: %v", w.record(), err)
		}
		inPlace := w.begins()
		inPlace.InPlace = true
		if err := w.do(inPlace); err == nil || !reflect.DeepEqual(w.record(), was) {
			t.Errorf("a living cluster's record is %+v: %v", w.record(), err)
		}
	})
}

// 135: a pod that carries a cluster's labels and no member's name is no member of it.
func TestARestoreTakesACopyForNoMember(t *testing.T) {
	restoring(t, func(w *world) {
		w.put(podsResource(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-0-debug", Namespace: "shop", Labels: naming.OwnLabels(w.wish.EtcdCluster)}})
		w.mustDo(w.begins())
		if w.record().Recovering == nil {
			t.Errorf("the record is %+v", w.record())
		}
	})
}

// I7: a record gives way to a restore only where its cluster was deleted, and Git
// asks for its place.
func TestARecordGivesWayOnlyWhenItsClusterIsDeleted(t *testing.T) {
	begin, c := action.BeginRestore{Restore: "back", SpecHash: "r1"}, clustertest.Orders()
	living, deleted, begun := record.New("t1"), record.New("t1"), record.New("t1")
	deleted.Deleted = true
	begun.Restored = &record.Restored{Name: "back", SpecHash: "r1"}
	other, edited := record.New("t1"), record.New("t1")
	other.Restored, edited.Restored = &record.Restored{Name: "forth", SpecHash: "r1"}, &record.Restored{Name: "back", SpecHash: "r2"}
	for name, test := range map[string]struct {
		was     *record.Record
		inPlace bool
		want    error
	}{
		"nothing":                      {nil, false, nil},
		"nothing to take the place of": {nil, true, state.ErrChanged},
		"a living cluster":             {&living, false, state.ErrChanged},
		"a living cluster's place":     {&living, true, state.ErrChanged},
		"a deleted cluster":            {&deleted, false, state.ErrChanged},
		"a deleted cluster's place":    {&deleted, true, nil},
		"the same restore":             {&begun, false, nil},
		"the same restore in a place":  {&begun, true, nil},
		"another restore":              {&other, false, state.ErrChanged},
		"the same name, another spec":  {&edited, false, state.ErrChanged},
	} {
		var live *corev1.ConfigMap
		if test.was != nil {
			live = &corev1.ConfigMap{Data: test.was.ConfigMap(c).Data}
		}
		begin.InPlace = test.inPlace
		if was, err := recordToSucceed(live, begin); !errors.Is(err, test.want) || (was != nil) != (test.was != nil && test.want == nil) {
			t.Errorf("%s: %+v, %v", name, was, err)
		}
	}
}

// I7: a volume is made for the first member of a restore that goes on, and for
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
		restoring(t, func(w *world) {
			w.mustDo(w.begins())
			if err := w.r.executor.Note(w.Context(), w.look(), test.edit); err != nil {
				t.Fatal(err)
			}
			if err := w.do(test.action); !errors.Is(err, state.ErrChanged) || len(w.claims()) > 0 {
				t.Errorf("%s: %v, the claims are %q", name, err, claimsOf(w))
			}
		})
	}
	restoring(t, func(w *world) {
		w.mustDo(w.begins())
		theirs := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: a.Claim, Namespace: "shop"}}
		w.put(claimsResource(), theirs)
		backuptest.WantError(t, w.do(a), "create the volume claim data-orders-0", "somebody else's")
		v := w.look()
		w.api.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errAway })
		if err := w.r.executor.execute(w.Context(), v, a); !errors.Is(err, errAway) {
			t.Errorf("whose it is cannot be read: %v", err)
		}
	})
}

// 128: in the place of a cluster that Git has deleted: first it is deleted, then
// the backup comes on new volumes, under the same names for clients. The old
// volumes stay, and nothing of the new cluster ever touches them.
func TestARestoreTakesThePlaceOfADeletedCluster(t *testing.T) {
	url := storedBackup(t)
	formed(t, func(w *world) {
		was, authority := w.record(), w.contents()["Secret orders-ca"]
		former := w.wish.EtcdCluster
		former.Spec.State, former.Spec.Deletion.Backup = schema.StateDeleted, schema.BackupSkip
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Replicas = 1 })
		w.asksRestore(url)
		w.wish.Restore.Former = &former
		for range 90 {
			if _, err := w.pass(); err != nil && !strings.Contains(err.Error(), "changed between") {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			restoreGoesOn(w)
			if r := w.record(); r.Restored != nil && !r.Restored.At.IsZero() && r.Applied != nil {
				break
			}
		}
		r := w.record()
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
		if got := w.set().Spec.VolumeClaimTemplates[0].Name; got != r.ClaimPrefix || !strings.HasPrefix(got, "data-r") {
			t.Errorf("the claims begin with %s, the record says %s", got, r.ClaimPrefix)
		}
		for _, c := range w.set().Spec.Template.Spec.Containers {
			if c.Name == naming.ContainerEtcd && c.VolumeMounts[0].Name != r.ClaimPrefix {
				t.Errorf("etcd mounts %v", c.VolumeMounts)
			}
		}
		if !w.admitsClients() || !reflect.DeepEqual(w.contents()["Secret orders-ca"], authority) {
			t.Error("clients cannot come back as they are")
		}
		if volumes := w.look().observed.Volumes; len(volumes) != 1 || volumes[0].Member != "orders-0" {
			t.Errorf("the volumes are taken for %+v", volumes)
		}
	})
}
