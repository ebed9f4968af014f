package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/report/series"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// clusterMetrics are the gauges of a whole cluster.
type clusterMetrics struct {
	info, supported, mode                      *series.Family
	holding, holdSince, steps                  *series.Family
	desired, voters, healthyVoters, quorum     *series.Family
	healthy, updated, rollStarted, certificate *series.Family
	failures                                   *series.Family
	failing                                    *series.Family

	// intents are what the series show of Git, by cluster.
	intents memo.Map[intent]
	// counts are what the series show of the last pass.
	counts memo.Map[counts]
	// holds and rolls are since when, as far as this process has seen it.
	holds memo.Map[heldSince]
	rolls memo.Map[time.Time]
}

// counts are what a pass counts.
type counts struct {
	known                                                   bool
	steps, healthy, healthyVoters, voters, quorum, upToDate int
}

// intent is what follows from Git alone.
type intent struct {
	version string
	mode    schema.Mode
	members int32
}

// heldSince is the kind of a hold, and when it was first seen.
type heldSince struct {
	kind  decision.HoldKind
	since time.Time
}

func newClusterMetrics(to registrar) clusterMetrics {
	return clusterMetrics{
		info:          to.gauge("cluster_info", "1 for each cluster that Git names, with the version that it should have.", "version"),
		supported:     to.gauge("cluster_release_supported", "1 while the etcd project maintains the minor release that Git names, as far as this quorate knows; else 0."),
		mode:          to.gauge("cluster_mode", "1 for the mode of the cluster: Enforce, or Observe, in which quorate touches nothing.", "mode"),
		holding:       to.gauge("cluster_hold", "1 while quorate does nothing about the cluster, by kind of hold.", "kind"),
		holdSince:     to.gauge("cluster_hold_since_timestamp_seconds", "Since when that hold lasts, as Unix time; there only while it does.", "kind"),
		steps:         to.gauge("cluster_planned_steps", "Steps between the cluster and what Git says; 0 at rest."),
		desired:       to.gauge("cluster_desired_members", "Members that Git wants; 0 for a cluster that is hibernated or deleted."),
		voters:        to.gauge("cluster_voting_members", "Members that vote; 0 for a cluster that has not formed, or does not run."),
		healthyVoters: to.gauge("cluster_healthy_voting_members", "Members that vote, and were healthy at the last check."),
		quorum:        to.gauge("cluster_quorum_members", "Healthy voting members that the cluster needs; 0 for one that has not formed, or does not run."),
		healthy:       to.gauge("cluster_healthy_members", "Members healthy at the last check, learners included."),
		updated:       to.gauge("cluster_updated_members", "Members whose pod is made from what Git says: how far a rollout is."),
		rollStarted:   to.gauge("cluster_roll_started_timestamp_seconds", "When the rollout under way began, as Unix time; there only during one."),
		certificate:   to.gauge("certificate_expiry_timestamp_seconds", "When the first certificate of the cluster expires, as Unix time."),
		failures:      to.counter("pass_failures_total", "Passes that ended with an error."),
		failing:       to.gauge("pass_consecutive_failures", "Passes that have ended with an error since the last good one."),
	}
}

// observed sets the gauges that follow from one pass, in which the members were as given,
// and their databases as measured.
func (m *Metrics) observed(v *observe.View, p decision.Plan, members []schema.MemberStatus, databases schema.Measured, now time.Time) {
	m.begin(v.Cluster)
	m.drift.observed(v)
	m.members.observed(v, members, databases)
	m.clusters.held(v.Cluster, p.Hold, now)
	m.clusters.counted(v, p, now)
	if b := v.Record; b != nil && b.Backup != nil {
		m.Backups.backup.WithLabelValues(of(v.Cluster, "")...).Set(float64(b.Backup.TakenAt.Unix()))
		m.Backups.size.WithLabelValues(of(v.Cluster, "")...).Set(float64(b.Backup.Size))
	}
}

// begin makes the series of a cluster, with 0 for what can be counted, and sets what
// follows from Git alone. For most passes Git says nothing new, and it does nothing.
func (m *Metrics) begin(c desired.Cluster) {
	next := intentOf(c)
	last := m.clusters.intents.Put(c.Key(), next)
	if last == next {
		return
	}
	m.actions.begin(c)
	m.drift.begin(c)
	m.clusters.begin(c, last.version, next)
}

func intentOf(c desired.Cluster) intent {
	i := intent{version: c.Spec.Version, mode: cmp.Or(c.Spec.Mode, schema.ModeEnforce), members: c.Spec.Replicas}
	if asleep(c) {
		i.members = 0
	}
	return i
}

// begin makes the series of a whole cluster. One of cluster_info is kept for each: that
// of the version before goes.
func (m *clusterMetrics) begin(c desired.Cluster, before string, i intent) {
	m.failures.Add(0, of(c)...)
	m.failing.Add(0, of(c)...)
	for _, kind := range holdKinds() {
		m.holding.Add(0, of(c, string(kind))...)
	}
	if before != "" && before != i.version {
		m.info.Delete(of(c, before)...)
	}
	m.info.Set(1, of(c, i.version)...)
	for _, mode := range []schema.Mode{schema.ModeEnforce, schema.ModeObserve} {
		m.mode.Set(gaugeOf(i.mode == mode), of(c, string(mode))...)
	}
	m.supported.Set(gaugeOf(!ended(i.version)), of(c)...)
	m.desired.Set(float64(i.members), of(c)...)
}

