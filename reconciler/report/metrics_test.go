package report_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
)

func TestMetricsAtRest(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_info{etcd_cluster=orders,version=3.6.16}":          1,
			"quorate_cluster_hold{etcd_cluster=orders,kind=Waiting}":            0,
			"quorate_cluster_hold{etcd_cluster=orders,kind=Stopped}":            0,
			"quorate_cluster_planned_steps{etcd_cluster=orders}":                0,
			"quorate_cluster_drifted_objects{etcd_cluster=orders}":              0,
			"quorate_cluster_healthy_members{etcd_cluster=orders}":              3,
			"quorate_certificate_expiry_timestamp_seconds{etcd_cluster=orders}": float64(w.Look().Expiry.Unix()),
			"quorate_actions_total{action=CreateSet,etcd_cluster=orders}":       1,
			"quorate_actions_total{action=RecordFormed,etcd_cluster=orders}":    1,
		})
		for series := range reconcilertest.Gather(t, w.Registry) {
			if strings.HasPrefix(series, "quorate_backup") {
				t.Errorf("%s, although no backup was taken", series)
			}
		}
	})
}

func TestMetricsOfAHold(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Version = func(member string) string {
			if member == "orders-1" {
				return ""
			}
			return "3.6.16"
		}
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_hold{etcd_cluster=orders,kind=Unhealthy}": 1,
			"quorate_cluster_hold{etcd_cluster=orders,kind=Waiting}":   0,
			"quorate_cluster_healthy_members{etcd_cluster=orders}":     2,
		})
		w.Etcd.Version = w.VersionOf
		w.MustPass()
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_hold{etcd_cluster=orders,kind=Unhealthy}": 0, "quorate_cluster_healthy_members{etcd_cluster=orders}": 3,
		})
	})
}

func TestMetricsOfAnUpgrade(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.MustPass()
		steps := reconcilertest.Gather(t, w.Registry)["quorate_cluster_planned_steps{etcd_cluster=orders}"]
		if steps < 6 {
			t.Errorf("%v planned steps for an upgrade of three members", steps)
		}
		w.UntilIdle()
		w.MustPass()
		b := w.Record().Backup
		reconcilertest.WantMetrics(t, w.Registry, map[string]float64{
			"quorate_cluster_info{etcd_cluster=orders,version=3.6.16}":                     1,
			"quorate_cluster_planned_steps{etcd_cluster=orders}":                           0,
			"quorate_actions_total{action=RestartMember,etcd_cluster=orders}":              3,
			"quorate_backup_last_success_timestamp_seconds{etcd_cluster=orders,schedule=}": float64(b.TakenAt.Unix()),
			"quorate_backup_last_success_size_bytes{etcd_cluster=orders,schedule=}":        float64(b.Size),
		})
		if _, old := reconcilertest.Gather(t, w.Registry)["quorate_cluster_info{etcd_cluster=orders,version=3.6.12}"]; old {
			t.Error("the old version is still there")
		}
	}, clustertest.SetVersion("3.6.12"))
}

// How long ago the cluster was observed that was observed longest ago is one series: it grows
// where one is not observed, also one that never was, and ends with what Git names.
func TestTheOldestLookIsMeasured(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		want := func(seconds float64) {
			t.Helper()
			reconcilertest.WantMetrics(t, w.Registry, map[string]float64{"quorate_oldest_look_seconds{}": seconds})
		}
		w.R.SetDesired(nil)
		want(0)
		other := w.Wish
		other.Metadata.Name = "carts"
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		start := time.Now()
		time.Sleep(time.Minute)
		w.R.SetDesired([]desired.Cluster{w.Wish, other})
		want(time.Since(start).Seconds())
		w.MustPass()
		want(0)
		time.Sleep(time.Minute)
		w.MustPass() // over one of the two
		want(60)
		w.R.SetDesired([]desired.Cluster{w.Wish})
		want(0)
		ended := w.R.Reporter.Metrics.Acting(w.Wish, action.TakeBackup{}, time.Now())
		time.Sleep(time.Hour)
		want(0) // a backup of an hour has its own metric
		ended()
		time.Sleep(time.Minute)
		want(60)
		ended = w.R.Reporter.Metrics.Acting(w.Wish, action.TakeBackup{}, time.Now())
		w.R.SetDesired(nil)
		ended()
		want(0)
	})
}

