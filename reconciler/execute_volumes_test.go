package reconciler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// setSize asks for a size.
func setSize(size string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse(size) }
}

// disks gives every claim a volume of 8Gi, of a class that lets it grow or not.
func (w *world) disks(grow bool) {
	w.Helper()
	w.put(storagev1.SchemeGroupVersion.WithResource("storageclasses"), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "standard"}, AllowVolumeExpansion: &grow,
	})
	for _, claim := range w.claims() {
		full := testClaim(claim.Name, nil)
		claim.Spec, claim.Status = full.Spec, full.Status
		w.put(claimsResource(), claim)
	}
	w.settle()
}

// provision gives every claim the size that it asks for.
func (w *world) provision() {
	w.Helper()
	for _, claim := range w.claims() {
		claim.Status.Capacity = claim.Spec.Resources.Requests
		w.put(claimsResource(), claim)
	}
	w.settle()
}

func (w *world) claims() []*corev1.PersistentVolumeClaim {
	w.Helper()
	list, err := w.api.CoreV1().PersistentVolumeClaims("shop").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var claims []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		claims = append(claims, &list.Items[i])
	}
	return claims
}

// sizes are what the claims ask for.
func (w *world) sizes() string {
	w.Helper()
	var sizes []string
	for _, claim := range w.claims() {
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		sizes = append(sizes, size.String())
	}
	return strings.Join(sizes, " ")
}

// podUIDs are the UIDs of the pods.
func (w *world) podUIDs() string {
	w.Helper()
	var uids []string
	for _, name := range []string{"orders-0", "orders-1", "orders-2"} {
		uids = append(uids, string(w.pod(name).UID))
	}
	return strings.Join(uids, " ")
}

// Growth is carried to its end, and restarts nobody.
func TestVolumesGrowOnline(t *testing.T) {
	formed(t, func(w *world) {
		w.disks(true)
		w.untilIdle()
		pods, set := w.podUIDs(), w.set().UID
		w.commit(setSize("16Gi"))
		w.until(func(p plan.Plan) bool {
			return p.Hold != nil && strings.Contains(p.Hold.Message, "grows from 8Gi to 16Gi")
		})
		if got := w.sizes(); got != "16Gi 16Gi 16Gi" || w.set().UID != set {
			t.Errorf("claims %s, StatefulSet %s", got, w.set().UID)
		}
		w.api.ClearActions()
		w.provision()
		w.untilIdle()
		if w.podUIDs() != pods {
			t.Error("a pod was restarted")
		}
		claims := claimTemplateOf(w.set())
		if w.set().UID == set || claims.Size.String() != "16Gi" || *w.set().Spec.Replicas != 3 || partitionOf(w.set()) != 3 {
			t.Errorf("StatefulSet %+v", w.set().Spec)
		}
		orphaned := slices.ContainsFunc(w.api.Actions(), func(a clienttesting.Action) bool {
			d, ok := a.(clienttesting.DeleteAction)
			if !ok || a.GetResource().Resource != "statefulsets" {
				return false
			}
			o := d.GetDeleteOptions()
			return *o.PropagationPolicy == metav1.DeletePropagationOrphan && *o.Preconditions.UID == set && o.Preconditions.ResourceVersion != nil
		})
		if !orphaned {
			t.Errorf("the StatefulSet was not deleted with its pods orphaned: %v", w.api.Actions())
		}
	})
}

func TestVolumesThatCannotGrowAreSaid(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *world)
		want    string
	}{
		"the class forbids it": {func(w *world) { w.disks(false) }, "cannot grow to 16Gi: its StorageClass standard does not allow it (allowVolumeExpansion)"},
		"the class is gone": {func(w *world) {
			w.disks(true)
			if err := w.api.StorageV1().StorageClasses().Delete(w.Context(), "standard", metav1.DeleteOptions{}); err != nil {
				w.Fatal(err)
			}
		}, "its StorageClass standard no longer exists"},
	} {
		t.Run(name, func(t *testing.T) {
			formed(t, func(w *world) {
				test.prepare(w)
				w.commit(setSize("16Gi"))
				p := w.until(func(p plan.Plan) bool { return p.Hold != nil })
				if !strings.Contains(p.Hold.Message, test.want) || w.sizes() != "8Gi 8Gi 8Gi" {
					t.Errorf("hold %s, sizes %s", p.Hold, w.sizes())
				}
			})
		})
	}
}

func TestGrowVolumeAsksOnce(t *testing.T) {
	formed(t, func(w *world) {
		w.disks(true)
		claim := w.claims()[0]
		grow := action.GrowVolume{Claim: claim.Name, UID: string(claim.UID), Member: "orders-0", From: 8 << 30, To: 16 << 30}
		w.api.ClearActions()
		for range 2 {
			w.mustDo(grow)
		}
		if writes := w.api.writes(); len(writes) != 1 || w.sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("writes %q, sizes %s", writes, w.sizes())
		}
		grow.To = 12 << 30
		w.mustDo(grow)
		if w.sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("a claim was made smaller: %s", w.sizes())
		}
		grow.To, grow.UID = 32<<30, "another"
		if err := w.do(grow); !errors.Is(err, state.ErrChanged) || w.sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("another claim of that name: %v, sizes %s", err, w.sizes())
		}
		grow.UID = string(claim.UID)
		overtaken(w, "patch", "persistentvolumeclaims")
		if err := w.do(grow); !errors.Is(err, state.ErrChanged) {
			t.Errorf("somebody else was faster: %v", err)
		}
		w.api.ReactionChain = w.api.ReactionChain[1:]
		claim = w.claims()[0]
		claim.DeletionTimestamp, claim.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
		w.put(claimsResource(), claim)
		if err := w.do(grow); !errors.Is(err, state.ErrChanged) || w.sizes() != "16Gi 8Gi 8Gi" {
			t.Errorf("one that is about to go: %v, sizes %s", err, w.sizes())
		}
	})
}

// overtaken lets a request fail as it does when somebody else has changed the object
// in between.
func overtaken(w *world, verb, resource string) {
	w.api.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), "it", errors.New("the object has been modified"))
	})
}

func TestReleaseSetDeletesTheOneThatWasSeen(t *testing.T) {
	formed(t, func(w *world) {
		if err := w.do(action.ReleaseSet{SetUID: "another"}); !errors.Is(err, state.ErrChanged) || w.set() == nil {
			t.Errorf("another StatefulSet: %v", err)
		}
		uid := string(w.set().UID)
		overtaken(w, "delete", "statefulsets")
		if err := w.do(action.ReleaseSet{SetUID: uid}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("somebody else was faster: %v", err)
		}
		w.api.ReactionChain = w.api.ReactionChain[1:]
		v := w.look()
		v.set = v.set.DeepCopy()
		v.set.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		w.api.ClearActions()
		if err := w.r.executor.execute(w.Context(), v, action.ReleaseSet{SetUID: uid}); err != nil || len(w.api.writes()) > 0 {
			t.Errorf("one that is about to go is deleted in another way: %v", err)
		}
		for range 2 {
			w.mustDo(action.ReleaseSet{SetUID: uid})
		}
		if w.set() != nil || w.pod("orders-0") == nil {
			t.Error("the StatefulSet is still there, or a pod is not")
		}
	})
}

func claimsResource() apischema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
}
