package reconciler

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// What might be somebody else's and cannot be looked for is in the way, too.
func TestForeignObjectsThatCannotBeLookedForStopTheBootstrap(t *testing.T) {
	for resource, kind := range map[string]string{
		"statefulsets": "StatefulSet orders", "configmaps": "ConfigMap orders-record", "services": "Service orders-",
		"poddisruptionbudgets": "PodDisruptionBudget orders", "persistentvolumeclaims": "PersistentVolumeClaim data-orders-0",
	} {
		inWorld(t, func(w *world) {
			away(w, resource)
			_, err := w.pass()
			backuptest.WantError(t, err, "observe shop/orders", "look for "+kind, "away")
			if writes := w.api.writes(); len(writes) > 0 {
				t.Errorf("%s: it wrote %q", resource, writes)
			}
		})
	}
}

// Whether volumes can grow must be known before the first does.
func TestClassThatCannotBeReadStopsTheGrowth(t *testing.T) {
	formed(t, func(w *world) {
		classes := storagev1.SchemeGroupVersion.WithResource("storageclasses")
		w.put(classes, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, AllowVolumeExpansion: new(true)})
		for _, name := range []string{"data-orders-0", "data-orders-1", "data-orders-2"} {
			w.put(claimsResource(), testClaim(name, func(c *corev1.PersistentVolumeClaim) {
				c.Namespace, c.Labels, c.Spec.StorageClassName = "shop", naming.OwnLabels(w.wish.EtcdCluster), new("fast")
			}))
		}
		synctest.Wait()
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Storage.Size.Add(c.Spec.Storage.Size) })
		away(w, "storageclasses")
		w.api.ClearActions()
		_, err := w.pass()
		backuptest.WantError(t, err, "observe shop/orders", "read StorageClass fast", "away")
		if writes := w.api.writes(); len(writes) > 0 {
			t.Errorf("it wrote %q", writes)
		}
	})
}

// A cluster that formed and has nobody to ask is one that nobody answers for, and
// not one that was not asked.
func TestFormedClusterWithoutAddressesIsAsked(t *testing.T) {
	formed(t, func(w *world) {
		for _, name := range w.etcd.members {
			pod := w.pod(name)
			pod.Status.PodIP = ""
			w.put(podsResource(), pod)
		}
		synctest.Wait()
		v := w.look()
		if len(v.endpoints) > 0 || len(v.observed.Rounds) != 1 || v.observed.Rounds[0].Members[0].Problem == "" {
			t.Errorf("asked %+v: %+v", v.endpoints, v.observed.Rounds)
		}
	})
	inWorld(t, func(w *world) {
		if v := w.look(); len(v.observed.Rounds) > 0 {
			t.Errorf("one that never formed: %+v", v.observed.Rounds)
		}
	})
}

// Of a file with errors only the name is to be trusted: not how its members are
// spoken to, either.
func TestMembersOfABrokenFileAreNotAsked(t *testing.T) {
	formed(t, func(w *world) {
		if v := w.look(); len(v.endpoints) != 3 {
			t.Fatalf("before: %+v", v.endpoints)
		}
		w.wish.Problems = []string{"spec.version: is missing"}
		if v := w.look(); len(v.endpoints) > 0 {
			t.Errorf("asked %+v", v.endpoints)
		}
	})
}

// A cluster's own destination comes before the daemon's.
func TestOwnDestinationOfBackups(t *testing.T) {
	formed(t, func(w *world) {
		if got := w.look().desired.BackupURL; got != w.r.options.BackupURL {
			t.Errorf("the daemon's: %s", got)
		}
		own := "file:///own/{{ .UID }}.db"
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Backup.Destination.ObjectURLTemplate = own })
		if got := w.look().desired.BackupURL; got != own {
			t.Errorf("its own: %s", got)
		}
	})
}

// Somebody who scales the StatefulSet is named, and nobody where it is as recorded.
func TestWhoScaledIsSeenWhereTheRecordDiffers(t *testing.T) {
	formed(t, func(w *world) {
		w.scale(5, "kubectl")
		if by := w.look().observed.Set.ScaledBy; !strings.HasPrefix(by, "kubectl") {
			t.Errorf("five pods for three members, and it says %q", by)
		}
		w.scale(3, "kubectl")
		if by := w.look().observed.Set.ScaledBy; by != "" {
			t.Errorf("three pods for three members, and it says %q", by)
		}
	})
}

