package situation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// Outage is a cluster that no quorum serves, although the data of a quorum is whole: what
// keeps its members from running is their template, or Kubernetes.
type Outage struct {
	// Down are the members that do not run and whose volume is whole, highest ordinal
	// first. There is at least one.
	Down []Down
	// Quorum is how many members it takes.
	Quorum int
}

// Down is a member that does not run.
type Down struct {
	Member string
	// Pod is its pod; nil where it has none.
	Pod *state.Pod
	// Template is that of its pod, or the one that it gets when it is created.
	Template string
	// Why it does not run, and since when, as far as that is known.
	Why   string
	Since time.Time
}

// OutageOf returns nil where a quorum may serve or come back on its own, and where none can
// whatever Git says.
//
//	a member                                       counts as
//	ready, or follows a leader, or shuts down      may serve
//	answers, and follows nobody                    waits for a quorum
//	runs without trouble, and answers nobody       waits for a quorum: etcd serves when it has found a leader
//	only just starts, or has just stopped          may serve
//	stops, and its etcd never ran                  down, where its volume is whole
//	has no pod, or one that does not run           down, where its volume is whole
//	damaged, without its node or volume            lost
func OutageOf(s *Situation) *Outage {
	if r := s.Observed.Round(); r == nil || r.Problem == "" {
		return nil
	}
	voters, up := s.Remnants(), 0
	o := &Outage{Quorum: state.Quorum(len(voters))}
	for _, m := range voters {
		switch p := s.Observed.Pod(m.Name); {
		case m.Member == nil && p != nil && goes(*p) && wholeAndDown(s, m.Name):
			o.Down = append(o.Down, downOf(s, m.Name))
		case m.Member != nil, p != nil && (p.Ready || p.Terminating || Runs(*p) || passing(s, *p)):
			up++
		case wholeAndDown(s, m.Name):
			o.Down = append(o.Down, downOf(s, m.Name))
		}
	}
	if up >= o.Quorum || up+len(o.Down) < o.Quorum {
		return nil
	}
	slices.SortFunc(o.Down, func(a, b Down) int { return int(naming.Ordinal(b.Member) - naming.Ordinal(a.Member)) })
	return o
}

// Runs reports whether the etcd of a pod runs, and nothing is wrong with it as far as its
// kubelet knows.
func Runs(p state.Pod) bool { return !p.RunsSince.IsZero() && p.Trouble == "" && p.Damage == "" }

// passing reports whether a pod that does not run may do so before long: a node that has
// restarted starts its containers again. What Kubernetes itself keeps from running does not.
func passing(s *Situation, p state.Pod) bool {
	grace := ComebackTime
	if p.Barred {
		grace = TroubleGrace
	}
	return s.Now.Sub(downSince(p)) < grace
}

// goes reports whether a pod stops in which etcd never ran, so that it serves nobody until it is gone.
func goes(p state.Pod) bool { return p.Terminating && !p.Ran }

// wholeAndDown reports whether a member does not run and its data is there, as far as
// Kubernetes and the guard in its pod know.
func wholeAndDown(s *Situation, member string) bool {
	p, v := s.Observed.Pod(member), s.Observed.Volume(member)
	if v == nil || !v.Bound || v.Terminating {
		return false
	}
	return p == nil || ((p.Trouble != "" || goes(*p)) && (p.Damage == "" || Unproven(s, *p)) && p.Found == "" && !p.NodeGone)
}

// downOf describes a member that does not run.
func downOf(s *Situation, member string) Down {
	if p := s.Observed.Pod(member); p != nil {
		return Down{Member: member, Pod: p, Template: p.Template, Why: p.Trouble, Since: downSince(*p)}
	}
	d := Down{Member: member, Template: s.TemplateFor(naming.Ordinal(member)), Why: "it has no pod", Since: s.Observed.Set.StatusAt}
	if m := MissingOf(s); slices.Contains(m.Refused, member) {
		d.Why = "its pod cannot be created: " + m.Refusal.Why
	}
	return d
}

// downSince is since when a pod has not run, as far as that is known.
func downSince(p state.Pod) time.Time {
	if p.DownSince.IsZero() {
		return p.Created
	}
	return p.DownSince
}

// Barred reports whether etcd has ended on its own account in no member, so that nothing on a
// volume can be the cause.
func (o *Outage) Barred() bool {
	return !slices.ContainsFunc(o.Down, func(d Down) bool { return d.Pod != nil && !d.Pod.Barred })
}

// Causes lists why members are down, those with one cause together.
func (o *Outage) Causes() string {
	var order []string
	of := map[string][]string{}
	for _, d := range o.Down {
		if of[d.Why] == nil {
			order = append(order, d.Why)
		}
		of[d.Why] = append(of[d.Why], d.Member)
	}
	var texts []string
	for _, why := range order {
		texts = append(texts, fmt.Sprintf("%s (%s)", strings.Join(of[why], ", "), why))
	}
	return strings.Join(texts, "; ")
}
