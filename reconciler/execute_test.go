package reconciler

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

// look is one observation, which must not fail.
func (w *world) look() *view {
	w.Helper()
	v, err := w.r.observer.observe(w.Context(), w.wish)
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// do carries out an action on what is seen now.
func (w *world) do(action action.Action) error {
	w.Helper()
	err := w.r.executor.execute(w.Context(), w.look(), action)
	synctest.Wait()
	return err
}

// mustDo is a do that must not fail.
func (w *world) mustDo(action action.Action) {
	w.Helper()
	if err := w.do(action); err != nil {
		w.Fatal(err)
	}
}

// contents is all that the API server stores of the resources that quorate
// writes, by resource and name.
func (w *world) contents() map[string]runtime.Object {
	w.Helper()
	all := map[string]runtime.Object{}
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	for kind, resource := range map[string]apischema.GroupVersionResource{
		"ConfigMap": core.WithResource("configmaps"), "Secret": core.WithResource("secrets"), "Service": core.WithResource("services"),
		"Pod": core.WithResource("pods"), "StatefulSet": apps.WithResource("statefulsets"),
		"PodDisruptionBudget": {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	} {
		list, err := w.api.Tracker().List(resource, apischema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: kind}, "shop")
		if err != nil {
			w.Fatal(err)
		}
		_ = metaEach(list, func(name string, o runtime.Object) { all[kind+" "+name] = o })
	}
	return all
}

func metaEach(list runtime.Object, f func(name string, o runtime.Object)) error {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	for i := range items.Len() {
		o, ok := items.Index(i).Addr().Interface().(interface {
			runtime.Object
			metav1.Object
		})
		if !ok {
			return fmt.Errorf("item %d is no object", i)
		}
		f(o.GetName(), o)
	}
	return nil
}

// Each action, carried out twice, does the second time what the first time
// left: nothing.
func TestActionsAreIdempotent(t *testing.T) {
	for name, act := range map[string]action.Action{
		"create the record":    action.CreateRecord{},
		"issue certificates":   action.IssueCertificates{},
		"headless service":     action.ApplyObject{ObjectKind: "Service", Name: "orders-peers"},
		"client service":       action.ApplyObject{ObjectKind: "Service", Name: "orders-client"},
		"budget":               action.ApplyObject{ObjectKind: "PodDisruptionBudget", Name: "orders"},
		"create the set":       action.CreateSet{Replicas: 3},
		"create a set of five": action.CreateSet{Replicas: 5},
	} {
		t.Run(name+" from nothing", func(t *testing.T) {
			inWorld(t, func(w *world) {
				if name != "create the record" {
					w.mustDo(action.CreateRecord{})
				}
				twice(w, act)
			})
		})
	}
	for name, action := range map[string]action.Action{
		"the set's drift": action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"},
		"record formed":   action.RecordFormed{ClusterID: "c1", Members: map[string]string{"orders-0": "a0", "orders-1": "a1", "orders-2": "a2"}},
		"record applied":  action.RecordApplied{SpecHash: "h", Version: "3.6.16", Commit: "f00"},
		"end the roll":    action.EndRoll{Replicas: 3},
		"start the roll":  action.StartRoll{Partition: 3, From: "3.6.12", To: "3.6.16"},
		"by partition":    action.RestartMember{Member: "orders-2", Partition: 2},
		"the record":      action.CreateRecord{},
		"hibernate":       action.Hibernate{},
		"wake":            action.Wake{},
		"begin to delete": action.BeginDeletion{},
		"revive":          action.Revive{},
		"delete the set":  action.DeleteObject{ObjectKind: "StatefulSet", Name: "orders"},
		"delete a budget": action.DeleteObject{ObjectKind: "PodDisruptionBudget", Name: "orders"},
		"delete a secret": action.DeleteObject{ObjectKind: "Secret", Name: "orders-client-ca"},
		"forget":          action.ForgetCluster{},
	} {
		t.Run(name+" of a formed cluster", func(t *testing.T) {
			formed(t, func(w *world) { twice(w, action) })
		})
	}
}

func twice(w *world, action action.Action) {
	w.Helper()
	w.mustDo(action)
	once := w.contents()
	w.mustDo(action)
	if again := w.contents(); !reflect.DeepEqual(once, again) {
		w.Errorf("%s changed something the second time", action)
	}
}

func TestCreateRecordKeepsWhatExists(t *testing.T) {
	formed(t, func(w *world) {
		before := w.record()
		w.mustDo(action.CreateRecord{})
		if after := w.record(); !reflect.DeepEqual(before, after) {
			t.Errorf("the record was %+v and is %+v", before, after)
		}
	})
}

func TestEveryRecordHasItsOwnToken(t *testing.T) {
	tokens := map[string]bool{}
	for range 3 {
		inWorld(t, func(w *world) {
			w.mustDo(action.CreateRecord{})
			token := w.record().Token
			if !strings.HasPrefix(token, "orders-") || tokens[token] {
				t.Errorf("token %q", token)
			}
			tokens[token] = true
		})
	}
}

func TestRecordFormedWritesTheIDs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.mustDo(action.CreateRecord{})
		members := map[string]string{"orders-0": "a0", "orders-1": "a1", "orders-2": "a2"}
		w.mustDo(action.RecordFormed{ClusterID: "c1", Members: members})
		r := w.record()
		if r.ClusterID != "c1" || !reflect.DeepEqual(r.Members, members) {
			t.Errorf("the record is %+v", r)
		}
	})
}

