package report

import (
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/report/series"
	"github.com/quorate/quorate/reconciler/state"
)

// driftMetrics are those of objects that were changed outside of Git. Who changed one is
// not a label of the counter: it would be born at 1, and its first increase be lost.
type driftMetrics struct {
	objects, since, fights, last *series.Family
	mutated                      *series.Family
	corrections, refusals        *series.Family
	managers                     *managers
}

func newDriftMetrics(to registrar) driftMetrics {
	return driftMetrics{
		objects:     to.gauge("cluster_drifted_objects", "Objects changed outside of Git, and not put back yet; also those with a field that is reported and never put back."),
		since:       to.gauge("cluster_drift_since_timestamp_seconds", "Since when the first of them differs, as Unix time; there only while one does and it is known."),
		fights:      to.gauge("cluster_drift_fights", "Objects that another writer changes again and again; quorate leaves them alone for ever longer."),
		mutated:     to.gauge("cluster_admission_changed_objects", "Objects of which the API server makes something else than quorate applies: by an admission policy or webhook. Where no member's safety hangs on the fields, they count as nothing else; else as drifted, too."),
		refusals:    to.counter("objects_refused_total", "Objects that were not taken as quorate applied them, by kind: an admission policy, a quota or a webhook refuses them, or something else has their name.", "kind"),
		last:        to.gauge("drift_last_timestamp_seconds", "When an object was last changed outside of Git, as Unix time, by kind and by the writer; after 20 names of writers the next are \"other\".", "kind", "manager"),
		corrections: to.counter("drift_corrections_total", "Objects put back after a change outside of Git, by kind.", "kind"),
		managers:    &managers{},
	}
}

// driftKinds are the kinds of objects that there is a counter of from the first pass on.
func driftKinds() []string { return []string{"PodDisruptionBudget", "Service", "StatefulSet"} }

func (m *driftMetrics) begin(c desired.Cluster) {
	for _, kind := range driftKinds() {
		m.corrections.Add(0, of(c, kind)...)
		m.refusals.Add(0, of(c, kind)...)
	}
}

// observed sets what differs.
func (m *driftMetrics) observed(v *observe.View) {
	drifted, fights, mutated, since := 0, 0, 0, time.Time{}
	earlier := func(at time.Time) {
		if !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	for _, o := range v.Observed.Objects {
		d, _ := v.Drift(o.Kind, o.Name)
		if (o.State != state.ObjectDrifted || sleeps(v, d)) && len(d.Left) == 0 {
			continue
		}
		if o.Fight != nil && o.Fight.ByAdmission() {
			mutated++
			if o.Weight == state.WeightLight && len(d.Left) == 0 {
				continue
			}
		} else if o.Fight != nil {
			fights++
		}
		drifted++
		earlier(o.ChangedAt)
		for _, c := range d.Left {
			earlier(c.Time)
		}
		if d.Manager != "" && !d.Time.IsZero() {
			m.changed(v.Cluster, o.Kind, d.Manager, d.Time)
		}
	}
	labels := of(v.Cluster)
	m.objects.Set(float64(drifted), labels...)
	m.fights.Set(float64(fights), labels...)
	m.mutated.Set(float64(mutated), labels...)
	if since.IsZero() {
		m.since.Delete(labels...)
		return
	}
	m.since.Set(float64(since.Unix()), labels...)
}

// corrected counts an object that was put back.
func (m *Metrics) corrected(c desired.Cluster, kind, manager string, at time.Time) {
	m.drift.corrections.Add(1, of(c, kind)...)
	m.drift.changed(c, kind, manager, at)
}

// notTaken counts an object that was refused.
func (m *Metrics) notTaken(c desired.Cluster, kind string) {
	m.drift.refusals.Add(1, of(c, kind)...)
}

// changed notes who has changed an object.
func (m *driftMetrics) changed(c desired.Cluster, kind, manager string, at time.Time) {
	m.last.Set(float64(at.Unix()), of(c, kind, m.managers.label(manager))...)
}

// maxManagers is how many field managers are distinguished by name.
const maxManagers = 20

// managers are the field managers that have their own label: the first that
// were met. Any client may invent one.
type managers struct {
	mu    sync.Mutex
	names map[string]bool
}

func (m *managers) label(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = map[string]bool{}
	}
	if !m.names[name] && len(m.names) >= maxManagers && name != unknown {
		return other
	}
	m.names[name] = true
	return name
}