// A cluster that leaves Git is left running, and its series go.
func TestSeriesGoWithTheCluster(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.UntilIdle()
		w.MustPass()
		w.R.Reporter.Metrics.CountFailure(w.Wish)
		w.API.ClearActions()
		w.R.SetDesired(nil)
		for series := range reconcilertest.Gather(t, w.Registry) {
			if strings.Contains(series, "cluster=orders") {
				t.Errorf("%s is still there", series)
			}
		}
		if requests := w.API.Requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
		if orphans := w.Lines("cluster is not in Git any more", "cluster"); !slices.Equal(orphans, []string{"shop/orders"}) {
			t.Errorf("orphans %q", orphans)
		}
		if w.Etcd.Calls[len(w.Etcd.Calls)-1] != "forget shop/orders" {
			t.Errorf("calls %q", w.Etcd.Calls)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// Labels are names of clusters and words from fixed lists: whatever goes wrong,
// no new value appears.
func TestLabelsAreBounded(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Change = func(r *state.Round) { r.Problem, r.Members = "no answer", nil }
		w.MustPass()
		before := len(reconcilertest.Gather(t, w.Registry))
		for _, problem := range []string{"connection refused", "deadline exceeded", "no leader"} {
			w.Etcd.Change = func(r *state.Round) { r.Problem, r.Members = problem, nil }
			w.MustPass()
			w.Etcd.Change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: problem}} }
			w.MustPass()
		}
		if after := len(reconcilertest.Gather(t, w.Registry)); after != before {
			t.Errorf("%d series, and %d before", after, before)
		}
	})
	if n := len(report.HoldKinds()); n != 7 {
		t.Errorf("%d kinds of hold", n)
	}
}

// The same hold is said once, however often it is met.
func TestHoldIsSaidOnce(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }
		for range 5 {
			w.MustPass()
		}
		holds, events := w.Lines("on hold", "reason"), w.DrainEvents()
		if len(holds) != 1 || !strings.Contains(holds[0], "NOSPACE") {
			t.Errorf("holds %q", holds)
		}
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning HoldUnhealthy ") {
			t.Errorf("events %q", events)
		}
		w.Etcd.Change = nil
		w.MustPass()
		w.MustPass()
		if idle := w.Lines("cluster is up to date", "version"); len(idle) != 1 {
			t.Errorf("idle %q", idle)
		}
		w.Etcd.Change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }
		w.MustPass()
		if holds := w.Lines("on hold", "reason"); len(holds) != 2 {
			t.Errorf("the hold that is back was said %d times", len(holds))
		}
	})
}

func TestStepsAreSaidBeforeAndAfter(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.UntilIdle()
		steps, done, reasons := w.Lines("step started", "action"), w.Lines("step done", "action"), w.Lines("step started", "reason")
		if !slices.Equal(steps, done) || slices.Contains(reasons, "") {
			t.Errorf("steps %q, done %q, reasons %q", steps, done, reasons)
		}
		var restarts int
		for _, e := range w.DrainEvents() {
			if strings.HasPrefix(e, corev1.EventTypeNormal+" RestartMember restart orders-") {
				restarts++
			}
		}
		if restarts != 3 {
			t.Errorf("%d Events of a restart", restarts)
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestWarningIsSaidOnceForOneSpec(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Wish.Spec.Upgrade.Backup = "Skip"
		w.UntilIdle()
		warnings := slices.DeleteFunc(w.Lines("cluster warning", "warning"), func(m string) bool { return !strings.Contains(m, "Skip") })
		if len(warnings) != 1 {
			t.Errorf("warnings %q", warnings)
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestErrorsAreSaidOnTheSet(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.Reporter.Failed(w.Wish, errors.New("back up: "+strings.Repeat("é", 2000)))
		w.R.Reporter.Failed(w.Wish, errors.New("back up: "+strings.Repeat("é", 2000)))
		synctest.Wait()
		events := w.DrainEvents()
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning Failed back up: ") || len(events[0]) > 1024 {
			t.Errorf("events %q", events)
		}
	})
}