// Somebody who writes the record between the read and the write wins.
func TestRecordChangedInBetweenIsNotOverwritten(t *testing.T) {
	formed(t, func(w *world) {
		configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
		w.api.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			object, err := w.api.Tracker().Get(configMaps, "shop", "orders-record")
			if err != nil {
				return true, nil, err
			}
			if cm, _ := object.(*corev1.ConfigMap); cm.Labels["by"] == "" {
				cm.Labels["by"] = "somebody"
				w.put(configMaps, cm)
			}
			return false, nil, nil
		})
		err := w.do(action.RecordApplied{SpecHash: "h", Version: "9.9.9", Commit: "f00"})
		if !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict", err)
		}
		if v := w.record().Applied.Version; v == "9.9.9" {
			t.Error("the record was overwritten")
		}
		w.mustDo(action.RecordApplied{SpecHash: "h", Version: "9.9.9", Commit: "f00"})
	})
}

// What is made from the record follows it again, although the record itself has not
// changed: a pod that starts reads that.
func TestWhatIsMadeFromTheRecordIsMended(t *testing.T) {
	formed(t, func(w *world) {
		before := w.contents()["ConfigMap orders-record"]
		edited, _ := before.DeepCopyObject().(*corev1.ConfigMap)
		edited.Data[naming.KeyInitialState] = record.StateNew
		w.put(corev1.SchemeGroupVersion.WithResource("configmaps"), edited)
		w.settle()
		v := w.look()
		if err := w.r.executor.execute(w.Context(), v, action.Revive{}); err != nil {
			t.Fatal(err)
		}
		after, _ := w.contents()["ConfigMap orders-record"].(*corev1.ConfigMap)
		if got := after.Data[naming.KeyInitialState]; got != record.StateExisting {
			t.Errorf("the initial state is %q", got)
		}
	})
}

func TestDamagedRecordIsNotOverwritten(t *testing.T) {
	formed(t, func(w *world) {
		v := w.look()
		damage(w)
		if err := w.r.executor.execute(w.Context(), v, action.RecordApplied{Version: "3.6.16"}); err == nil || !strings.Contains(err.Error(), "restore this ConfigMap") {
			t.Errorf("error %v", err)
		}
		if writes := w.api.writes(); len(writes) > 0 {
			t.Errorf("writes %q", writes)
		}
	})
}

