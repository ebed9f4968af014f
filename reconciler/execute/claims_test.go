package execute_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// changeClaim changes the claim of a member as somebody else would.
func changeClaim(w *reconcilertest.World, member string, change func(*corev1.PersistentVolumeClaim)) {
	w.Helper()
	for _, c := range w.Claims() {
		if c.Name == naming.ClaimPrefix+"-"+member {
			change(c)
			w.Put(reconcilertest.ClaimsResource(), c)
		}
	}
	w.Settle()
}

// holds is what stands on the claim of a member.
func holds(w *reconcilertest.World, member string) string {
	for _, c := range w.Claims() {
		if c.Name == naming.ClaimPrefix+"-"+member {
			return c.Annotations[naming.AnnotationHolds]
		}
	}
	return ""
}

// I6, I7: what a volume holds is written on the very claim that was seen, by the word
// of the very pod that has it.
func TestHoldingsAreWrittenOnTheClaimsSeen(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		seen := action.Holding{
			Claim: "data-orders-1", UID: claimUID(w, "orders-1"),
			Member: "orders-1", PodUID: string(w.Pod("orders-1").UID), Holds: "a1",
		}
		refused := func(when string, change func(*action.Holding)) {
			t.Helper()
			h := seen
			change(&h)
			if err := w.Do(action.RecordHoldings{Volumes: []action.Holding{h}}); !errors.Is(err, state.ErrChanged) || holds(w, "orders-1") != "" {
				t.Errorf("%s: %v, it says %q", when, err, holds(w, "orders-1"))
			}
		}
		refused("another claim", func(h *action.Holding) { h.UID = "another" })
		refused("another pod", func(h *action.Holding) { h.PodUID = "another" })
		refused("somebody else's, by nobody's word", func(h *action.Holding) { h.Holds = state.HoldsForeign })
		guardSays(w, "orders-1", guard.ExitForeign)
		refused("a member's, against the guard's word", func(*action.Holding) {})
		foreign := seen
		foreign.Holds = state.HoldsForeign
		if twice(w, action.RecordHoldings{Volumes: []action.Holding{foreign}}); holds(w, "orders-1") != state.HoldsForeign {
			t.Errorf("it says %q", holds(w, "orders-1"))
		}
	})
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		var both action.RecordHoldings
		for member, id := range map[string]string{"orders-1": "a1", "orders-2": "a2"} {
			both.Volumes = append(both.Volumes, action.Holding{
				Claim: "data-" + member, UID: claimUID(w, member), Member: member, PodUID: string(w.Pod(member).UID), Holds: id,
			})
		}
		changeClaim(w, "orders-1", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{"team": "shop"} })
		twice(w, both)
		if holds(w, "orders-0") != "" || holds(w, "orders-1") != "a1" || holds(w, "orders-2") != "a2" {
			t.Errorf("%q %q %q", holds(w, "orders-0"), holds(w, "orders-1"), holds(w, "orders-2"))
		}
		for _, c := range w.Claims() {
			if c.Name == "data-orders-1" && c.Annotations["team"] != "shop" {
				t.Errorf("somebody's annotation is gone: %v", c.Annotations)
			}
		}
		for _, v := range w.Look().Observed.Volumes {
			if v.Holds != map[string]string{"orders-0": "", "orders-1": "a1", "orders-2": "a2"}[v.Member] {
				t.Errorf("%s is seen to hold %q", v.Claim, v.Holds)
			}
		}
	})
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		now := metav1.Now()
		seen := action.RecordHoldings{Volumes: []action.Holding{{
			Claim: "data-orders-1", UID: claimUID(w, "orders-1"), Member: "orders-1", PodUID: string(w.Pod("orders-1").UID), Holds: "a1",
		}}}
		pod := w.Pod("orders-1")
		pod.DeletionTimestamp, pod.Finalizers = &now, []string{"test/stays"}
		w.Put(reconcilertest.PodsResource(), pod)
		if err := w.Do(seen); !errors.Is(err, state.ErrChanged) {
			t.Errorf("by the word of a pod that goes: %v", err)
		}
		pod.DeletionTimestamp = nil
		w.Put(reconcilertest.PodsResource(), pod)
		changeClaim(w, "orders-1", func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp, c.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
		})
		if err := w.Do(seen); !errors.Is(err, state.ErrChanged) {
			t.Errorf("on a claim that goes: %v", err)
		}
	})
}

// I6, I7: a volume on which no member was seen is not deleted, whatever was planned.
func TestAnUnknownVolumeStays(t *testing.T) {
	for what, found := range map[string]string{"no member's": "", "a foreign one's": state.HoldsForeign} {
		t.Run(what, func(t *testing.T) {
			leaving(t, func(w *reconcilertest.World) {
				w.MustDo(action.RemoveMember{Member: "orders-4", ID: "a4"})
				w.MustDo(action.EndLeave{Member: "orders-4", ID: "a4"})
				marked := func(holds string) {
					changeClaim(w, "orders-4", func(c *corev1.PersistentVolumeClaim) {
						c.Status.Phase, c.Annotations = corev1.ClaimBound, map[string]string{naming.AnnotationHolds: holds}
					})
				}
				marked(found)
				volume := action.DeleteVolume{Claim: "data-orders-4", UID: claimUID(w, "orders-4"), Member: "orders-4"}
				backuptest.WantError(t, w.Do(volume), "delete the volume claim data-orders-4", "no member of this cluster was seen on it")
				if len(claimsOf(w)) != 5 {
					t.Errorf("the claims are %q", claimsOf(w))
				}
				marked("a4")
				if stepsOf(w, volume); len(claimsOf(w)) != 4 {
					t.Errorf("one that is known stays: %q", claimsOf(w))
				}
			})
		})
	}
}

