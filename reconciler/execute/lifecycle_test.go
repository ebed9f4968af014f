package execute_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// I7: what does not carry quorate's labels is somebody else's, whatever its name.
func TestDeletionTouchesNoForeignObject(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		set := w.Set()
		set.Labels = map[string]string{"app": "theirs"}
		w.Put(reconcilertest.SetsResource(), set)
		err := w.R.Executor.DeleteObject(w.Context(), w.Look(), action.DeleteObject{ObjectKind: "StatefulSet", Name: "orders"})
		if err == nil || !strings.Contains(err.Error(), "so it is foreign") {
			t.Errorf("a foreign StatefulSet: error %v", err)
		}
		if w.Set() == nil {
			t.Error("it is gone")
		}
		if err := w.Do(action.DeleteObject{ObjectKind: "Node", Name: "n1"}); err == nil {
			t.Error("it deletes what it never made")
		}
	})
}

// I3: what is deleted is the object that was read: one that has taken its name in
// between has another UID, and stays.
func TestDeletionNamesTheObjectThatWasRead(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		uid, asked := w.Set().UID, false
		w.API.PrependReactor("delete", "statefulsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			p := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
			asked = p != nil && p.UID != nil && *p.UID == uid
			return false, nil, nil
		})
		if err := w.R.Executor.DeleteObject(w.Context(), w.Look(), action.DeleteObject{ObjectKind: "StatefulSet", Name: "orders"}); err != nil || !asked {
			t.Errorf("error %v, with the UID that was read: %t", err, asked)
		}
	})
}

// 608, I6: a StatefulSet that owns the claims of its pods, by an earlier retention policy, is
// deleted so that they stay; another's claims are no concern of it.
func TestADeletedStatefulSetTakesNoClaim(t *testing.T) {
	for name, c := range map[string]struct {
		owner metav1.OwnerReference
		want  metav1.DeletionPropagation
	}{
		"it owns none":     {metav1.OwnerReference{Kind: "Application", Name: "orders"}, metav1.DeletePropagationForeground},
		"another owns one": {metav1.OwnerReference{Kind: "StatefulSet", Name: "orders-2"}, metav1.DeletePropagationForeground},
		"it owns one":      {metav1.OwnerReference{Kind: "StatefulSet", Name: "orders"}, metav1.DeletePropagationOrphan},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				claims := w.API.CoreV1().PersistentVolumeClaims("shop")
				claim, err := claims.Get(w.Context(), "data-orders-2", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				claim.OwnerReferences = []metav1.OwnerReference{c.owner}
				if _, err := claims.Update(w.Context(), claim, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				var got metav1.DeletionPropagation
				w.API.PrependReactor("delete", "statefulsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
					got = *action.(clienttesting.DeleteActionImpl).DeleteOptions.PropagationPolicy
					return false, nil, nil
				})
				if err := w.R.Executor.DeleteObject(w.Context(), w.Look(), action.DeleteObject{ObjectKind: "StatefulSet", Name: "orders"}); err != nil || got != c.want {
					t.Errorf("deleted by %s, %v, want %s", got, err, c.want)
				}
			})
		})
	}
}

// 608, I6: no pod goes where admission would have Kubernetes delete its claim with it.
func TestNoPodGoesWithItsClaim(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		resize := action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0}
		w.API.PrependReactor("patch", "statefulsets", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if patch := a.(clienttesting.PatchActionImpl); len(patch.PatchOptions.DryRun) == 0 {
				return false, nil, nil
			}
			would := w.Set().DeepCopy()
			would.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
			return true, would, nil
		})
		if err := w.Do(resize); err == nil || !strings.Contains(err.Error(), "whenScaled as Delete") || *w.Set().Spec.Replicas != 3 {
			t.Errorf("error %v, and %d pods", err, *w.Set().Spec.Replicas)
		}
	})
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0})
		if n := *w.Set().Spec.Replicas; n != 0 {
			t.Errorf("%d pods", n)
		}
	})
}

// A deletion that forgets what was applied would let a cluster that comes back roll
// on its own; only one that names it writes it down.
func TestADeletionKeepsWhatWasApplied(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		was := w.Record().Applied
		w.MustDo(action.BeginDeletion{})
		if r := w.Record(); !r.Deleted || !reflect.DeepEqual(r.Applied, was) {
			t.Errorf("applied was %+v and is %+v", was, r.Applied)
		}
		w.MustDo(action.BeginDeletion{Version: "3.6.17", Settings: "s"})
		if a := w.Record().Applied; a.Version != "3.6.17" || a.Settings != "s" || a.SpecHash != "" {
			t.Errorf("applied %+v", a)
		}
	})
}

