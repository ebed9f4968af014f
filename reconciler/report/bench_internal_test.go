package report

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// BenchmarkScrape answers a scrape, with the series of clusters of three members each.
func BenchmarkScrape(b *testing.B) {
	for _, clusters := range []int{1000, 10000} {
		registry := prometheus.NewRegistry()
		m := NewMetrics(registry)
		for i := range clusters {
			c := desired.Cluster{EtcdCluster: clustertest.Orders()}
			c.Metadata.Name = fmt.Sprintf("orders-%05d", i)
			v := &observe.View{Cluster: c, Observed: state.Observed{Rounds: []state.Round{{Members: []state.Member{
				{ID: "a0", Name: c.Metadata.Name + "-0", Version: "3.6.16", Leader: "a0"},
				{ID: "a1", Name: c.Metadata.Name + "-1", Version: "3.6.16", Leader: "a0"},
				{ID: "a2", Name: c.Metadata.Name + "-2", Version: "3.6.16", Leader: "a0"},
			}}}}}
			m.observed(v, decision.Plan{}, membersOf(v), schema.Measured{}, time.Unix(1000, 0))
		}
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			b.ReportAllocs()
			h := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
			for b.Loop() {
				to := httptest.NewRecorder()
				h.ServeHTTP(to, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil))
				b.ReportMetric(float64(to.Body.Len()), "answer-B")
			}
		})
	}
}
