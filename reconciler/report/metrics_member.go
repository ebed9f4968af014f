package report

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/report/series"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// memberMetrics are the gauges of each member, by its name.
type memberMetrics struct {
	info, size, inUse, quota, alarm *series.Family

	// known is what the series show of each cluster.
	known memo.Map[knownMembers]
}

// knownMembers are those that have series, and whether one of them had an alarm.
type knownMembers struct {
	labels  map[string]memberLabels
	alarmed bool
}

// memberLabels are the labels of member_info.
type memberLabels struct{ version, state, role string }

const (
	roleLeader   = "leader"
	roleFollower = "follower"
	roleLearner  = "learner"
	unknown      = "unknown"
	// other stands for what would be one more value of a bounded label.
	other = "other"
)

// defaultQuota is etcd's own, in bytes: server/storage/quota.go.
const defaultQuota = 2 << 30

func newMemberMetrics(to registrar) memberMetrics {
	return memberMetrics{
		info:  to.gauge("member_info", "1 for each member, with the version that it reports, its state (Healthy, Unhealthy, Unknown) and its role (leader, follower, learner, unknown).", "member", "version", "state", "role"),
		size:  to.gauge("member_database_bytes", "Size of the member's database file; it is full at its quota.", "member"),
		inUse: to.gauge("member_database_in_use_bytes", "What the database needs of its file: the rest is given back by a defragmentation.", "member"),
		quota: to.gauge("member_quota_bytes", "Size of the database at which the member refuses writes.", "member"),
		alarm: to.gauge("member_alarm", "1 while etcd has the alarm on the member; the member is unknown where etcd does not blame one, and there only while it has an alarm, as is an alarm that this quorate does not know.", "member", "alarm"),
	}
}

// observed sets the series of the members that there are, and drops those of others.
func (m *memberMetrics) observed(v *observe.View, members []schema.MemberStatus, databases schema.Measured) {
	next := map[string]memberLabels{}
	if !asleep(v.Cluster) {
		for _, s := range members {
			if s.Name != "" { // one that has just been added has none before it starts
				next[s.Name] = labelsOf(s)
			}
		}
	}
	round := v.Observed.Round()
	alarmed := round != nil && len(round.Alarms) > 0
	last := m.known.Put(v.Cluster.Key(), knownMembers{next, alarmed})
	changed := !maps.Equal(last.labels, next)
	if changed {
		m.relabel(v.Cluster, last.labels, next)
	}
	for _, d := range databases.Members {
		if _, there := next[d.Name]; there {
			labels := of(v.Cluster, d.Name)
			m.size.Set(float64(d.Size), labels...)
			m.inUse.Set(float64(d.InUse), labels...)
			m.quota.Set(float64(d.Quota), labels...)
		}
	}
	if changed || alarmed || last.alarmed {
		m.alarms(v.Cluster, round, next)
	}
}

// relabel sets the series of member_info, and drops all of members that have left.
func (m *memberMetrics) relabel(c desired.Cluster, last, next map[string]memberLabels) {
	for name, labels := range last {
		if now, there := next[name]; !there {
			m.drop(c, name)
		} else if now != labels {
			m.info.Delete(of(c, name, labels.version, labels.state, labels.role)...)
		}
	}
	for name, labels := range next {
		m.info.Set(1, of(c, name, labels.version, labels.state, labels.role)...)
	}
}

func labelsOf(s schema.MemberStatus) memberLabels {
	l := memberLabels{s.Version, s.Health, unknown}
	switch {
	case s.Role == schema.RoleLearner:
		l.role = roleLearner
	case s.Leader:
		l.role = roleLeader
	case s.Role != "":
		l.role = roleFollower
	}
	return l
}

// quotaOf is the size at which the member refuses writes: what it says itself, from
// etcd 3.6 on, else what its pod was made with, else etcd's default.
func quotaOf(v *observe.View, member state.Member) int64 {
	if member.Quota > 0 {
		return member.Quota
	}
	if p := v.Observed.Pod(member.Name); p != nil && p.Quota > 0 {
		return p.Quota
	}
	return defaultQuota
}

// alarms sets each kind of alarm for each member.
func (m *memberMetrics) alarms(c desired.Cluster, r *state.Round, members map[string]memberLabels) {
	on := map[[2]string]bool{}
	if r != nil {
		for _, a := range r.Alarms {
			kind, name := a.Kind, unknown
			if !slices.Contains(alarmKinds(), kind) {
				kind = other
			}
			if member := r.ByID(a.MemberID); member != nil && members[member.Name] != (memberLabels{}) {
				name = member.Name
			}
			on[[2]string{name, kind}] = true
		}
	}
	// Of a member that is not known, or an alarm, there is a series only while there is one:
	// of 10,000 clusters they would be a tenth of all series, and none ever says anything.
	set := func(name string) {
		for _, kind := range append(alarmKinds(), other) {
			labels, is := of(c, name, kind), on[[2]string{name, kind}]
			if is || name != unknown && kind != other {
				m.alarm.Set(gaugeOf(is), labels...)
			} else {
				m.alarm.Delete(labels...)
			}
		}
	}
	if len(members) == 0 {
		m.drop(c, unknown)
		return
	}
	set(unknown)
	for name := range members {
		set(name)
	}
}

// alarmKinds are the values of the label alarm, besides other.
func alarmKinds() []string { return []string{state.NoSpace, state.Corrupt} }

// drop drops the series of a member that has left.
func (m *memberMetrics) drop(c desired.Cluster, name string) {
	for _, f := range []*series.Family{m.info, m.size, m.inUse, m.quota, m.alarm} {
		f.Delete(of(c, name)...)
	}
}

func (m *memberMetrics) forget(c desired.Cluster) { m.known.Forget(c.Key()) }