// damage cuts the record short.
func damage(w *world) {
	w.Helper()
	configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
	object, err := w.api.Tracker().Get(configMaps, "shop", "orders-record")
	if err != nil {
		w.Fatal(err)
	}
	cm, _ := object.(*corev1.ConfigMap)
	cm.Data[naming.KeyRecord] = cm.Data[naming.KeyRecord][:20]
	w.put(configMaps, cm)
}

func TestSecretOfAnotherOwnerIsNotTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.mustDo(action.CreateRecord{})
		w.put(corev1.SchemeGroupVersion.WithResource("secrets"), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "orders-server", Namespace: "shop"},
			Data:       map[string][]byte{"precious": []byte("key")},
		})
		err := w.do(action.IssueCertificates{})
		backuptest.WantError(t, err, "create Secret orders-server", "not labelled")
		secret, _ := w.contents()["Secret orders-server"].(*corev1.Secret)
		if string(secret.Data["precious"]) != "key" || len(secret.Data) != 1 {
			t.Error("the Secret was changed")
		}
	})
}

func TestApplyRefusesWhatItDoesNotKnow(t *testing.T) {
	formed(t, func(w *world) {
		for _, a := range []action.ApplyObject{
			{ObjectKind: "Ingress", Name: "orders"}, {ObjectKind: "Ingress", Name: "orders-peers"}, {ObjectKind: "Ingress", Name: "orders-client"}, {ObjectKind: "Service", Name: "orders"},
		} {
			backuptest.WantError(t, w.do(a), "apply "+a.ObjectKind+" "+a.Name, "keeps no such object")
		}
	})
}

// I3: a StatefulSet that has changed since the decision is not overwritten.
func TestApplySetNeedsTheVersionThatWasSeen(t *testing.T) {
	formed(t, func(w *world) {
		v := w.look()
		set := w.set()
		set.Annotations = map[string]string{"by": "somebody"}
		w.put(setsResource(), set)
		for _, action := range []action.Action{
			action.StartRoll{Partition: 3},
			action.RestartMember{Member: "orders-2", Partition: 2},
			action.EndRoll{Replicas: 3},
			action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"},
		} {
			if err := w.r.executor.execute(w.Context(), v, action); !apierrors.IsConflict(err) || !errors.Is(err, state.ErrChanged) {
				t.Errorf("%s: error %v, want a conflict", action, err)
			}
		}
		if p := partitionOf(w.set()); p != 3 {
			t.Errorf("the partition became %d", p)
		}
	})
}

