package execute_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// Growth is carried to its end, and restarts no member.
func TestVolumesGrowOnline(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Disks(true)
		w.UntilIdle()
		pods, set := w.PodUIDs(), w.Set().UID
		w.Commit(execute.SetSize("16Gi"))
		w.Until(func(p decision.Plan) bool {
			return p.Hold != nil && strings.Contains(p.Hold.Message, "grows from 8Gi to 16Gi")
		})
		if got := w.Sizes(); got != "16Gi 16Gi 16Gi" || w.Set().UID != set {
			t.Errorf("claims %s, StatefulSet %s", got, w.Set().UID)
		}
		w.API.ClearActions()
		w.Provision()
		w.UntilIdle()
		if w.PodUIDs() != pods {
			t.Error("a pod was restarted")
		}
		claims := observe.ClaimTemplateOf(w.Set())
		if w.Set().UID == set || claims.Size.String() != "16Gi" || *w.Set().Spec.Replicas != 3 || observe.Partition(w.Set()) != 3 {
			t.Errorf("StatefulSet %+v", w.Set().Spec)
		}
		orphaned := slices.ContainsFunc(w.API.Actions(), func(a clienttesting.Action) bool {
			d, ok := a.(clienttesting.DeleteAction)
			if !ok || a.GetResource().Resource != "statefulsets" {
				return false
			}
			o := d.GetDeleteOptions()
			return *o.PropagationPolicy == metav1.DeletePropagationOrphan && *o.Preconditions.UID == set && o.Preconditions.ResourceVersion != nil
		})
		if !orphaned {
			t.Errorf("the StatefulSet was not deleted with its pods orphaned: %v", w.API.Actions())
		}
	})
}

func TestVolumesThatCannotGrowAreSaid(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *reconcilertest.World)
		want    string
	}{
		"the class forbids it": {func(w *reconcilertest.World) { w.Disks(false) }, "cannot grow to 16Gi: its StorageClass standard does not allow it (allowVolumeExpansion)"},
		"the class is gone": {func(w *reconcilertest.World) {
			w.Disks(true)
			if err := w.API.StorageV1().StorageClasses().Delete(w.Context(), "standard", metav1.DeleteOptions{}); err != nil {
				w.Fatal(err)
			}
		}, "its StorageClass standard no longer exists"},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				test.prepare(w)
				w.Commit(execute.SetSize("16Gi"))
				p := w.Until(func(p decision.Plan) bool { return p.Hold != nil })
				if !strings.Contains(p.Hold.Message, test.want) || w.Sizes() != "8Gi 8Gi 8Gi" {
					t.Errorf("hold %s, sizes %s", p.Hold, w.Sizes())
				}
			})
		})
	}
}

func TestGrowVolumeAsksOnce(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Disks(true)
		claim := w.Claims()[0]
		grow := action.GrowVolume{Claim: claim.Name, UID: string(claim.UID), Member: "orders-0", From: 8 << 30, To: 16 << 30}
		w.API.ClearActions()
		for range 2 {
			w.MustDo(grow)
		}
		if writes := w.API.Writes(); len(writes) != 1 || w.Sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("writes %q, sizes %s", writes, w.Sizes())
		}
		grow.To = 12 << 30
		w.MustDo(grow)
		if w.Sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("a claim was made smaller: %s", w.Sizes())
		}
		grow.To, grow.UID = 32<<30, "another"
		if err := w.Do(grow); !errors.Is(err, state.ErrChanged) || w.Sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("another claim of that name: %v, sizes %s", err, w.Sizes())
		}
		grow.UID = string(claim.UID)
		overtaken(w, "patch", "persistentvolumeclaims")
		if err := w.Do(grow); !errors.Is(err, state.ErrChanged) {
			t.Errorf("somebody else was faster: %v", err)
		}
		w.API.ReactionChain = w.API.ReactionChain[1:]
		claim = w.Claims()[0]
		claim.DeletionTimestamp, claim.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
		w.Put(reconcilertest.ClaimsResource(), claim)
		if err := w.Do(grow); !errors.Is(err, state.ErrChanged) || w.Sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("one that is about to go: %v, sizes %s", err, w.Sizes())
		}
	})
}

// 354: where no cluster has formed, a claim goes as long as there is no volume behind it, and
// is kept once there is one.
func TestOnlyAClaimWithoutAVolumeGoesBeforeAClusterHasFormed(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.MustDo(action.CreateRecord{Founders: 3})
		for phase, left := range map[corev1.PersistentVolumeClaimPhase]int{corev1.ClaimBound: 1, corev1.ClaimPending: 0} {
			claim := clustertest.Claim("data-orders-0", func(c *corev1.PersistentVolumeClaim) {
				c.Namespace, c.Labels, c.Status.Phase = "shop", naming.OwnLabels(w.Wish.EtcdCluster), phase
			})
			w.Put(reconcilertest.ClaimsResource(), claim)
			w.Settle()
			err := w.Do(action.DeleteVolume{Claim: claim.Name, UID: string(claim.UID), Member: "orders-0"})
			if len(w.Claims()) != left || errors.Is(err, state.ErrChanged) != (left == 1) {
				t.Errorf("%s: %v, %d claims are left", phase, err, len(w.Claims()))
			}
		}
	})
}

// overtaken lets a request fail as it does when somebody else has changed the object
// in between.
func overtaken(w *reconcilertest.World, verb, resource string) {
	w.API.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), "it", errors.New("the object has been modified"))
	})
}

func TestReleaseSetDeletesTheOneThatWasSeen(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if err := w.Do(action.ReleaseSet{SetUID: "another"}); !errors.Is(err, state.ErrChanged) || w.Set() == nil {
			t.Errorf("another StatefulSet: %v", err)
		}
		uid := string(w.Set().UID)
		overtaken(w, "delete", "statefulsets")
		if err := w.Do(action.ReleaseSet{SetUID: uid}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("somebody else was faster: %v", err)
		}
		w.API.ReactionChain = w.API.ReactionChain[1:]
		v := w.Look()
		v.Set = v.Set.DeepCopy()
		v.Set.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		w.API.ClearActions()
		if err := w.R.Executor.Execute(w.Context(), v, action.ReleaseSet{SetUID: uid}); err != nil || len(w.API.Writes()) > 0 {
			t.Errorf("one that is about to go is deleted in another way: %v", err)
		}
		for range 2 {
			w.MustDo(action.ReleaseSet{SetUID: uid})
		}
		if w.Set() != nil || w.Pod("orders-0") == nil {
			t.Error("the StatefulSet is still there, or a pod is not")
		}
	})
}
