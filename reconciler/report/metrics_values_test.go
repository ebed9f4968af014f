package report_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// noSeries wants no series whose text begins so.
func noSeries(w *reconcilertest.World, prefix string) {
	w.Helper()
	for series, value := range reconcilertest.Gather(w.T, w.Registry) {
		if strings.HasPrefix(series, prefix) {
			w.Errorf("%s %v", series, value)
		}
	}
}

// 253: an increase of what is born at 1 is never seen: whatever is counted is there before.
func TestCountersAreThereBeforeTheyCount(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_drift_corrections_total{etcd_cluster=orders,kind=Service}":             0,
			"quorate_drift_corrections_total{etcd_cluster=orders,kind=PodDisruptionBudget}": 0,
			"quorate_drift_corrections_total{etcd_cluster=orders,kind=StatefulSet}":         0,
			"quorate_pass_failures_total{etcd_cluster=orders}":                              0,
			"quorate_actions_total{action=RestartMember,etcd_cluster=orders}":               0,
			"quorate_actions_total{action=TakeBackup,etcd_cluster=orders}":                  0,
		})
		w.Scale(5, "kubectl-scale")
		w.MustPass()
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_drift_corrections_total{etcd_cluster=orders,kind=StatefulSet}": 1,
			"quorate_cluster_drifted_objects{etcd_cluster=orders}":                  0,
		})
		noSeries(w, "quorate_cluster_drift_since")
		if last := "quorate_drift_last_timestamp_seconds{etcd_cluster=orders,kind=StatefulSet,manager=kubectl-scale}"; reconcilertest.Gather(t, w.Registry)[last] == 0 {
			t.Error("it is not said who did it")
		}
	})
}

// A cluster that Git names has its series before the first pass over it.
func TestSeriesBeginWithTheFile(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		nightly, once := clustertest.Nightly(), clustertest.Once()
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.R.SetBackups([]desired.Backup{nightly, once})
		series := map[string]float64{
			"quorate_pass_consecutive_failures{etcd_cluster=orders}":                                 0,
			"quorate_cluster_desired_members{etcd_cluster=orders}":                                   3,
			"quorate_cluster_release_supported{etcd_cluster=orders}":                                 1,
			"quorate_cluster_mode{etcd_cluster=orders,mode=Enforce}":                                 1,
			"quorate_cluster_mode{etcd_cluster=orders,mode=Observe}":                                 0,
			"quorate_backup_last_success_timestamp_seconds{etcd_cluster=orders,schedule=nightly}":    0,
			"quorate_backup_overdue{etcd_cluster=orders,schedule=nightly}":                           0,
			"quorate_backup_suspended{etcd_cluster=orders,schedule=nightly}":                         0,
			"quorate_backup_failures_total{backup=,etcd_cluster=orders,schedule=nightly}":            0,
			"quorate_backup_failures_total{backup=before-sale,etcd_cluster=orders,schedule=}":        0,
			"quorate_backup_consecutive_failures{backup=before-sale,etcd_cluster=orders,schedule=}":  0,
			"quorate_backup_pass_consecutive_failures{backup=,etcd_cluster=orders,schedule=nightly}": 0,
			"quorate_queue_depth{queue=clusters}":                                                    1,
			"quorate_queue_depth{queue=backups}":                                                     2,
		}
		reconcilertest.WantMetrics(t, w.Registry, series)
		w.R.SetBackups(nil)
		noSeries(w, "quorate_backup_")
	})
}

func TestFailuresInARow(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		for range 3 {
			w.R.Reporter.Failed(w.Wish, errors.New("the API server does not answer"))
		}
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_pass_consecutive_failures{etcd_cluster=orders}": 3})
		w.R.Reporter.Succeeded(w.Wish)
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_pass_consecutive_failures{etcd_cluster=orders}": 0, "quorate_pass_failures_total{etcd_cluster=orders}": 3,
		})
	})
}

// How far a rollout is shows while it lasts, and a member that left has no series.
func TestMetricsOfARollout(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		noSeries(w, "quorate_cluster_roll_started")
		w.Commit(clustertest.SetVersion("3.6.16"))
		half := func(decision.Plan) bool {
			updated := reconcilertest.Gather(t, w.Registry)["quorate_cluster_updated_members{etcd_cluster=orders}"]
			return updated == 1
		}
		w.Until(half)
		if since := reconcilertest.Gather(t, w.Registry)["quorate_cluster_roll_started_timestamp_seconds{etcd_cluster=orders}"]; since == 0 || since > float64(time.Now().Unix()) {
			t.Errorf("the rollout began at %v", since)
		}
		w.UntilIdle()
		w.MustPass()
		noSeries(w, "quorate_cluster_roll_started")
		noSeries(w, "quorate_cluster_action_started")
		noSeries(w, "quorate_cluster_hold_since")
		noSeries(w, "quorate_member_info{etcd_cluster=orders,member=orders-0,role=leader,state=Healthy,version=3.6.12}")
		all := reconcilertest.Gather(t, w.Registry)
		leaders, members := 0, 0
		for series := range all {
			if strings.HasPrefix(series, "quorate_member_info{") {
				members++
				leaders += strings.Count(series, "role=leader,state=Healthy,version=3.6.16")
			}
		}
		if all["quorate_cluster_updated_members{etcd_cluster=orders}"] != 3 || leaders != 1 || members != 3 {
			t.Errorf("%d members, %d leaders", members, leaders)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// A quorum is counted by the members that vote, also where none of them answers.
func TestMetricsOfAQuorum(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_voting_members{etcd_cluster=orders}": 3, "quorate_cluster_quorum_members{etcd_cluster=orders}": 2,
			"quorate_cluster_healthy_voting_members{etcd_cluster=orders}": 3,
		})
		w.Etcd.Change = func(r *state.Round) { r.Problem, r.Members = "no member answers", nil }
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_voting_members{etcd_cluster=orders}": 3, "quorate_cluster_quorum_members{etcd_cluster=orders}": 2,
			"quorate_cluster_healthy_voting_members{etcd_cluster=orders}":                                  0,
			"quorate_member_info{etcd_cluster=orders,member=orders-0,role=unknown,state=Unknown,version=}": 1,
		})
		w.Etcd.Change = nil
		w.Wish.Spec.State = schema.StateHibernated
		w.UntilIdle()
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_desired_members{etcd_cluster=orders}": 0, "quorate_cluster_quorum_members{etcd_cluster=orders}": 0,
		})
		noSeries(w, "quorate_member_")
	})
}

