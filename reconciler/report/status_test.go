package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

func TestStatusAtRest(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		const want = `- apiVersion: status.quorate.dev/v1alpha1
  kind: EtcdCluster
  metadata:
    name: orders
    namespace: shop
  status:
    cluster:
      members:
      - health: Healthy
        id: a0
        leader: true
        name: orders-0
        role: voter
        version: 3.6.16
      - health: Healthy
        id: a1
        name: orders-1
        role: voter
        version: 3.6.16
      - health: Healthy
        id: a2
        name: orders-2
        role: voter
        version: 3.6.16
      replicas:
        healthy: 3
        members: 3
        wanted: 3
      version:
        highest: 3.6.16
        lowest: 3.6.16
        wanted: 3.6.16
    commit: 0a1b2c3
    conditions:
    - message: the cluster is what Git says
      reason: Idle
      status: "True"
      type: Ready
    - reason: Idle
      status: "False"
      type: Reconciling
    - reason: Idle
      status: "False"
      type: Stalled
`
		if got := w.StatusYAML(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestStatusNamesTheMaintenanceWindows(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) {
			c.Spec.Maintenance = []schema.MaintenanceWindow{
				{Schedule: "0 2 * * 6", Duration: metav1.Duration{Duration: 3 * time.Hour}, TimeZone: "Europe/Berlin"},
				{Schedule: "0 3 * * 0", Duration: metav1.Duration{Duration: time.Hour}},
			}
		})
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		got := w.Status(schema.KindCluster, "orders").Status.Cluster.Maintenance
		if want := []string{"0 2 * * 6 for 3h0m0s, Europe/Berlin", "0 3 * * 0 for 1h0m0s, UTC"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// 158, 244: the status says how an upgrade goes: that it is on the way, how far, and that it is over.
func TestStatusOfAnUpgrade(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		first := w.Wish.Commit
		accepted := schema.Acceptance{Signer: "SSH key of ada@example.com", Approval: "0a..1b", ApprovedBy: "annotation by kubectl"}
		w.Wish.Accepted = accepted
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		s := w.Status(schema.KindCluster, "orders")
		if s.Status.Accepted != accepted {
			t.Errorf("the commit on the way was accepted by %+v", s.Status.Accepted)
		}
		if phase, _ := s.Phase(); phase != schema.PhaseReconciling || len(s.Status.Cluster.Plan) < 6 || s.Status.Commit != w.Wish.Commit {
			t.Errorf("it is %s of commit %s with the plan %+v", phase, s.Status.Commit, s.Status.Cluster.Plan)
		}
		for _, step := range s.Status.Cluster.Plan {
			if step.Action == "" || step.Reason == "" || step.Undo == "" {
				t.Errorf("a step does not say what, why, or until when it can be taken back: %+v", step)
			}
		}
		mixed, rolled := false, []int32(nil)
		w.Until(func(p decision.Plan) bool {
			c := w.Status(schema.KindCluster, "orders").Status.Cluster
			mixed = mixed || c.Version.Lowest == "3.6.12" && c.Version.Highest == "3.6.16"
			if r := c.Rollout; r != nil && !slices.Contains(rolled, r.Done) {
				rolled = append(rolled, r.Done)
			}
			return p.Idle()
		})
		w.MustPass()
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
		s = w.Status(schema.KindCluster, "orders")
		if !slices.Equal(rolled, []int32{0, 1, 2}) || s.Status.Cluster.Rollout != nil {
			t.Errorf("the rollout had %v members done, and ends with %+v", rolled, s.Status.Cluster.Rollout)
		}
		if b := s.Status.Cluster.Backups; len(b) != 1 || !strings.HasSuffix(b[0].URL, ".db") || b[0].SHA256 == "" {
			t.Errorf("backups %+v", b)
		}
		if !mixed || s.Status.Commit == first {
			t.Errorf("two versions at once were seen: %t, commit %s", mixed, s.Status.Commit)
		}
		if s.Status.Accepted != accepted {
			t.Errorf("the commit that was applied was accepted by %+v", s.Status.Accepted)
		}
		// A commit that changes others is no news of this cluster, whoever signed it.
		w.Wish.Accepted = schema.Acceptance{Signer: "SSH key of bob@example.com"}
		w.Commit()
		w.MustPass()
		if after := w.Status(schema.KindCluster, "orders"); after.Status.Commit != s.Status.Commit || after.Observed != w.Wish.Commit || after.Status.Accepted != accepted {
			t.Errorf("commit %s, observed %s, accepted by %+v", after.Status.Commit, after.Observed, after.Status.Accepted)
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestStatusOfDrift(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.Scale(2, "kubectl-scale")
		w.MustPass()
		s := w.Status(schema.KindCluster, "orders").Status.Cluster
		if len(s.Drift) != 1 || s.Drift[0].Kind != "StatefulSet" || s.Drift[0].Manager != "kubectl-scale" || len(s.Drift[0].Fields) == 0 || s.Hold == nil {
			t.Errorf("drift %+v, hold %+v", s.Drift, s.Hold)
		}
		d := s.Drift[0]
		want := schema.FieldDrift{Path: ".spec.replicas", Live: "2", Wanted: "3", Manager: "kubectl-scale", Since: "2000-01-01T00:00:00Z"}
		if d.Correction != "never: spec.mode is Observe" || d.Fight != "" || len(d.Changes) != 1 || d.Changes[0] != want || d.Since != want.Since {
			t.Errorf("drift %+v", d)
		}
	})
}

// 130: a cluster that no file names is told of until it is none of ours any more.
func TestStatusOfAnOrphan(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Us(), 1)})
		w.As(reconcilertest.Us())
		w.R.SetDesired([]desired.Cluster{w.Wish})
		if _, whole := w.R.Statuses(); whole {
			t.Error("all is known before the first look")
		}
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseUnknown, "NotLookedAt")
		w.MustPass()
		if _, whole := w.R.Statuses(); !whole {
			t.Error("not all is known")
		}
		w.R.SetDesired(nil)
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Orphaned")
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		w.WantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
	})
}

