package observe_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// What might be somebody else's and cannot be looked for is in the way, too.
func TestForeignObjectsThatCannotBeLookedForStopTheBootstrap(t *testing.T) {
	for resource, kind := range map[string]string{
		"statefulsets": "StatefulSet orders", "configmaps": "ConfigMap orders-record", "services": "Service orders-",
		"poddisruptionbudgets": "PodDisruptionBudget orders", "persistentvolumeclaims": "PersistentVolumeClaim data-orders-0",
	} {
		reconcilertest.Run(t, func(w *reconcilertest.World) {
			reconcilertest.Away(w, resource)
			_, err := w.Pass()
			backuptest.WantError(t, err, "observe shop/orders", "list "+kind, "away")
			if writes := w.API.Writes(); len(writes) > 0 {
				t.Errorf("%s: it wrote %q", resource, writes)
			}
		})
	}
}

// Whether volumes can grow must be known before the first does.
func TestClassThatCannotBeReadStopsTheGrowth(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		classes := storagev1.SchemeGroupVersion.WithResource("storageclasses")
		w.Put(classes, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, AllowVolumeExpansion: new(true)})
		for _, name := range []string{"data-orders-0", "data-orders-1", "data-orders-2"} {
			w.Put(reconcilertest.ClaimsResource(), clustertest.Claim(name, func(c *corev1.PersistentVolumeClaim) {
				c.Namespace, c.Labels, c.Spec.StorageClassName = "shop", naming.OwnLabels(w.Wish.EtcdCluster), new("fast")
			}))
		}
		synctest.Wait()
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Storage.Size.Add(c.Spec.Storage.Size) })
		reconcilertest.Away(w, "storageclasses")
		w.API.ClearActions()
		_, err := w.Pass()
		backuptest.WantError(t, err, "observe shop/orders", "read StorageClass fast", "away")
		if writes := w.API.Writes(); len(writes) > 0 {
			t.Errorf("it wrote %q", writes)
		}
	})
}

// A cluster that formed and has nobody to ask is one that no member answers for, and
// not one that was not asked.
func TestFormedClusterWithoutAddressesIsAsked(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		for _, name := range w.Etcd.Members {
			pod := w.Pod(name)
			pod.Status.PodIP = ""
			w.Put(reconcilertest.PodsResource(), pod)
		}
		synctest.Wait()
		v := w.Look()
		if len(v.Endpoints) > 0 || len(v.Observed.Rounds) != 1 || v.Observed.Rounds[0].Members[0].Problem == "" {
			t.Errorf("asked %+v: %+v", v.Endpoints, v.Observed.Rounds)
		}
	})
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		if v := w.Look(); len(v.Observed.Rounds) > 0 {
			t.Errorf("one that never formed: %+v", v.Observed.Rounds)
		}
	})
}

// Of a file with errors only the name is to be trusted: not how its members are
// spoken to, either.
func TestMembersOfABrokenFileAreNotAsked(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if v := w.Look(); len(v.Endpoints) != 3 {
			t.Fatalf("before: %+v", v.Endpoints)
		}
		w.Wish.Problems = []string{"spec.version: is missing"}
		if v := w.Look(); len(v.Endpoints) > 0 {
			t.Errorf("asked %+v", v.Endpoints)
		}
	})
}

// A cluster's own destination comes before the daemon's.
func TestOwnDestinationOfBackups(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		if got := w.Look().Desired.BackupURL; got != w.R.Options.BackupURL {
			t.Errorf("the daemon's: %s", got)
		}
		own := "file:///own/{{ .UID }}.db"
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Backup.Destination.ObjectURLTemplate = own })
		if got := w.Look().Desired.BackupURL; got != own {
			t.Errorf("its own: %s", got)
		}
	})
}

// Somebody who scales the StatefulSet is named, and nobody where it is as recorded.
func TestWhoScaledIsSeenWhereTheRecordDiffers(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Scale(5, "kubectl")
		if by := w.Look().Observed.Set.ScaledBy; !strings.HasPrefix(by, "kubectl") {
			t.Errorf("five pods for three members, and it says %q", by)
		}
		w.Scale(3, "kubectl")
		if by := w.Look().Observed.Set.ScaledBy; by != "" {
			t.Errorf("three pods for three members, and it says %q", by)
		}
	})
}

// What was rendered last is taken again only for the same members that may be away.
func TestBudgetIsRenderedAnew(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		v, o := w.Look(), w.R.Options.Render
		o.Replicas = new(int32(3))
		var budgets []string
		for _, away := range []int32{1, 0, 1} {
			o.Disruptions = &away
			if err := w.R.Observer.RenderWith(v, o); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(w.Rendered(v).PDB)
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

// 346: to compare data stops members, and a plan that is not carried out compares none.
func TestAPlanComparesNoData(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		deep := w.CountDeep()
		held := w.Wish
		held.Problems = []string{"spec.version: is missing"}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.org" })
		for _, wish := range []desired.Cluster{held, w.Wish} {
			if p, err := w.R.Plan(w.Context(), wish); err != nil || p.Hold == nil || *deep != 0 {
				t.Errorf("%d deep looks for %+v: %v", *deep, p.Hold, err)
			}
		}
	})
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		deep := w.CountDeep()
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
		if p, err := w.R.Plan(w.Context(), w.Wish); err != nil || p.Hold != nil || len(p.Steps) == 0 || *deep != 0 {
			t.Errorf("%d deep looks for\n%s: %v", *deep, p.Text(), err)
		}
	})
}
