package reconciler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// statusYAML is everything that is known, as it is written.
func (w *world) statusYAML() string {
	w.Helper()
	list, _ := w.r.Statuses()
	text, err := yaml.Marshal(list)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// status is what is known of one object.
func (w *world) status(kind, name string) schema.Status {
	w.Helper()
	list, _ := w.r.Statuses()
	for _, s := range list {
		if s.Kind == kind && s.Metadata.Name == name {
			return s
		}
	}
	w.Fatalf("nothing is known of %s %s:\n%s", kind, name, w.statusYAML())
	return schema.Status{}
}

func (w *world) wantPhase(kind, name string, want schema.Phase, reason string) {
	w.Helper()
	if phase, why := w.status(kind, name).Phase(); phase != want || why.Reason != reason {
		w.Errorf("%s %s is %s because of %s (%s), want %s because of %s", kind, name, phase, why.Reason, why.Message, want, reason)
	}
}

func TestStatusAtRest(t *testing.T) {
	formed(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPass()
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
		if got := w.statusYAML(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// restless lets every number that etcd measures rise with each look.
func (w *world) restless() {
	looks := int64(0)
	w.etcd.change = func(r *state.Round) {
		looks++
		for i := range r.Members {
			m := &r.Members[i]
			m.Revision += looks
			m.CommitIndex, m.AppliedIndex = m.CommitIndex+uint64(looks), m.AppliedIndex+uint64(looks)
			m.DBSize, m.DBInUse = m.DBSize+looks<<12, m.DBInUse+looks<<12
			m.Snapshots += looks
			m.Term += uint64(looks)
			if m.Problem != "" {
				m.Problem = fmt.Sprintf("read tcp 10.0.0.1:%d->10.0.0.2:2379: i/o timeout", 40000+looks)
			}
		}
	}
}

// 139: two looks between which nothing has happened give the same bytes, whatever
// the members measure.
func TestStatusSaysNothingThatTicks(t *testing.T) {
	away := func(member string) func(w *world) {
		return func(w *world) {
			w.etcd.version = func(m string) string {
				if m == member {
					return ""
				}
				return w.versionOf(m)
			}
		}
	}
	for name, spoil := range map[string]func(w *world){
		"at rest":       func(*world) {},
		"a member away": away("orders-1"),
		"a quorum away": func(w *world) { w.etcd.version = func(string) string { return "" } },
		"an alarm":      func(*world) {},
		"another wish":  func(w *world) { w.commit(clustertest.SetReplicas(2)) },
		"only observing": func(w *world) {
			w.commit(func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve }, clustertest.SetVersion("3.6.17"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			formed(t, func(w *world) {
				w.restless()
				spoil(w)
				w.r.SetDesired([]desired.Cluster{w.wish})
				look := func() {
					v, p, err := w.r.Decide(w.Context(), w.wish)
					if err != nil {
						t.Fatal(err)
					}
					w.r.reporter.report(v, p)
				}
				look()
				before := w.statusYAML()
				for range 3 {
					time.Sleep(time.Minute)
					look()
				}
				if after := w.statusYAML(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
			})
		})
	}
}

// What the planner measures is left out of its sentences.
func TestSentencesAreSteady(t *testing.T) {
	v := &view{observed: state.Observed{Rounds: []state.Round{{Members: []state.Member{{Name: "orders-1", Problem: "connection refused"}}}}}}
	for text, want := range map[string]string{
		"orders-2 is 8120 entries behind the leader":                                                                             "orders-2 is behind the leader",
		"orders-2 has applied 7 of 4711 entries":                                                                                 "orders-2 has not applied all entries",
		"250Mi of its file of 300Mi are free":                                                                                    "much of its file is free",
		"its file has 1.95Gi of a quota of 2Gi, and 12.5Mi of that can be given back":                                            "its file comes near its quota of 2Gi, and some of that can be given back",
		"1 answer (orders-0 answers, at revision 1200, raft term 7 and index 5000)":                                              "1 answer (orders-0 answers)",
		"orders-0 is at revision 7 and should be at 9 or later, so that":                                                         "orders-0 is at an earlier revision than it should be, so that",
		"orders-0 and orders-1 hold different data at revision 12":                                                               "orders-0 and orders-1 hold different data",
		"orders-1 does not answer: connection refused; look at it":                                                               "orders-1 does not answer; look at it",
		"Service orders: it was put back 3 times and changed again by me each time; it is put back next at 2026-03-01T14:00:00Z": "Service orders: it was put back again and again, and changed again by me each time",
		"spec.ports (by kubectl-edit at 2026-03-01T14:00:00Z)":                                                                   "spec.ports (by kubectl-edit)",
		"3.5.35 → 3.6.16: 3.6 takes a snapshot every 10000 entries instead of 100000":                                            "3.5.35 → 3.6.16: 3.6 takes a snapshot every 10000 entries instead of 100000",
		"2 left to go": "2 left to go",
	} {
		if got := steady(v, text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// 158: the conditions say how an upgrade goes: that it is on the way, and that it is over.
func TestStatusOfAnUpgrade(t *testing.T) {
	formed(t, func(w *world) {
		first := w.wish.Commit
		w.commit(clustertest.SetVersion("3.6.16"))
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPass()
		s := w.status(schema.KindCluster, "orders")
		if phase, _ := s.Phase(); phase != schema.PhaseReconciling || len(s.Status.Cluster.Plan) < 6 || s.Status.Commit != w.wish.Commit {
			t.Errorf("it is %s of commit %s with the plan %+v", phase, s.Status.Commit, s.Status.Cluster.Plan)
		}
		mixed := false
		w.until(func(p plan.Plan) bool {
			v := w.status(schema.KindCluster, "orders").Status.Cluster.Version
			mixed = mixed || v.Lowest == "3.6.12" && v.Highest == "3.6.16"
			return p.Idle()
		})
		w.mustPass()
		w.wantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
		s = w.status(schema.KindCluster, "orders")
		if b := s.Status.Cluster.Backups; len(b) != 1 || !strings.HasSuffix(b[0].URL, ".db") || b[0].SHA256 == "" {
			t.Errorf("backups %+v", b)
		}
		if !mixed || s.Status.Commit == first {
			t.Errorf("two versions at once were seen: %t, commit %s", mixed, s.Status.Commit)
		}
		// A commit that changes others is no news of this cluster.
		w.commit()
		w.mustPass()
		if after := w.status(schema.KindCluster, "orders"); after.Status.Commit != s.Status.Commit || after.Observed != w.wish.Commit {
			t.Errorf("commit %s, observed %s", after.Status.Commit, after.Observed)
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestStatusOfDrift(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.scale(2, "kubectl-scale")
		w.mustPass()
		s := w.status(schema.KindCluster, "orders").Status.Cluster
		if len(s.Drift) != 1 || s.Drift[0].Kind != "StatefulSet" || s.Drift[0].Manager != "kubectl-scale" || len(s.Drift[0].Fields) == 0 || s.Hold == nil {
			t.Errorf("drift %+v, hold %+v", s.Drift, s.Hold)
		}
	})
}

// A failure is shown when it lasts, in the same words while only numbers differ, and
// goes with the first pass that succeeds.
func TestStatusOfFailures(t *testing.T) {
	formed(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPass()
		w.r.reporter.reportError(w.wish, errors.New("back up: request 1: no such bucket"))
		w.wantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
		w.r.reporter.reportError(w.wish, errors.New("back up: request 2: no such bucket"))
		w.wantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Failed")
		before := w.statusYAML()
		w.r.reporter.reportError(w.wish, errors.New("back up: request 3: no such bucket"))
		w.mustPass() // looks, and would fail again later
		if after := w.statusYAML(); after != before || !strings.Contains(after, "request 1") {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		w.r.Next(w.Context())
		w.wantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
	})
}

// 130: a cluster that no file names is told of until it is none of ours any more.
func TestStatusOfAnOrphan(t *testing.T) {
	formed(t, func(w *world) {
		w.mustDo(action.ClaimCluster{To: claimed(us(), 1)})
		w.as(us())
		w.r.SetDesired([]desired.Cluster{w.wish})
		if _, whole := w.r.Statuses(); whole {
			t.Error("all is known before the first look")
		}
		w.wantPhase(schema.KindCluster, "orders", schema.PhaseUnknown, "NotLookedAt")
		w.mustPass()
		if _, whole := w.r.Statuses(); !whole {
			t.Error("not all is known")
		}
		w.r.SetDesired(nil)
		w.wantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Orphaned")
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPass()
		w.wantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
	})
}

func TestStatusOfASchedule(t *testing.T) {
	backedUp(t, func(w *world) {
		q := nightly()
		w.r.scheduler.SetRequests([]desired.Backup{q})
		w.mustPassRequests(q, 4*time.Hour)
		w.wantPhase(schema.KindBackupSchedule, "nightly", schema.PhaseReady, "BackupTaken")
		s := w.status(schema.KindBackupSchedule, "nightly").Status.Schedule
		if s.Last == nil || s.Last.SHA256 == "" || !strings.HasSuffix(s.Next, "T02:00:00Z") || s.Cluster != "shop/orders" {
			t.Errorf("the schedule is %+v", s)
		}
		w.mustPass()
		if b := w.status(schema.KindCluster, "orders").Status.Cluster.Backups; len(b) != 1 || b[0].For != "schedule nightly" {
			t.Errorf("the cluster's backups are %+v", b)
		}
		before := w.statusYAML()
		w.mustPassRequests(q, time.Hour)
		if after := w.statusYAML(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		w.r.scheduler.SetRequests(nil)
		if text := w.statusYAML(); strings.Contains(text, "nightly") {
			t.Errorf("it is still there:\n%s", text)
		}
	})
}

func TestStatusOfABackup(t *testing.T) {
	backedUp(t, func(w *world) {
		q := once()
		w.r.scheduler.SetRequests([]desired.Backup{q})
		w.mustPassRequests(q, time.Minute)
		w.wantPhase(schema.KindBackup, "before-sale", schema.PhaseReady, "BackupTaken")
		if s := w.status(schema.KindBackup, "before-sale"); s.Status.Backup.Taken == nil || s.Status.Commit != q.Commit {
			t.Errorf("the backup is %+v", s)
		}
	})
}

func TestStatusOfABackupThatFails(t *testing.T) {
	backedUp(t, func(w *world) {
		q := once(func(b *schema.BackupRequest) {
			b.Destination.ObjectURLTemplate = "file:///nowhere/{{ .UID }}.db?root=/nowhere"
		})
		w.r.scheduler.SetRequests([]desired.Backup{q})
		if err := w.passRequests(q, 10*time.Minute); err != nil {
			t.Log(err)
		}
		w.wantPhase(schema.KindBackup, "before-sale", schema.PhaseStalled, "BackupFailed")
		before := w.statusYAML()
		_ = w.passRequests(q, time.Hour)
		if after := w.statusYAML(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

func TestStatusOfARestore(t *testing.T) {
	restoring(t, func(w *world) {
		w.commit(clustertest.SetReplicas(1))
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPass()
		if phase, _ := w.status(schema.KindRestore, "back").Phase(); phase != schema.PhaseReconciling {
			t.Errorf("it is %s", phase)
		}
		for range 60 {
			w.mustPass()
			time.Sleep(time.Second)
			restoreGoesOn(w)
			if phase, _ := w.status(schema.KindRestore, "back").Phase(); phase == schema.PhaseReady {
				break
			}
		}
		s := w.status(schema.KindRestore, "back")
		if s.Status.Restore.Time == "" || strings.Contains(s.Status.Restore.Source, "?") {
			t.Errorf("the restore is %+v", s.Status.Restore)
		}
		w.wantPhase(schema.KindRestore, "back", schema.PhaseReady, "Restored")
	})
}

// Secrets that quorate has made or read are in no status.
func TestStatusHoldsNoSecret(t *testing.T) {
	formed(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.mustPass()
		secrets, err := w.api.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"), corev1.SchemeGroupVersion.WithKind("Secret"), "shop")
		list, ok := secrets.(*corev1.SecretList)
		if err != nil || !ok || len(list.Items) == 0 {
			t.Fatalf("no Secrets to look for: %v", err)
		}
		text := w.statusYAML()
		for _, s := range list.Items {
			for key, value := range s.Data {
				if strings.Contains(text, string(value)) {
					t.Errorf("the status holds %s of %s", key, s.Name)
				}
			}
		}
	})
}
