package report

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
)

func TestMetricNamesFollowTheRules(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	c := desired.Cluster{EtcdCluster: clustertest.Orders()}
	m.observed(&observe.View{Cluster: c}, decision.Plan{})
	m.acted(c, "CreateSet")
	m.failed(c)
	m.Passed(time.Second)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
