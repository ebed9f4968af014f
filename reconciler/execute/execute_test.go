package execute_test

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// Each action, applied twice, does the second time what the first time
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
			reconcilertest.Run(t, func(w *reconcilertest.World) {
				if name != "create the record" {
					w.MustDo(action.CreateRecord{})
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
			reconcilertest.Formed(t, func(w *reconcilertest.World) { twice(w, action) })
		})
	}
}

func twice(w *reconcilertest.World, action action.Action) {
	w.Helper()
	w.MustDo(action)
	once := w.Contents()
	w.MustDo(action)
	if again := w.Contents(); !reflect.DeepEqual(once, again) {
		w.Errorf("%s changed something the second time", action)
	}
}

func TestCreateRecordKeepsWhatExists(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Record()
		w.MustDo(action.CreateRecord{})
		if after := w.Record(); !reflect.DeepEqual(before, after) {
			t.Errorf("the record was %+v and is %+v", before, after)
		}
	})
}

func TestEveryRecordHasItsOwnToken(t *testing.T) {
	tokens := map[string]bool{}
	for range 3 {
		reconcilertest.Run(t, func(w *reconcilertest.World) {
			w.MustDo(action.CreateRecord{})
			token := w.Record().Token
			if !strings.HasPrefix(token, "orders-") || tokens[token] {
				t.Errorf("token %q", token)
			}
			tokens[token] = true
		})
	}
}

func TestRecordFormedWritesTheIDs(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.MustDo(action.CreateRecord{})
		members := map[string]string{"orders-0": "a0", "orders-1": "a1", "orders-2": "a2"}
		w.MustDo(action.RecordFormed{ClusterID: "c1", Members: members})
		r := w.Record()
		if r.ClusterID != "c1" || !reflect.DeepEqual(r.Members, members) {
			t.Errorf("the record is %+v", r)
		}
	})
}

// A writer that writes the record between the read and the write wins.
func TestRecordChangedInBetweenIsNotOverwritten(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
		w.API.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			object, err := w.API.Tracker().Get(configMaps, "shop", "orders-record")
			if err != nil {
				return true, nil, err
			}
			if cm, _ := object.(*corev1.ConfigMap); cm.Labels["by"] == "" {
				cm.Labels["by"] = "somebody"
				w.Put(configMaps, cm)
			}
			return false, nil, nil
		})
		err := w.Do(action.RecordApplied{SpecHash: "h", Version: "9.9.9", Commit: "f00"})
		if !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict", err)
		}
		if v := w.Record().Applied.Version; v == "9.9.9" {
			t.Error("the record was overwritten")
		}
		w.MustDo(action.RecordApplied{SpecHash: "h", Version: "9.9.9", Commit: "f00"})
	})
}

// What is made from the record follows it again, although the record itself has not
// changed: a pod that starts reads that.
func TestWhatIsMadeFromTheRecordIsMended(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Contents()["ConfigMap orders-record"]
		edited, _ := before.DeepCopyObject().(*corev1.ConfigMap)
		edited.Data[naming.KeyInitialState] = record.StateNew
		w.Put(corev1.SchemeGroupVersion.WithResource("configmaps"), edited)
		w.Settle()
		v := w.Look()
		if err := w.R.Executor.Execute(w.Context(), v, action.Revive{}); err != nil {
			t.Fatal(err)
		}
		after, _ := w.Contents()["ConfigMap orders-record"].(*corev1.ConfigMap)
		if got := after.Data[naming.KeyInitialState]; got != record.StateExisting {
			t.Errorf("the initial state is %q", got)
		}
	})
}

func TestDamagedRecordIsNotOverwritten(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v := w.Look()
		reconcilertest.Damage(w)
		if err := w.R.Executor.Execute(w.Context(), v, action.RecordApplied{Version: "3.6.16"}); err == nil || !strings.Contains(err.Error(), "restore this ConfigMap") {
			t.Errorf("error %v", err)
		}
		if writes := w.API.Writes(); len(writes) > 0 {
			t.Errorf("writes %q", writes)
		}
	})
}

func TestSecretOfAnotherOwnerIsNotTaken(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.MustDo(action.CreateRecord{})
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "orders-server", Namespace: "shop"},
			Data:       map[string][]byte{"precious": []byte("key")},
		})
		err := w.Do(action.IssueCertificates{})
		backuptest.WantError(t, err, "create Secret orders-server", "not labelled")
		secret, _ := w.Contents()["Secret orders-server"].(*corev1.Secret)
		if string(secret.Data["precious"]) != "key" || len(secret.Data) != 1 {
			t.Error("the Secret was changed")
		}
	})
}

func TestApplyRefusesWhatItDoesNotKnow(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		for _, a := range []action.ApplyObject{
			{ObjectKind: "Ingress", Name: "orders"}, {ObjectKind: "Ingress", Name: "orders-peers"}, {ObjectKind: "Ingress", Name: "orders-client"}, {ObjectKind: "Service", Name: "orders"},
		} {
			backuptest.WantError(t, w.Do(a), "apply "+a.ObjectKind+" "+a.Name, "keeps no such object")
		}
	})
}

