package reconciler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/state"
)

// wantMetrics compares the named metrics with their text form, whose comment
// lines are left out.
func wantMetrics(t *testing.T, registry prometheus.Gatherer, want map[string]float64) {
	t.Helper()
	got := gather(t, registry)
	for series, value := range want {
		if v, ok := got[series]; !ok || v != value {
			t.Errorf("%s is %v (there: %t), want %v", series, v, ok, value)
		}
	}
}

// gather is every series but the histogram's, as name{label=value,…}.
func gather(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "namespace" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			if m.GetHistogram() == nil {
				all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return all
}

func TestMetricsAtRest(t *testing.T) {
	formed(t, func(w *world) {
		wantMetrics(t, w.registry, map[string]float64{
			"quorate_cluster_info{cluster=orders,version=3.6.16}":          1,
			"quorate_cluster_hold{cluster=orders,kind=Waiting}":            0,
			"quorate_cluster_hold{cluster=orders,kind=Stopped}":            0,
			"quorate_cluster_planned_steps{cluster=orders}":                0,
			"quorate_cluster_drifted_objects{cluster=orders}":              0,
			"quorate_cluster_healthy_members{cluster=orders}":              3,
			"quorate_certificate_expiry_timestamp_seconds{cluster=orders}": float64(w.look().notAfter.Unix()),
			"quorate_actions_total{action=CreateSet,cluster=orders}":       1,
			"quorate_actions_total{action=RecordFormed,cluster=orders}":    1,
		})
		for series := range gather(t, w.registry) {
			if strings.HasPrefix(series, "quorate_backup") {
				t.Errorf("%s, although no backup was taken", series)
			}
		}
	})
}

func TestMetricsOfAHold(t *testing.T) {
	formed(t, func(w *world) {
		w.etcd.version = func(member string) string {
			if member == "orders-1" {
				return ""
			}
			return "3.6.16"
		}
		w.mustPass()
		wantMetrics(t, w.registry, map[string]float64{
			"quorate_cluster_hold{cluster=orders,kind=Unhealthy}": 1,
			"quorate_cluster_hold{cluster=orders,kind=Waiting}":   0,
			"quorate_cluster_healthy_members{cluster=orders}":     2,
		})
		w.etcd.version = w.versionOf
		w.mustPass()
		wantMetrics(t, w.registry, map[string]float64{
			"quorate_cluster_hold{cluster=orders,kind=Unhealthy}": 0, "quorate_cluster_healthy_members{cluster=orders}": 3,
		})
	})
}

func TestMetricsOfAnUpgrade(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		w.mustPass()
		steps := gather(t, w.registry)["quorate_cluster_planned_steps{cluster=orders}"]
		if steps < 6 {
			t.Errorf("%v planned steps for an upgrade of three members", steps)
		}
		w.untilIdle()
		w.mustPass()
		b := w.record().Backup
		wantMetrics(t, w.registry, map[string]float64{
			"quorate_cluster_info{cluster=orders,version=3.6.16}":                     1,
			"quorate_cluster_planned_steps{cluster=orders}":                           0,
			"quorate_actions_total{action=RestartMember,cluster=orders}":              3,
			"quorate_backup_last_success_timestamp_seconds{cluster=orders,schedule=}": float64(b.TakenAt.Unix()),
			"quorate_backup_last_success_size_bytes{cluster=orders,schedule=}":        float64(b.Size),
		})
		if _, old := gather(t, w.registry)["quorate_cluster_info{cluster=orders,version=3.6.12}"]; old {
			t.Error("the old version is still there")
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestFailedPassesAreCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.api.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server is away")
		})
		w.r.Next(w.Context())
		wantMetrics(t, w.registry, map[string]float64{"quorate_pass_failures_total{cluster=orders}": 1})
		if n := testutil.CollectAndCount(w.r.reporter.metrics.Passes()); n != 1 {
			t.Errorf("%d histograms", n)
		}
	})
}