// asleep reports whether Git wants no member to run.
func asleep(c desired.Cluster) bool {
	return c.Spec.State == schema.StateHibernated || c.Spec.State == schema.StateDeleted
}

// ended reports whether the etcd project maintains the release no more.
func ended(version string) bool {
	_, passed := release.EndOfLife(state.Minor(version))
	return passed
}

// held sets which hold there is, and since when.
func (m *clusterMetrics) held(c desired.Cluster, h *decision.Hold, now time.Time) {
	var kind decision.HoldKind
	if h != nil {
		kind = h.Kind
	}
	last := m.holds.Get(c.Key())
	if last.kind != "" && last.kind != kind {
		m.holding.Set(0, of(c, string(last.kind))...)
		m.holdSince.Delete(of(c, string(last.kind))...)
	}
	if h == nil {
		m.holds.Forget(c.Key())
		return
	}
	m.holding.Set(1, of(c, string(kind))...)
	next := heldSince{kind, now}
	if last.kind == kind {
		next.since = last.since
	}
	// What is awaited may be known to last for longer than this process runs.
	if !h.Since.IsZero() && h.Since.Before(next.since) {
		next.since = h.Since
	}
	m.holds.Put(c.Key(), next)
	m.holdSince.Set(float64(next.since.Unix()), of(c, string(kind))...)
}

// counted sets what is counted, where another number came out than in the last pass.
func (m *clusterMetrics) counted(v *observe.View, p decision.Plan, now time.Time) {
	labels := of(v.Cluster)
	m.rolling(v, labels, now)
	if rec := v.Observed.Record; v.Expiry.IsZero() || rec != nil && rec.Deleted {
		m.certificate.Delete(labels...) // it has none that a member shows
	} else {
		m.certificate.Set(float64(v.Expiry.Unix()), labels...)
	}
	next := countsOf(v, p)
	if last := m.counts.Put(v.Cluster.Key(), next); last == next {
		return
	}
	m.steps.Set(float64(next.steps), labels...)
	m.healthy.Set(float64(next.healthy), labels...)
	m.healthyVoters.Set(float64(next.healthyVoters), labels...)
	m.voters.Set(float64(next.voters), labels...)
	m.quorum.Set(float64(next.quorum), labels...)
	m.updated.Set(float64(next.upToDate), labels...)
}

func countsOf(v *observe.View, p decision.Plan) counts {
	round := v.Observed.Round()
	c := counts{known: true, steps: len(p.Steps), healthy: countHealthy(round, true), healthyVoters: countHealthy(round, false), voters: countVoters(v)}
	if c.voters > 0 {
		c.quorum = state.Quorum(c.voters)
	}
	c.upToDate = upToDate(v)
	return c
}

// upToDate counts the pods that are made from what Git says.
func upToDate(v *observe.View) (n int) {
	for _, p := range v.Observed.Pods {
		if p.Template == v.Desired.Template {
			n++
		}
	}
	return n
}

// countHealthy counts the members that answered, with learners or without.
func countHealthy(r *state.Round, learners bool) (n int) {
	if r == nil {
		return 0
	}
	for _, m := range r.Members {
		if m.Problem == "" && (learners || !m.Learner) {
			n++
		}
	}
	return n
}

// countVoters counts by the member list, or by the record where there is no list.
func countVoters(v *observe.View) (n int) {
	rec, round := v.Observed.Record, v.Observed.Round()
	switch {
	case rec == nil || rec.ClusterID == "" || rec.Hibernated || rec.Deleted || asleep(v.Cluster):
		return 0
	case round == nil || round.Problem != "":
		return len(rec.Members)
	}
	for _, m := range round.Members {
		if !m.Learner {
			n++
		}
	}
	return n
}

// rolling sets since when there is a rollout, while there is one.
func (m *clusterMetrics) rolling(v *observe.View, labels []string, now time.Time) {
	key, last := v.Cluster.Key(), m.rolls.Get(v.Cluster.Key())
	if !rolls(v) {
		if !last.IsZero() {
			m.rolls.Forget(key)
			m.rollStarted.Delete(labels...)
		}
		return
	}
	// After a restart of quorate the first restarted member tells since when.
	first := now
	for _, p := range v.Observed.Pods {
		if p.Template == v.Desired.Template && !p.Created.IsZero() && p.Created.Before(first) {
			first = p.Created
		}
	}
	if !last.IsZero() && last.Before(first) {
		first = last
	}
	m.rolls.Put(key, first)
	m.rollStarted.Set(float64(first.Unix()), labels...)
}

// rolls reports whether members are to be restarted onto what Git says.
func rolls(v *observe.View) bool {
	o := v.Observed
	if o.Set == nil || o.Record == nil || o.Record.ClusterID == "" || asleep(v.Cluster) || v.Desired.Template == "" {
		return false
	}
	return o.Set.Template != v.Desired.Template || slices.ContainsFunc(o.Pods, func(p state.Pod) bool { return p.Template != v.Desired.Template })
}

// failed counts a pass that ended with an error.
func (m *Metrics) failed(c desired.Cluster) {
	m.clusters.failures.Add(1, of(c)...)
	m.clusters.failing.Add(1, of(c)...)
}

// succeeded ends a row of failures.
func (m *Metrics) succeeded(c desired.Cluster) { m.clusters.failing.Set(0, of(c)...) }

func (m *clusterMetrics) forget(c desired.Cluster) {
	m.intents.Forget(c.Key())
	m.counts.Forget(c.Key())
	m.holds.Forget(c.Key())
	m.rolls.Forget(c.Key())
}
