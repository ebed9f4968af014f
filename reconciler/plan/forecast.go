package plan

import (
	"cmp"
	"slices"
)

// horizon bounds a forecast: more steps than the longest roll of the largest
// cluster takes.
const horizon = 100

// forecast lists the steps that follow one step, if each goes well.
func forecast(rules []rule, s *situation, step Step) []Step {
	next := s.after(step.Action)
	var steps []Step
	for range horizon {
		v := first(rules, next)
		switch {
		case v.step != nil:
			steps = append(steps, next.judged(*v.step))
			next = next.after(v.step.Action)
		case v.hold != nil && passes(*v.hold):
			next = next.awaited(*v.hold)
		default:
			return steps
		}
	}
	return steps
}

// forecastBehind lists the steps that follow a hold that ends by itself.
func forecastBehind(rules []rule, s *situation, h Hold) []Step {
	if !passes(h) {
		return nil
	}
	next := s.awaited(h)
	v := first(rules, next)
	for n := 0; v.hold != nil && passes(*v.hold) && n < horizon; n++ {
		next = next.awaited(*v.hold)
		v = first(rules, next)
	}
	if v.step == nil {
		return nil
	}
	return append([]Step{next.judged(*v.step)}, forecast(rules, next, *v.step)...)
}

// passes says whether a hold ends by itself.
func passes(h Hold) bool { return h.Kind == HoldWaiting || h.Kind == HoldConfirm }

// clone copies what a forecast changes.
func (s *situation) clone() *situation {
	c := *s
	c.o.Objects = slices.Clone(s.o.Objects)
	c.o.Pods = slices.Clone(s.o.Pods)
	c.o.Rounds = slices.Clone(s.o.Rounds)
	c.o.Volumes = slices.Clone(s.o.Volumes)
	if s.o.Record != nil {
		record := *s.o.Record
		c.o.Record = &record
	}
	if s.o.Set != nil {
		set := *s.o.Set
		c.o.Set = &set
	}
	return &c
}

// awaited is the situation in which what a hold waits for has come true.
func (s *situation) awaited(h Hold) *situation {
	c := s.clone()
	c.now = c.now.Add(max(h.Again, Between))
	// A hold asks to be looked at now and then; the window may be weeks away.
	if opens, _ := s.opening(); h.Rule == "window" && opens.After(c.now) {
		c.now = opens
	}
	c.recoverOn()
	if h.Rule == "fleet" {
		c.o.Fleet = Fleet{}
	}
	c.settle()
	c.aim()
	return c
}

// after is the situation after an action that went well.
func (s *situation) after(a Action) *situation {
	c := s.clone()
	a.after(c)
	c.aim()
	return c
}

// replacePod lets the StatefulSet make the pod of an ordinal anew.
func (s *situation) replacePod(ordinal int32) {
	for i := range s.o.Pods {
		if s.o.Pods[i].Ordinal == ordinal {
			s.o.Pods[i] = s.reborn(ordinal)
		}
	}
}

// unlist takes a member out of the rounds.
func (s *situation) unlist(id string) {
	for i := range s.o.Rounds {
		s.o.Rounds[i].Members = slices.DeleteFunc(slices.Clone(s.o.Rounds[i].Members), func(m Member) bool { return m.ID == id })
	}
}

// reborn is the pod that the StatefulSet makes for an ordinal now.
func (s *situation) reborn(ordinal int32) Pod {
	p := Pod{
		Name: podName(s.d.Name, ordinal), Ordinal: ordinal, Created: s.now, ReadySince: s.now,
		Template: s.o.Set.Template, Version: s.o.Set.Version,
	}
	if ordinal < s.o.Set.Partition {
		p.Template, p.Version = s.o.Set.CurrentTemplate, s.o.Set.CurrentVersion
	}
	return p
}

// lead makes a member the leader of the last round.
func (s *situation) lead(id string) {
	for i := range s.o.Rounds {
		s.o.Rounds[i].Members = slices.Clone(s.o.Rounds[i].Members)
		for j := range s.o.Rounds[i].Members {
			s.o.Rounds[i].Members[j].Leader = id
		}
	}
}