// Pods that the StatefulSet has not replaced yet run its current revision: while it
// has not seen its newest template either, no revision but the recorded one counts.
func TestCurrentTemplateIsThatOfThePods(t *testing.T) {
	revision := func(hash, version string) *appsv1.ControllerRevision {
		var set appsv1.StatefulSet
		set.Spec.Template.Annotations = map[string]string{naming.AnnotationTemplateHash: hash, naming.AnnotationVersion: version}
		raw, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: raw}}
	}
	live := &liveCluster{revisions: map[string]*appsv1.ControllerRevision{
		"old": revision("h1", "3.6.12"), "new": revision("h2", "3.6.16"), "broken": {Data: runtime.RawExtension{Raw: []byte("{")}},
	}}
	for name, c := range map[string]struct {
		current, update string
		seen            int64
		hash, version   string
	}{
		"done":                            {"new", "new", 2, "h3", "3.6.17"},
		"rolling":                         {"old", "new", 2, "h1", "3.6.12"},
		"the newest template is not seen": {"old", "old", 1, "h1", "3.6.12"},
		"a revision that is gone":         {"gone", "new", 2, "", ""},
		"a revision nobody can read":      {"broken", "new", 2, "", ""},
	} {
		v := &view{cluster: desired.Cluster{EtcdCluster: clustertest.Orders()}, set: &appsv1.StatefulSet{}}
		v.set.Generation, v.set.Status.ObservedGeneration = 2, c.seen
		v.set.Status.CurrentRevision, v.set.Status.UpdateRevision = c.current, c.update
		v.set.Spec.Template.Annotations = map[string]string{naming.AnnotationTemplateHash: "h3", naming.AnnotationVersion: "3.6.17"}
		v.observeSet(live)
		if s := v.observed.Set; s.CurrentTemplate != c.hash || s.CurrentVersion != c.version {
			t.Errorf("%s: %s of %s", name, s.CurrentTemplate, s.CurrentVersion)
		}
	}
}

func TestDescribeDrift(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for want, d := range map[string]drift.Drift{
		"spec.type, spec.ports":                          {Fields: []string{"spec.type", "spec.ports"}},
		"spec.type (by kubectl)":                         {Fields: []string{"spec.type"}, Manager: "kubectl"},
		"spec.type (by kubectl at 2026-01-02T12:00:00Z)": {Fields: []string{"spec.type"}, Manager: "kubectl", Time: noon},
	} {
		if got := drift.Describe(d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What was rendered last is taken again only for the same members that may be away.
func TestBudgetIsRenderedAnew(t *testing.T) {
	formed(t, func(w *world) {
		v, o := w.look(), w.r.options.Render
		o.Replicas = new(int32(3))
		var budgets []string
		for _, away := range []int32{1, 0, 1} {
			o.Disruptions = &away
			if err := w.r.observer.RenderWith(v, o); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(v.manifests.PDB)
			if err != nil {
				t.Fatal(err)
			}
			budgets = append(budgets, string(text))
		}
		if budgets[0] == budgets[1] || budgets[0] != budgets[2] {
			t.Errorf("%q", budgets)
		}
	})
}

// countDeep counts the looks with hashes from now on.
func (w *world) countDeep() *int {
	deep := 0
	w.etcd.change = func(r *state.Round) {
		if r.Deep {
			deep++
		}
	}
	return &deep
}

// Members are looked at for hashes where the plan wants health confirmed, and not
// in each look at a cluster that is held.
func TestOnlyAPlanThatWantsItIsConfirmed(t *testing.T) {
	formed(t, func(w *world) {
		deep := w.countDeep()
		held := w.wish
		held.Problems = []string{"spec.version: is missing"}
		w.commit(func(c *schema.EtcdCluster) { c.Spec.TLS.Mode = schema.TLSDisabled })
		for _, wish := range []desired.Cluster{held, w.wish} {
			if p, err := w.r.Plan(w.Context(), wish); err != nil || p.Hold == nil || *deep != 0 {
				t.Errorf("%d deep looks for %+v: %v", *deep, p.Hold, err)
			}
		}
	})
	formed(t, func(w *world) {
		deep := w.countDeep()
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
		if p, err := w.r.Plan(w.Context(), w.wish); err != nil || len(p.Steps) == 0 || *deep != 1 {
			t.Errorf("%d deep looks for\n%s: %v", *deep, p.Text(), err)
		}
	})
}

// A step that did not disrupt the cluster anew when it was decided, and does when it
// is looked at again, has no place among those that may: it is decided anew.
func TestStepThatBeginsMeanwhileIsDecidedAnew(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
		w.until(func(p plan.Plan) bool {
			if len(p.Steps) == 0 {
				return false
			}
			_, backup := p.Steps[0].Action.(action.TakeBackup)
			return !backup
		})
		before, p, err := w.r.Decide(w.Context(), w.wish)
		if err != nil {
			t.Fatal(err)
		}
		if !w.r.TakesPlace(before, p.Steps[0].Action) {
			t.Fatalf("%s does not begin", p.Steps[0])
		}
		w.api.ClearActions()
		stale := *before
		stale.observed.Set = nil // the caches do not show it yet
		if w.r.TakesPlace(&stale, p.Steps[0].Action) {
			t.Fatalf("%s begins", p.Steps[0])
		}
		if err := w.r.CarryOut(w.Context(), &stale, p.Steps[0]); !errors.Is(err, state.ErrChanged) || len(w.api.writes()) > 0 {
			t.Errorf("%v, and it wrote %q", err, w.api.writes())
		}
	})
}

// A cluster that Git no longer names when its turn comes is not looked at.
func TestClusterThatIsNoLongerNamedIsLeftAlone(t *testing.T) {
	formed(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.r.SetDesired(nil)
		synctest.Wait()
		w.api.ClearActions()
		w.log.Reset()
		if !w.r.Next(w.Context()) || len(w.api.requests()) > 0 || w.log.Len() > 0 {
			t.Errorf("asked for %q, and said %s", w.api.requests(), w.log)
		}
	})
}