func TestStartRollTouchesNoPod(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		before := w.pod("orders-2").UID
		w.mustDo(action.StartRoll{Partition: 3, From: "3.6.12", To: "3.6.16"})
		w.settle()
		if w.pod("orders-2").UID != before {
			t.Error("orders-2 was restarted")
		}
		if got := w.set().Spec.Template.Annotations[naming.AnnotationVersion]; got != "3.6.16" {
			t.Errorf("the template is for %s", got)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I11: a backup that has gone from its store, or is another one by now, starts
// no roll.
func TestStartRollAsksForTheBackupAgain(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		w.mustDo(action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "3.6.16", Why: "upgrade 3.6.12 → 3.6.16"})
		url := w.record().Backup.URL
		path := strings.TrimPrefix(url[:strings.Index(url, "?")], "file://")
		roll := action.StartRoll{Partition: 3, From: "3.6.12", To: "3.6.16"}
		manifest, err := os.ReadFile(path + backup.ManifestSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path + backup.ManifestSuffix); err != nil {
			t.Fatal(err)
		}
		w.api.ClearActions()
		if err := w.do(roll); !errors.Is(err, backup.ErrNotFound) {
			t.Errorf("without a manifest: %v", err)
		}
		for old, another := range map[string]string{`"clusterID": "c1"`: `"clusterID": "c2"`, w.record().Backup.SHA256: strings.Repeat("0", 64)} {
			if err := os.WriteFile(path+backup.ManifestSuffix, bytes.Replace(manifest, []byte(old), []byte(another), 1), 0o600); err != nil {
				t.Fatal(err)
			}
			backuptest.WantError(t, w.do(roll), "start the roll", "is not the one that was verified")
		}
		if writes := w.api.writes(); len(writes) > 0 {
			t.Errorf("writes %q", writes)
		}
		if err := w.do(action.StartRoll{Partition: 3}); err != nil {
			t.Errorf("a roll that rests on no backup: %v", err)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// boltSnapshot is what etcd sends of a real database.
func boltSnapshot(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		return bucket.Put([]byte("k"), []byte("v"))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

func TestTakeBackupRecordsWhatTheStoreHolds(t *testing.T) {
	data := boltSnapshot(t)
	formed(t, func(w *world) {
		w.etcd.snapshot = data
		w.commit(clustertest.SetVersion("3.6.16"))
		take := action.TakeBackup{Member: "orders-1", MemberID: "a1", ClusterID: "c1", For: "3.6.16", Why: "upgrade 3.6.12 → 3.6.16"}
		w.mustDo(take)
		first := w.record().Backup
		w.mustDo(take)
		second := w.record().Backup
		if first.URL == second.URL {
			t.Error("the second backup has the name of the first")
		}
		for _, b := range []*record.Backup{first, second} {
			m, err := backup.Store{}.Verify(w.Context(), b.URL)
			if err != nil {
				t.Fatal(err)
			}
			if m.SHA256 != b.SHA256 || m.Size != int64(len(data)) || m.ClusterID != "c1" || m.Member != "orders-1" ||
				m.EtcdVersion != "3.6.12" || m.Revision != 7 || m.TargetVersion != "3.6.16" || m.Commit != w.wish.Commit || m.Reason != "upgrade 3.6.12 → 3.6.16" {
				t.Errorf("manifest %+v of %+v", m, b)
			}
		}
		if want := []string{"snapshot of orders-1", "snapshot of orders-1"}; !slices.Equal(w.etcd.calls, want) {
			t.Errorf("calls %q", w.etcd.calls)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// The last look need not be one that compared hashes: what an earlier one saw stays.
func TestManifestKeepsTheHashThatWasSeen(t *testing.T) {
	var m backup.Manifest
	stores.DescribeSource(&m, state.Member{Revision: 8, Hash: 9, HashRevision: 7, CompactRevision: 3, Keys: 5})
	stores.DescribeSource(&m, state.Member{Revision: 7})
	if m.Revision != 8 || m.Hash != 9 || m.HashRevision != 7 || m.CompactRevision != 3 || m.Keys != 5 {
		t.Errorf("manifest %+v", m)
	}
}

// A manifest tells of the member that the bytes come from, and names a release only
// where the backup is for one.
func TestManifestIsOfTheVeryMember(t *testing.T) {
	formed(t, func(w *world) {
		v := w.look()
		v.observed.Rounds = []state.Round{{Members: []state.Member{{ID: "a0", Version: "3.6.12", Revision: 9}, {ID: "a1", Version: "3.6.11", Revision: 7}}}}
		for what, target := range map[state.Purpose]string{"3.6.16": "3.6.16", state.ForDowngrade("3.5.35"): "3.5.35", "repair orders-0": "", "deletion": ""} {
			m := w.r.executor.ManifestOf(v, action.TakeBackup{Member: "orders-1", MemberID: "a1", ClusterID: "c1", For: what})
			if m.TargetVersion != target || m.EtcdVersion != "3.6.11" || m.Revision != 7 {
				t.Errorf("for %q: %+v", what, m)
			}
		}
	})
}

func TestDamagedSnapshotIsNotRecorded(t *testing.T) {
	formed(t, func(w *world) {
		w.etcd.snapshot[100] ^= 1
		err := w.do(action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "3.6.16", Why: "upgrade 3.6.12 → 3.6.16"})
		backuptest.WantError(t, err, "damaged")
		if b := w.record().Backup; b != nil {
			t.Errorf("recorded %+v", b)
		}
		backuptest.WantError(t, w.do(action.TakeBackup{Member: "orders-7"}), "back up", "orders-7 has no address")
	})
}

// A bucket that refuses holds the upgrade for ever.
func TestFailingBucketStartsNoRoll(t *testing.T) {
	formed(t, func(w *world) {
		w.reconfigure(func(o *Options) { o.BackupURL = "file:///nowhere-at-all/{{ .UID }}.db" })
		w.commit(clustertest.SetVersion("3.6.16"))
		for range 5 {
			if _, err := w.pass(); err == nil || !strings.Contains(err.Error(), "file:///nowhere-at-all/") {
				t.Errorf("error %v", err)
			}
			time.Sleep(time.Minute)
		}
		// That it was begun is noted each time, for who tidies up after it.
		for _, write := range w.api.writes() {
			if write != "update configmaps orders-record" {
				t.Errorf("writes %q", write)
			}
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestMoveLeaderAsksTheLeader(t *testing.T) {
	formed(t, func(w *world) {
		w.mustDo(action.MoveLeader{From: "orders-0", FromID: "a0", To: "orders-1", ToID: "a1"})
		if want := []string{"move leader from orders-0 to a1"}; !slices.Equal(w.etcd.calls, want) {
			t.Errorf("calls %q", w.etcd.calls)
		}
		backuptest.WantError(t, w.do(action.MoveLeader{From: "orders-7"}), "move the leader", "orders-7 has no address")
	})
}

// I3, I20: only the pod that the decision was made on is deleted.
func TestRestartByDeletion(t *testing.T) {
	formed(t, func(w *world) {
		uid := string(w.pod("orders-2").UID)
		gone := action.RestartMember{Member: "orders-2", PodUID: "another", ByDeletion: true}
		if err := w.do(gone); !apierrors.IsConflict(err) {
			t.Errorf("with another UID: %v", err)
		}
		if w.pod("orders-2") == nil {
			t.Fatal("the pod was deleted all the same")
		}
		gone.PodUID = uid
		w.mustDo(gone)
		if w.pod("orders-2") != nil {
			t.Error("the pod is still there")
		}
		w.mustDo(gone)
		w.settle()
		if err := w.do(gone); !apierrors.IsConflict(err) || w.pod("orders-2") == nil {
			t.Errorf("the pod's successor: %v", err)
		}
	})
}

// I25: without the lease nothing is changed.
func TestNothingIsDoneWithoutTheLease(t *testing.T) {
	lost := errors.New("the lease is lost")
	for _, action := range []action.Action{
		action.CreateRecord{},
		action.IssueCertificates{},
		action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"},
		action.CreateSet{Replicas: 3},
		action.RecordFormed{},
		action.TakeBackup{Member: "orders-0"},
		action.StartRoll{},
		action.MoveLeader{From: "orders-0", ToID: "a1"},
		action.RestartMember{Member: "orders-2"},
		action.RestartMember{Member: "orders-2", ByDeletion: true},
		action.Compact{Member: "orders-0"},
		action.Defragment{Member: "orders-0"},
		action.Disarm{Alarm: state.NoSpace, MemberID: "a1"},
		action.EndRoll{},
		action.RecordApplied{},
	} {
		formed(t, func(w *world) {
			w.reconfigure(func(o *Options) { o.Lease = func() error { return lost } })
			if err := w.do(action); !errors.Is(err, lost) {
				t.Errorf("%s: error %v", action, err)
			}
			if writes := w.api.writes(); len(writes) > 0 || len(w.etcd.calls) > 0 {
				t.Errorf("%s: writes %q, calls %q", action, writes, w.etcd.calls)
			}
		})
	}
}

// stale decides on a restart, changes the world behind that decision, and wants
// the restart not to be carried out.
func stale(t *testing.T, behind func(w *world)) {
	t.Helper()
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		w.until(func(p plan.Plan) bool {
			return p.Hold == nil && len(p.Steps) > 0 && strings.HasPrefix(p.Steps[0].Action.String(), "restart orders-2")
		})
		v, p, err := w.r.Decide(w.Context(), w.wish)
		if err != nil || len(p.Steps) == 0 {
			t.Fatalf("plan %s, %v", p.Text(), err)
		}
		// The view is older than what happens now, as a cache would be.
		behind(w)
		w.api.ClearActions()
		if err := w.r.CarryOut(w.Context(), v, p.Steps[0]); !errors.Is(err, state.ErrChanged) {
			t.Errorf("error %v, want %v", err, state.ErrChanged)
		}
		if writes := w.api.writes(); len(writes) > 0 {
			t.Errorf("writes %q", writes)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I3: what the caches say is not acted upon when the API server says otherwise.
func TestStaleCacheActsOnNothing(t *testing.T) {
	t.Run("the pod was replaced", func(t *testing.T) {
		stale(t, func(w *world) { w.deletePod("orders-2"); w.settle() })
	})
	t.Run("another pod is gone", func(t *testing.T) {
		stale(t, func(w *world) { w.deletePod("orders-0") })
	})
	t.Run("another pod is not ready", func(t *testing.T) {
		stale(t, func(w *world) {
			pod := w.pod("orders-1")
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
			w.put(podsResource(), pod)
		})
	})
	t.Run("another pod is terminating", func(t *testing.T) {
		stale(t, func(w *world) {
			pod := w.pod("orders-1")
			pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
			w.put(podsResource(), pod)
		})
	})
	t.Run("the partition was lowered", func(t *testing.T) {
		stale(t, func(w *world) {
			set := w.set()
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(0))
			w.put(setsResource(), set)
		})
	})
	t.Run("the StatefulSet was made anew", func(t *testing.T) {
		stale(t, func(w *world) {
			set := w.set()
			set.UID = "another"
			w.put(setsResource(), set)
		})
	})
	t.Run("the StatefulSet is gone", func(t *testing.T) {
		stale(t, func(w *world) {
			if err := w.api.Tracker().Delete(setsResource(), "shop", "orders"); err != nil {
				w.Fatal(err)
			}
		})
	})
	t.Run("the record is gone", func(t *testing.T) {
		stale(t, func(w *world) {
			if err := w.api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), "shop", "orders-record"); err != nil {
				w.Fatal(err)
			}
		})
	})
	t.Run("the record is damaged", func(t *testing.T) { stale(t, damage) })
}

// I4: a record that the caches do not show yet is no reason to make another.
func TestRecordThatTheCachesMissIsNotMadeAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		v, p, err := w.r.Decide(w.Context(), w.wish)
		if err != nil {
			t.Fatal(err)
		}
		w.mustDo(action.CreateRecord{})
		before := w.record()
		w.api.ClearActions()
		if err := w.r.CarryOut(w.Context(), v, p.Steps[0]); !errors.Is(err, state.ErrChanged) {
			t.Errorf("error %v", err)
		}
		if writes := w.api.writes(); len(writes) > 0 || w.record().Token != before.Token {
			t.Errorf("writes %q", writes)
		}
	})
}

// An API server that cannot be asked again is a reason not to act.
func TestNoActionWithoutFreshData(t *testing.T) {
	for _, resource := range []string{"configmaps", "statefulsets", "pods"} {
		formed(t, func(w *world) {
			w.commit(clustertest.SetVersion("3.6.16"))
			v, p, err := w.r.Decide(w.Context(), w.wish)
			if err != nil || len(p.Steps) == 0 {
				t.Fatalf("plan %s, %v", p.Text(), err)
			}
			w.api.PrependReactor("*", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.GetVerb() == "get" || a.GetVerb() == "list", nil, errors.New("the API server is away")
			})
			if err := w.r.CarryOut(w.Context(), v, p.Steps[0]); err == nil || !strings.Contains(err.Error(), "away") {
				t.Errorf("%s: error %v", resource, err)
			}
			if len(w.etcd.calls) > 0 {
				t.Errorf("%s: calls %q", resource, w.etcd.calls)
			}
		}, clustertest.SetVersion("3.6.12"))
	}
}