// A cluster that leaves Git is left running, and its series go.
func TestSeriesGoWithTheCluster(t *testing.T) {
	formed(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.commit(clustertest.SetVersion("3.6.16"))
		w.untilIdle()
		w.mustPass()
		w.r.reporter.metrics.CountFailure(w.wish)
		w.api.ClearActions()
		w.r.SetDesired(nil)
		for series := range gather(t, w.registry) {
			if strings.Contains(series, "cluster=orders") {
				t.Errorf("%s is still there", series)
			}
		}
		if requests := w.api.requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
		if orphans := w.lines("orphan", "cluster"); !slices.Equal(orphans, []string{"shop/orders"}) {
			t.Errorf("orphans %q", orphans)
		}
		if w.etcd.calls[len(w.etcd.calls)-1] != "forget shop/orders" {
			t.Errorf("calls %q", w.etcd.calls)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// Labels are names of clusters and words from fixed lists: whatever goes wrong,
// no new value appears.
func TestLabelsAreBounded(t *testing.T) {
	formed(t, func(w *world) {
		w.mustPass()
		before := len(gather(t, w.registry))
		for _, problem := range []string{"connection refused", "deadline exceeded", "no leader"} {
			w.etcd.change = func(r *state.Round) { r.Problem, r.Members = problem, nil }
			w.mustPass()
			w.etcd.change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: problem}} }
			w.mustPass()
		}
		if after := len(gather(t, w.registry)); after != before {
			t.Errorf("%d series, and %d before", after, before)
		}
	})
	if n := len(holdKinds()); n != 6 {
		t.Errorf("%d kinds of hold", n)
	}
}

func TestMetricNamesFollowTheRules(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	c := desired.Cluster{EtcdCluster: clustertest.Orders()}
	m.observed(&view{cluster: c}, plan.Plan{})
	m.acted(c, "CreateSet")
	m.failed(c)
	m.passed(time.Second)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// The same hold is said once, however often it is met.
func TestHoldIsSaidOnce(t *testing.T) {
	formed(t, func(w *world) {
		w.etcd.change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }
		for range 5 {
			w.mustPass()
		}
		holds, events := w.lines("hold", "message"), w.drainEvents()
		if len(holds) != 1 || !strings.Contains(holds[0], "NOSPACE") {
			t.Errorf("holds %q", holds)
		}
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning HoldUnhealthy ") {
			t.Errorf("events %q", events)
		}
		w.etcd.change = nil
		w.mustPass()
		w.mustPass()
		if idle := w.lines("idle", "message"); len(idle) != 1 {
			t.Errorf("idle %q", idle)
		}
		w.etcd.change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }
		w.mustPass()
		if holds := w.lines("hold", "message"); len(holds) != 2 {
			t.Errorf("the hold that is back was said %d times", len(holds))
		}
	})
}

func TestStepsAreSaidBeforeAndAfter(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		w.untilIdle()
		steps, done, reasons := w.lines("step", "action"), w.lines("done", "action"), w.lines("step", "reason")
		if !slices.Equal(steps, done) || slices.Contains(reasons, "") {
			t.Errorf("steps %q, done %q, reasons %q", steps, done, reasons)
		}
		var restarts int
		for _, e := range w.drainEvents() {
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
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		w.wish.Spec.Upgrade.Backup = "Skip"
		w.untilIdle()
		warnings := slices.DeleteFunc(w.lines("warning", "message"), func(m string) bool { return !strings.Contains(m, "Skip") })
		if len(warnings) != 1 {
			t.Errorf("warnings %q", warnings)
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestErrorsAreSaidOnTheSet(t *testing.T) {
	formed(t, func(w *world) {
		w.r.reporter.reportError(w.wish, errors.New("back up: "+strings.Repeat("é", 2000)))
		w.r.reporter.reportError(w.wish, errors.New("back up: "+strings.Repeat("é", 2000)))
		synctest.Wait()
		events := w.drainEvents()
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning Failed back up: ") || len(events[0]) > 1024 {
			t.Errorf("events %q", events)
		}
	})
}