// settle lets the StatefulSet finish what it has begun, and makes every pod
// ready and every member healthy, in two rounds, as they are when nothing goes
// wrong. A pod that cannot start with a template that was given up does not get
// better.
func (s *situation) settle() {
	s.o.Volumes = slices.Clone(s.o.Volumes)
	for i := range s.o.Volumes {
		s.o.Volumes[i].Capacity = s.o.Volumes[i].Size
	}
	if s.o.Set != nil && s.o.Set.Terminating {
		s.o.Set = nil
	}
	if s.o.Set == nil {
		return
	}
	s.o.Set.Settled = true
	s.replace()
	for i := range s.o.Pods {
		p := &s.o.Pods[i]
		kept := p.Template == s.d.Template || (s.formed() && p.Template == s.o.Set.CurrentTemplate)
		if p.Trouble == "" || kept {
			p.Ready, p.Ran, p.Terminating, p.Trouble = true, true, false, ""
		}
	}
	if !slices.ContainsFunc(s.o.Pods, func(p Pod) bool { return p.Template != s.o.Set.Template }) {
		s.o.Set.CurrentTemplate, s.o.Set.CurrentVersion = s.o.Set.Template, s.o.Set.Version
	}
	r := s.healthyRound()
	deep := r
	deep.At, deep.Deep = s.now.Add(-Between), true
	s.o.Rounds = []Round{deep, r}
}

// replace creates the pods that are missing, and replaces the formed cluster's
// outdated ones at or above the partition.
func (s *situation) replace() {
	for ordinal := range s.o.Set.Replicas {
		i := slices.IndexFunc(s.o.Pods, func(p Pod) bool { return p.Ordinal == ordinal })
		switch {
		case i < 0:
			s.o.Pods = append(s.o.Pods, s.reborn(ordinal))
			s.provide(ordinal)
		case s.formed() && ordinal >= s.o.Set.Partition && s.o.Pods[i].Template != s.o.Set.Template:
			s.o.Pods[i] = s.reborn(ordinal)
		}
	}
	slices.SortFunc(s.o.Pods, func(a, b Pod) int { return cmp.Compare(b.Ordinal, a.Ordinal) })
}

// provide makes the volume of a new pod, where there is none.
func (s *situation) provide(ordinal int32) {
	name := podName(s.d.Name, ordinal)
	if s.o.volume(name) != nil {
		return
	}
	s.o.Volumes = append(s.o.Volumes, Volume{
		Claim: s.claim(name), UID: "(new)", Member: name, Ordinal: ordinal, Bound: true,
		Size: s.wantedSize(), Capacity: s.wantedSize(), Class: s.o.Set.ClaimClass,
	})
}

// agreedOn is the cluster version when all is well: it follows the oldest member
// up, and goes down in a downgrade only.
func (s *situation) agreedOn() string {
	var lines []string
	for _, p := range s.o.Pods {
		lines = append(lines, line(p.Version))
	}
	version := cmp.Or(s.clusterVersion(), s.d.Spec.Version)
	if !slices.ContainsFunc(lines, func(l string) bool { return !older(line(version), l) }) && len(lines) > 0 {
		oldest := slices.MinFunc(lines, func(a, b string) int {
			if older(a, b) {
				return -1
			}
			return 1
		})
		return oldest + ".0"
	}
	return version
}

// healthyRound is what the members say when all is well.
func (s *situation) healthyRound() Round {
	r := Round{At: s.now, ClusterID: "(new)", ClusterVersion: s.agreedOn()}
	if s.formed() {
		r.ClusterID = s.o.Record.ClusterID
	}
	if before := s.o.round(); before != nil {
		r.Alarms = before.Alarms
	}
	leader := ""
	if l := s.o.round().leader(); l != nil {
		leader = l.ID
	}
	for _, p := range s.o.Pods {
		if m, ok := s.healthyMember(p); ok {
			m.keep(s.o.round().member(p.Name))
			if p.Template == s.d.Template && m.Quota > 0 {
				m.Quota = s.wantedQuota()
			}
			r.Members = append(r.Members, m)
		}
	}
	if s.formed() && s.o.Record.Joining != nil && s.o.pod(s.o.Record.Joining.Member) == nil && s.o.Record.Joining.ID != "" {
		r.Members = append(r.Members, Member{ID: s.o.Record.Joining.ID, Learner: true, Term: 1})
	}
	if leader == "" && len(r.Members) > 0 {
		leader = r.Members[0].ID
	}
	for i := range r.Members {
		r.Members[i].Leader = leader
	}
	s.descent(&r)
	return r
}

// healthyMember is the member of a pod when all is well; false for a pod that
// belongs to none.
func (s *situation) healthyMember(p Pod) (Member, bool) {
	m := Member{ID: "(" + p.Name + ")", Name: p.Name, Version: p.Version, Term: 1}
	if !s.formed() {
		return m, true
	}
	r := s.o.Record
	if j := r.Joining; j != nil && j.Member == p.Name {
		m.ID, m.Learner = j.ID, !j.Promoting
		return m, j.ID != ""
	}
	if l := r.Leaving; l != nil && l.Member == p.Name && s.o.round().byID(l.ID) == nil {
		return m, false
	}
	if g := r.Recovering; g != nil {
		m.Revision = g.Revision + RecoveryBump
	}
	m.ID = r.Members[p.Name]
	return m, m.ID != ""
}
