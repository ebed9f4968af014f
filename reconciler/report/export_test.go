package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
)

func (r *Reporter) ReportCorrection(v *observe.View, a action.Action) { r.reportCorrection(v, a) }

func (m *Metrics) Corrected(c desired.Cluster, kind, manager string) {
	m.corrected(c, kind, manager, time.Unix(1000, 0))
}

func (m *Metrics) CountFailure(c desired.Cluster) { m.failed(c) }

func (m *Metrics) Passes() prometheus.Histogram { return m.passes }

// MaxManagers is for tests.
const MaxManagers = maxManagers

func HoldKinds() []decision.HoldKind { return holdKinds() }
