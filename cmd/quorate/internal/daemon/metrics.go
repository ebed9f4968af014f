package daemon

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// newMetrics registers what is known of the process, and returns the gauge that is 1
// while it acts.
func newMetrics(registry prometheus.Registerer, version string) (leader prometheus.Gauge) {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "quorate_build_info", Help: "1, with the version of quorate and of Go that it was built with.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	leader = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quorate_leader", Help: "1 while this process may act: it holds the lease, or needs none. The others wait, and have no series of clusters.",
	})
	registry.MustRegister(build, leader)
	return leader
}