// I3: a StatefulSet that has changed since the decision is not overwritten.
func TestApplySetNeedsTheVersionThatWasSeen(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v := w.Look()
		set := w.Set()
		set.Annotations = map[string]string{"by": "somebody"}
		w.Put(reconcilertest.SetsResource(), set)
		for _, action := range []action.Action{
			action.StartRoll{Partition: 3},
			action.RestartMember{Member: "orders-2", Partition: 2},
			action.EndRoll{Replicas: 3},
			action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"},
		} {
			if err := w.R.Executor.Execute(w.Context(), v, action); !apierrors.IsConflict(err) || !errors.Is(err, state.ErrChanged) {
				t.Errorf("%s: error %v, want a conflict", action, err)
			}
		}
		if p := observe.Partition(w.Set()); p != 3 {
			t.Errorf("the partition became %d", p)
		}
	})
}

// 413: a restart that was given up finds another StatefulSet once the partition is where no roll
// has it, though its template is the same.
func TestALateRestartFindsAnotherPartition(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v := w.Look()
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 3, Partition: 4})
		if p := observe.Partition(w.Set()); p != 4 {
			t.Errorf("the partition became %d", p)
		}
		if err := w.R.Executor.Execute(w.Context(), v, action.RestartMember{Member: "orders-2", Partition: 2}); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict", err)
		}
		if p := observe.Partition(w.Set()); p != 4 {
			t.Errorf("the partition became %d by what is late", p)
		}
	})
}

// 360: where the template would not be stored as it was, no write lets a member go: those that the
// roll has finished would go, too.
func TestNoWriteLetsMembersGoWithAnotherRevision(t *testing.T) {
	for _, act := range []action.Action{
		action.RestartMember{Member: "orders-0", Partition: 0},
		action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"},
	} {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			set := w.Set()
			set.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways // as a policy made it that has gone
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(1))
			w.Put(reconcilertest.SetsResource(), set)
			synctest.Wait()
			w.API.Requests()
			if err := w.R.Executor.Execute(w.Context(), w.Look(), act); !errors.Is(err, state.ErrChanged) || !strings.Contains(err.Error(), "the partition is back above all of them") {
				t.Errorf("%s: %v", act, err)
			}
			if wrote := w.API.Writes(); len(wrote) != 1 {
				t.Errorf("%s: wrote %v", act, wrote)
			}
			if set := w.Set(); observe.Partition(set) != 3 || set.Spec.Template.Spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent {
				t.Errorf("%s: partition %d, %s", act, observe.Partition(set), set.Spec.Template.Spec.Containers[0].ImagePullPolicy)
			}
		})
	}
}

