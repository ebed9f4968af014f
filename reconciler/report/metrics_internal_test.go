package report

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/schema"
)

func TestMetricNamesFollowTheRules(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	c := desired.Cluster{EtcdCluster: clustertest.Orders()}
	m.observed(&observe.View{Cluster: c}, decision.Plan{}, nil, schema.Measured{}, time.Unix(1000, 0))
	m.acted(c, "CreateSet")
	m.failed(c)
	m.Passing()()
	m.Store("save backup", time.Second)
	m.Acting(c, action.CreateSet{}, time.Unix(1000, 0))()
	m.Queue("clusters", func() int { return 0 })
	m.Backups.Begin(desired.Backup{})
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