// 50: who else has set the number of replicas is named.
func TestWhoScaledIsNamed(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if by, _ := drift.ScaledBy(w.Set()); by != "" {
			t.Errorf("nobody has scaled, and it says %s", by)
		}
	})
	held := func(manager string, how metav1.ManagedFieldsOperationType, at *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: how, Time: at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}
	}
	noon := metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	hand := held("kubectl", metav1.ManagedFieldsOperationUpdate, &noon)
	for want, fields := range map[string][]metav1.ManagedFieldsEntry{
		"kubectl":    {hand},
		"autoscaler": {held("autoscaler", metav1.ManagedFieldsOperationUpdate, nil)},
		"":           {hand, held(naming.FieldManager, metav1.ManagedFieldsOperationApply, &noon)},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: fields}}
		if by, at := drift.ScaledBy(set); by != want || at.Equal(noon.Time) != (want == "kubectl") {
			t.Errorf("%q has scaled, and it says %q at %s", want, by, at)
		}
	}
	broken := held(naming.FieldManager, metav1.ManagedFieldsOperationApply, &noon)
	broken.FieldsV1 = metav1.NewFieldsV1("{")
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{hand, broken}}}
	if by, _ := drift.ScaledBy(set); by != "" {
		t.Errorf("what cannot be read may be quorate's own, and it says %q", by)
	}
	if by, _ := drift.ScaledBy(&appsv1.StatefulSet{}); by != "" {
		t.Errorf("nobody is known, and it says %q", by)
	}
}

// 130: the pods of a deleted cluster that no StatefulSet stops are deleted, each
// twice and only as the pod that was seen; those of one that runs are not.
func TestDeletedPodsThatNothingStops(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted })
		seen := action.DeletePod{Member: "orders-2", PodUID: string(w.Pod("orders-2").UID)}
		if err := w.Do(seen); !errors.Is(err, state.ErrChanged) || w.Pod("orders-2") == nil {
			t.Errorf("a member's pod, before its deletion was written down: %v", err)
		}
		w.MustDo(action.BeginDeletion{})
		if err := w.API.Tracker().Delete(reconcilertest.SetsResource(), "shop", "orders"); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if err := w.Do(action.DeletePod{Member: "orders-2", PodUID: "another"}); !apierrors.IsConflict(err) || w.Pod("orders-2") == nil {
			t.Errorf("with another UID: %v", err)
		}
		if twice(w, seen); w.Pod("orders-2") != nil {
			t.Error("the pod is still there")
		}
	})
}

// 135: whoever copies an object copies its labels and annotations, too. What has them
// and no member's name is neither looked at nor deleted with the cluster.
func TestDeletionLeavesCopies(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		copied := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: naming.OwnLabels(w.Wish.EtcdCluster), Annotations: map[string]string{naming.AnnotationHolds: "1"}}
		}
		core := corev1.SchemeGroupVersion
		w.Put(core.WithResource("pods"), &corev1.Pod{ObjectMeta: copied("orders-0-debug")})
		w.Put(core.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{
			ObjectMeta: copied("copy-of-orders-0"), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		})
		w.Settle()
		if seen := w.Look().Observed.Pods; len(seen) != 3 {
			t.Errorf("%d pods are seen", len(seen))
		}
		w.Commit(func(c *schema.EtcdCluster) {
			c.Spec.State, c.Spec.Deletion = schema.StateDeleted, schema.DeletionSpec{Volumes: schema.VolumesDelete, Backup: schema.BackupSkip}
		})
		w.UntilIdle()
		if left := slices.Sorted(maps.Keys(w.Contents())); !slices.Equal(left, []string{"Pod orders-0-debug"}) {
			t.Errorf("left are %q", left)
		}
		if claims := w.Claims(); len(claims) != 1 || claims[0].Name != "copy-of-orders-0" {
			t.Errorf("the claims that are left are %v", claims)
		}
	})
}

// Only a cluster that Git wants deleted is asked for its Secrets, and only
// quorate's own count.
func TestLeftoversAreQuoratesOwnSecrets(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if n := len(w.Look().Observed.Leftovers); n != 0 {
			t.Errorf("%d leftovers of a cluster that is to run", n)
		}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted })
		if n := len(w.Look().Observed.Leftovers); n != 5 {
			t.Errorf("%d leftovers, want the two authorities and three certificates", n)
		}
	})
}