func TestStatusOfASchedule(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Signs()
		q := clustertest.Nightly()
		w.R.Scheduler.SetDesired([]desired.Backup{q})
		w.MustPassRequests(q, 4*time.Hour)
		w.WantPhase(schema.KindBackupSchedule, "nightly", schema.PhaseReady, "BackupTaken")
		s := w.Status(schema.KindBackupSchedule, "nightly").Status.Schedule
		if s.Last == nil || s.Last.SHA256 == "" || !strings.HasSuffix(s.Next, "T02:00:00Z") || s.Cluster != "shop/orders" {
			t.Errorf("the schedule is %+v", s)
		}
		w.MustPass()
		if b := w.Status(schema.KindCluster, "orders").Status.Cluster.Backups; len(b) != 1 || b[0].For != "schedule nightly" {
			t.Errorf("the cluster's backups are %+v", b)
		}
		before := w.StatusYAML()
		w.MustPassRequests(q, time.Hour)
		if after := w.StatusYAML(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		w.R.Scheduler.SetDesired(nil)
		if text := w.StatusYAML(); strings.Contains(text, "nightly") {
			t.Errorf("it is still there:\n%s", text)
		}
	})
}

func TestStatusOfABackup(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Signs()
		q := clustertest.Once()
		q.Accepted = schema.Acceptance{Signer: "SSH key of ada@example.com"}
		w.R.Scheduler.SetDesired([]desired.Backup{q})
		w.MustPassRequests(q, time.Minute)
		w.WantPhase(schema.KindBackup, "before-sale", schema.PhaseReady, "BackupTaken")
		if s := w.Status(schema.KindBackup, "before-sale"); s.Status.Backup.Taken == nil || s.Status.Commit != q.Commit || s.Status.Accepted != q.Accepted {
			t.Errorf("the backup is %+v", s)
		}
	})
}

func TestStatusOfABackupThatFails(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Once(func(b *schema.BackupRequest) {
			b.Destination.ObjectURLTemplate = "file:///nowhere/{{ .UID }}.db?root=/nowhere"
		})
		w.R.Scheduler.SetDesired([]desired.Backup{q})
		if err := w.PassRequests(q, 10*time.Minute); err != nil {
			t.Log(err)
		}
		w.WantPhase(schema.KindBackup, "before-sale", schema.PhaseStalled, "BackupFailed")
		before := w.StatusYAML()
		_ = w.PassRequests(q, time.Hour)
		if after := w.StatusYAML(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

func TestStatusOfARestore(t *testing.T) {
	reconcilertest.Restoring(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetReplicas(1))
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		if phase, _ := w.Status(schema.KindRestore, "back").Phase(); phase != schema.PhaseReconciling {
			t.Errorf("it is %s", phase)
		}
		for range 60 {
			w.MustPass()
			time.Sleep(time.Second)
			reconcilertest.RestoreGoesOn(w)
			if phase, _ := w.Status(schema.KindRestore, "back").Phase(); phase == schema.PhaseReady {
				break
			}
		}
		s := w.Status(schema.KindRestore, "back")
		if s.Status.Restore.Time == "" || strings.Contains(s.Status.Restore.Source, "?") {
			t.Errorf("the restore is %+v", s.Status.Restore)
		}
		w.WantPhase(schema.KindRestore, "back", schema.PhaseReady, "Restored")
	})
}

// Secrets that quorate has made or read are in no status.
func TestStatusHoldsNoSecret(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		secrets, err := w.API.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"), corev1.SchemeGroupVersion.WithKind("Secret"), "shop")
		list, ok := secrets.(*corev1.SecretList)
		if err != nil || !ok || len(list.Items) == 0 {
			t.Fatalf("no Secrets to look for: %v", err)
		}
		text := w.StatusYAML()
		for _, s := range list.Items {
			for key, value := range s.Data {
				if strings.Contains(text, string(value)) {
					t.Errorf("the status holds %s of %s", key, s.Name)
				}
			}
		}
	})
}