func TestStartRollTouchesNoPod(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		before := w.Pod("orders-2").UID
		w.MustDo(action.StartRoll{Partition: 3, From: "3.6.12", To: "3.6.16"})
		w.Settle()
		if w.Pod("orders-2").UID != before {
			t.Error("orders-2 was restarted")
		}
		if got := w.Set().Spec.Template.Annotations[naming.AnnotationVersion]; got != "3.6.16" {
			t.Errorf("the template is for %s", got)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I11: a backup that has gone from its store, or is another one by now, starts
// no roll.
func TestStartRollAsksForTheBackupAgain(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.MustDo(action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "3.6.16", Why: "upgrade 3.6.12 → 3.6.16"})
		url := w.Record().Backup.URL
		path := strings.TrimPrefix(url[:strings.Index(url, "?")], "file://")
		roll := action.StartRoll{Partition: 3, From: "3.6.12", To: "3.6.16"}
		manifest, err := os.ReadFile(path + backup.ManifestSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path + backup.ManifestSuffix); err != nil {
			t.Fatal(err)
		}
		w.API.ClearActions()
		if err := w.Do(roll); !errors.Is(err, backup.ErrNotFound) {
			t.Errorf("without a manifest: %v", err)
		}
		for old, another := range map[string]string{`"clusterID": "c1"`: `"clusterID": "c2"`, w.Record().Backup.SHA256: strings.Repeat("0", 64)} {
			if err := os.WriteFile(path+backup.ManifestSuffix, bytes.Replace(manifest, []byte(old), []byte(another), 1), 0o600); err != nil {
				t.Fatal(err)
			}
			backuptest.WantError(t, w.Do(roll), "start the roll", "is not the one that was verified")
		}
		if writes := w.API.Writes(); len(writes) > 0 {
			t.Errorf("writes %q", writes)
		}
		if err := w.Do(action.StartRoll{Partition: 3}); err != nil {
			t.Errorf("a roll that rests on no backup: %v", err)
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestTakeBackupRecordsWhatTheStoreHolds(t *testing.T) {
	data := execute.BoltSnapshot(t)
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Database = data
		w.Commit(clustertest.SetVersion("3.6.16"))
		take := action.TakeBackup{Member: "orders-1", MemberID: "a1", ClusterID: "c1", For: "3.6.16", Why: "upgrade 3.6.12 → 3.6.16"}
		w.MustDo(take)
		first := w.Record().Backup
		w.MustDo(take)
		second := w.Record().Backup
		if first.URL == second.URL {
			t.Error("the second backup has the name of the first")
		}
		for _, b := range []*record.Backup{first, second} {
			m, err := backup.Store{}.Verify(w.Context(), b.URL)
			if err != nil {
				t.Fatal(err)
			}
			if m.SHA256 != b.SHA256 || m.Size != b.Size || m.SnapshotSize != int64(len(data)) || m.ClusterID != "c1" || m.Member != "orders-1" ||
				m.EtcdVersion != "3.6.12" || m.Revision != 7 || m.TargetVersion != "3.6.16" || m.Commit != w.Wish.Commit || m.Reason != "upgrade 3.6.12 → 3.6.16" {
				t.Errorf("manifest %+v of %+v", m, b)
			}
		}
		if want := []string{"snapshot of orders-1", "snapshot of orders-1"}; !slices.Equal(w.Etcd.Calls, want) {
			t.Errorf("calls %q", w.Etcd.Calls)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// A manifest tells of the member that the bytes come from, and names a release only
// where the backup is for one.
func TestManifestIsOfTheVeryMember(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v := w.Look()
		v.Observed.Rounds = []state.Round{{Members: []state.Member{{ID: "a0", Version: "3.6.12", Revision: 9}, {ID: "a1", Version: "3.6.11", Revision: 7}}}}
		for what, target := range map[state.Purpose]string{"3.6.16": "3.6.16", state.ForDowngrade("3.5.35"): "3.5.35", "repair orders-0": "", "deletion": ""} {
			m := w.R.Executor.ManifestOf(v, action.TakeBackup{Member: "orders-1", MemberID: "a1", ClusterID: "c1", For: what})
			if m.TargetVersion != target || m.EtcdVersion != "3.6.11" || m.Revision != 7 {
				t.Errorf("for %q: %+v", what, m)
			}
		}
	})
}

func TestDamagedSnapshotIsNotRecorded(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Database[100] ^= 1
		err := w.Do(action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "3.6.16", Why: "upgrade 3.6.12 → 3.6.16"})
		backuptest.WantError(t, err, "damaged")
		if b := w.Record().Backup; b != nil {
			t.Errorf("recorded %+v", b)
		}
		backuptest.WantError(t, w.Do(action.TakeBackup{Member: "orders-7"}), "back up", "orders-7 has no address")
	})
}

// A bucket that refuses holds the upgrade for ever.
func TestFailingBucketStartsNoRoll(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.BackupURL = "file:///nowhere-at-all/{{ .UID }}.db" })
		w.Commit(clustertest.SetVersion("3.6.16"))
		for range 5 {
			if _, err := w.Pass(); err == nil || !strings.Contains(err.Error(), "file:///nowhere-at-all/") {
				t.Errorf("error %v", err)
			}
			time.Sleep(time.Minute)
		}
		// That it was begun is noted each time, for who tidies up after it.
		for _, write := range w.API.Writes() {
			if write != "update configmaps orders-record" {
				t.Errorf("writes %q", write)
			}
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestMoveLeaderAsksTheLeader(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.MoveLeader{From: "orders-0", FromID: "a0", To: "orders-1", ToID: "a1"})
		if want := []string{"move leader from orders-0 to a1"}; !slices.Equal(w.Etcd.Calls, want) {
			t.Errorf("calls %q", w.Etcd.Calls)
		}
		backuptest.WantError(t, w.Do(action.MoveLeader{From: "orders-7"}), "move the leader", "orders-7 has no address")
	})
}

// I3, I20: only the pod that the decision was made on is deleted.
func TestRestartByDeletion(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		uid := string(w.Pod("orders-2").UID)
		gone := action.RestartMember{Member: "orders-2", PodUID: "another", ByDeletion: true}
		if err := w.Do(gone); !apierrors.IsConflict(err) {
			t.Errorf("with another UID: %v", err)
		}
		if w.Pod("orders-2") == nil {
			t.Fatal("the pod was deleted all the same")
		}
		gone.PodUID = uid
		w.MustDo(gone)
		if w.Pod("orders-2") != nil {
			t.Error("the pod is still there")
		}
		w.MustDo(gone)
		w.Settle()
		if err := w.Do(gone); !apierrors.IsConflict(err) || w.Pod("orders-2") == nil {
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
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			w.Reconfigure(func(o *reconciler.Options) { o.Lease = func() error { return lost } })
			if err := w.Do(action); !errors.Is(err, lost) {
				t.Errorf("%s: error %v", action, err)
			}
			if writes := w.API.Writes(); len(writes) > 0 || len(w.Etcd.Calls) > 0 {
				t.Errorf("%s: writes %q, calls %q", action, writes, w.Etcd.Calls)
			}
		})
	}
}
