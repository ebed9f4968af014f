package daemon

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/starvation"
)

// newMetrics registers what is known of the process, and returns the gauge that is 1
// while it acts.
func newMetrics(registry prometheus.Registerer, version string, clock *ServerClock) (leader prometheus.Gauge) {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "quorate_build_info", Help: "1, with the version of quorate and of Go that it was built with.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	leader = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quorate_leader", Help: "1 while this process may act: it holds the lease, or needs none. The others wait, and have no series of clusters; with --shards they have those of their own, and this is the one that accepts commits and tells of all.",
	})
	skew := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quorate_clock_skew_seconds", Help: "How far the clock of quorate's machine is ahead of the API server's, by the time in its answers; negative where it is behind, 0 within a second.",
	}, func() float64 { return clock.Ahead().Seconds() })
	starved := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quorate_starved_seconds_total", Help: "For how long this process was kept from running, by its CPU limit or an overloaded node. Limits on the answers of members do not count that time.",
	}, func() float64 { return starvation.Lost().Seconds() })
	registry.MustRegister(build, leader, skew, starved)
	return leader
}
