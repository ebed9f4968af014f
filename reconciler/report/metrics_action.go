package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/report/series"
)

// actionMetrics are those of what is executed.
type actionMetrics struct {
	done      *series.Family
	started   *series.Family
	durations *prometheus.HistogramVec
}

func newActionMetrics(to registrar) actionMetrics {
	m := actionMetrics{
		done:    to.counter("actions_total", "Actions that were executed.", "action"),
		started: to.gauge("cluster_action_started_timestamp_seconds", "When the action under way began, as Unix time; there only while it is executed.", "action"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quorate_action_duration_seconds", Help: "How long one action took, whether it failed or not.",
			Buckets: []float64{.005, .05, .5, 1, 5, 30, 60, 300, 1800, 7200},
		}, []string{"action"}),
	}
	to.registry.MustRegister(m.durations)
	return m
}

// countedActions are the actions that there is a series of from the first pass on: those
// that members or their data notice.
func countedActions() []action.Action {
	return []action.Action{
		action.TakeBackup{},
		action.RestartMember{},
		action.MoveLeader{},
		action.AddLearner{},
		action.RemoveMember{},
		action.ApplyObject{},
		action.Defragment{},
		action.DeletePod{},
		action.DeleteVolume{},
	}
}

func (m *actionMetrics) begin(c desired.Cluster) {
	for _, a := range countedActions() {
		m.done.Add(0, of(c, a.Kind())...)
	}
}

// Acting tells that an action is executed, until ended is called.
func (m *Metrics) Acting(c desired.Cluster, a action.Action, now time.Time) (ended func()) {
	started := time.Now()
	m.actions.started.Set(float64(now.Unix()), of(c, a.Kind())...)
	m.looks.change(c.Key(), 1)
	return func() {
		m.looks.change(c.Key(), -1)
		m.actions.started.Delete(of(c, a.Kind())...)
		m.actions.durations.WithLabelValues(a.Kind()).Observe(time.Since(started).Seconds())
	}
}

// acted counts an action.
func (m *Metrics) acted(c desired.Cluster, action string) {
	m.actions.done.Add(1, of(c, action)...)
}