// 389: what a recovery has put aside on a volume goes only when a person has taken the word for
// that off the claim, whatever was planned.
func TestWhatARecoveryKeepsStays(t *testing.T) {
	leaving(t, func(w *reconcilertest.World) {
		w.MustDo(action.RemoveMember{Member: "orders-4", ID: "a4"})
		w.MustDo(action.EndLeave{Member: "orders-4", ID: "a4"})
		keeps := func(lost string) {
			changeClaim(w, "orders-4", func(c *corev1.PersistentVolumeClaim) {
				c.Status.Phase, c.Annotations = corev1.ClaimBound, map[string]string{naming.AnnotationHolds: "a4", naming.AnnotationKeeps: lost}
			})
		}
		keeps("c0")
		volume := action.DeleteVolume{Claim: "data-orders-4", UID: claimUID(w, "orders-4"), Member: "orders-4"}
		if err := w.Do(volume); !errors.Is(err, state.ErrChanged) || len(claimsOf(w)) != 5 {
			t.Errorf("%v: the claims are %q", err, claimsOf(w))
		}
		keeps("")
		if stepsOf(w, volume); len(claimsOf(w)) != 4 {
			t.Errorf("what was let go stays: %q", claimsOf(w))
		}
	})
}

// 389: a learner has failed on a claim that may keep what a recovery has put aside, and does not
// say so. It does before the record lets the volume go, once: then a person may take it off. A
// claim of somebody else is left alone, and is not let go.
func TestWhatARecoveryMayKeepIsNotedBeforeTheVolumeIsRetired(t *testing.T) {
	keeps := func(w *reconcilertest.World) (lost string) {
		for _, c := range w.Claims() {
			if c.Name == "data-orders-3" {
				lost = c.Annotations[naming.AnnotationKeeps]
			}
		}
		return lost
	}
	for name, c := range map[string]struct {
		put     func(w *reconcilertest.World, claim *corev1.PersistentVolumeClaim)
		refuses bool
		keeps   string
		retired bool
	}{
		"a claim from before": {put: func(w *reconcilertest.World, claim *corev1.PersistentVolumeClaim) {
			w.Put(reconcilertest.ClaimsResource(), claim)
		}, keeps: "c0", retired: true},
		"one that says so already": {put: func(w *reconcilertest.World, claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{naming.AnnotationKeeps: "c0"}
			w.Put(reconcilertest.ClaimsResource(), claim)
		}, keeps: "c0", retired: true},
		"somebody else's": {put: func(w *reconcilertest.World, claim *corev1.PersistentVolumeClaim) {
			delete(claim.Labels, "app.kubernetes.io/managed-by")
			w.Put(reconcilertest.ClaimsResource(), claim)
		}},
		"none": {put: func(*reconcilertest.World, *corev1.PersistentVolumeClaim) {}, retired: true},
		"one that cannot be marked": {put: func(w *reconcilertest.World, claim *corev1.PersistentVolumeClaim) {
			w.Put(reconcilertest.ClaimsResource(), claim)
			w.API.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("the API server is full")
			})
		}, refuses: true},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.MustDo(action.BeginJoin{Member: "orders-3"})
				w.MustDo(action.AddLearner{Member: "orders-3"})
				c.put(w, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-orders-3", Namespace: "shop", Labels: naming.OwnLabels(w.Wish.EtcdCluster)}})
				id := w.Record().Joining.ID
				drop := action.DropLearner{Member: "orders-3", ID: id, Retire: true, Keeps: "c0"}
				if c.refuses {
					if err := w.Do(drop); err == nil || w.Record().Joining == nil || w.Record().Retired["orders-3"] != "" {
						t.Errorf("error %v, the record is %+v", err, w.Record())
					}
					return
				}
				w.MustDo(drop)
				if r := w.Record(); r.Joining != nil || (r.Retired["orders-3"] == id) != c.retired || keeps(w) != c.keeps {
					t.Errorf("keeps %q, the record is %+v", keeps(w), r)
				}
				changeClaim(w, "orders-3", func(claim *corev1.PersistentVolumeClaim) { claim.Annotations = nil })
				w.MustDo(drop)
				if lost := keeps(w); lost != "" {
					t.Errorf("what a person has taken off is back: %q", lost)
				}
			})
		})
	}
}

// A cluster that never formed has no members that anybody could have seen: its claims
// go by Git's word.
func TestVolumesOfAnUnformedClusterGo(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.BeginDeletion{})
		if err := w.R.Executor.Note(w.Context(), w.Look(), func(r *record.Record) { r.ClusterID, r.Members = "", nil }); err != nil {
			t.Fatal(err)
		}
		if err := w.API.Tracker().Delete(reconcilertest.SetsResource(), "shop", "orders"); err != nil {
			t.Fatal(err)
		}
		changeClaim(w, "orders-2", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
		twice(w, action.DeleteVolume{Claim: "data-orders-2", UID: claimUID(w, "orders-2"), Member: "orders-2"})
		if len(claimsOf(w)) != 2 {
			t.Errorf("the claims are %q", claimsOf(w))
		}
	})
}