func TestMetricsOfDatabasesAndAlarms(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Change = func(r *state.Round) {
			r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: r.Member("orders-1").ID}, {Kind: "NEWER", MemberID: state.UnknownMember}}
			r.Members[0].DBSize, r.Members[0].DBInUse, r.Members[0].Quota = 3<<20, 1<<20, 8<<20
			r.Members[1].DBSize, r.Members[1].Quota = 1<<20, 0
		}
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_member_alarm{alarm=NOSPACE,etcd_cluster=orders,member=orders-1}":   1,
			"quorate_member_alarm{alarm=NOSPACE,etcd_cluster=orders,member=orders-0}":   0,
			"quorate_member_alarm{alarm=CORRUPT,etcd_cluster=orders,member=orders-1}":   0,
			"quorate_member_alarm{alarm=other,etcd_cluster=orders,member=unknown}":      1,
			"quorate_member_database_bytes{etcd_cluster=orders,member=orders-0}":        3 << 20,
			"quorate_member_database_in_use_bytes{etcd_cluster=orders,member=orders-0}": 1 << 20,
			"quorate_member_quota_bytes{etcd_cluster=orders,member=orders-0}":           8 << 20,
			"quorate_member_quota_bytes{etcd_cluster=orders,member=orders-1}":           2 << 30,
		})
		noSeries(w, "quorate_member_alarm{alarm=other,etcd_cluster=orders,member=orders-0}")
		w.Etcd.Change = func(*state.Round) {}
		w.MustPass()
		noSeries(w, "quorate_member_alarm{alarm=other")
		noSeries(w, "quorate_member_alarm{alarm=NOSPACE,etcd_cluster=orders,member=unknown}")
	})
}

// Since when something is held moves neither with the passes nor with its words.
func TestMetricsOfSinceWhen(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		began := time.Now()
		w.Etcd.Change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }
		for range 3 {
			w.MustPass()
			time.Sleep(time.Minute)
		}
		since := "quorate_cluster_hold_since_timestamp_seconds{etcd_cluster=orders,kind=Unhealthy}"
		if at := reconcilertest.Gather(t, w.Registry)[since]; at < float64(began.Unix()) || at > float64(began.Add(time.Minute).Unix()) {
			t.Errorf("since %v, and it began at %v", at, began.Unix())
		}
		w.Etcd.Change = nil
		w.MustPass()
		noSeries(w, "quorate_cluster_hold_since")
	})
}

// An action shows while it is executed, and then how long it took.
func TestMetricsOfAnAction(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		ended := w.R.Reporter.Metrics.Acting(w.Wish, action.TakeBackup{}, time.Unix(1000, 0))
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_action_started_timestamp_seconds{action=TakeBackup,etcd_cluster=orders}": 1000,
		})
		ended()
		noSeries(w, "quorate_cluster_action_started")
		families, err := w.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "quorate_action_duration_seconds" && m.GetLabel()[0].GetValue() == "TakeBackup" && m.GetHistogram().GetSampleCount() == 1 {
					return
				}
			}
		}
		t.Error("nobody knows how long it took")
	})
}

// A cluster that has no certificates any more has no time at which the first of them expires.
func TestNoCertificateIsLeftToExpire(t *testing.T) {
	for name, change := range map[string]func(*schema.EtcdCluster){
		"plain text": func(c *schema.EtcdCluster) { c.Spec.TLS.Mode = schema.TLSDisabled },
		"deleted": func(c *schema.EtcdCluster) {
			c.Spec.State, c.Spec.Deletion = schema.StateDeleted, schema.DeletionSpec{Volumes: schema.VolumesDelete, Backup: schema.BackupSkip}
		},
		"deleted, and its certificates are kept but not renewed": func(c *schema.EtcdCluster) {
			c.Spec.State, c.Spec.Deletion.Backup = schema.StateDeleted, schema.BackupSkip
		},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Commit(change)
				for range 3 { // clients have a day to move to plain text, first beside TLS
					w.Until(func(p decision.Plan) bool { return p.Hold != nil || p.Idle() })
					time.Sleep(25 * time.Hour)
				}
				w.UntilIdle()
				w.MustPass()
				noSeries(w, "quorate_certificate_expiry_timestamp_seconds")
			})
		})
	}
}

// What is applied only when a hibernated cluster wakes, such as the budget of its pods, was changed by
// nobody: it is no drift.
func TestAClusterThatSleepsHasNoDriftOfItsOwn(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateHibernated })
		w.UntilIdle()
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_cluster_drifted_objects{etcd_cluster=orders}": 0})
		if list := report.ClusterStatus(w.Look(), decision.Plan{}).Status.Cluster.Drift; len(list) > 0 {
			t.Errorf("the status has %+v", list)
		}
	})
}
