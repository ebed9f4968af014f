// Package outlook plays through what an action or a wait leads to, for a forecast: it
// changes a copy of a situation as if everything went well. It is pure.
package outlook

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Clone copies what a forecast changes.
func Clone(s *situation.Situation) *situation.Situation {
	c := *s
	c.Observed.Objects = slices.Clone(s.Observed.Objects)
	c.Observed.Pods = slices.Clone(s.Observed.Pods)
	c.Observed.Rounds = slices.Clone(s.Observed.Rounds)
	c.Observed.Volumes = slices.Clone(s.Observed.Volumes)
	if s.Observed.Record != nil {
		record := *s.Observed.Record
		c.Observed.Record = &record
	}
	if s.Observed.Set != nil {
		set := *s.Observed.Set
		c.Observed.Set = &set
	}
	if s.Observed.Certificates.Rotation != nil {
		rotation := *s.Observed.Certificates.Rotation
		rotation.Trusts, rotation.Leaves = maps.Clone(rotation.Trusts), slices.Clone(rotation.Leaves)
		c.Observed.Certificates.Rotation = &rotation
	}
	if s.Observed.Certificates.Issuers != nil {
		issuing := *s.Observed.Certificates.Issuers
		c.Observed.Certificates.Issuers = &issuing
	}
	return &c
}

// SwitchIssuer has the template that is next show the certificates of its issuer, and trust what it
// mounts. Of the issuer from before nothing is asked any more but what is left of it.
func SwitchIssuer(s *situation.Situation, next state.Transport) {
	c := &s.Observed.Certificates
	i := c.Issuers
	if i == nil {
		return
	}
	i.Mounted, i.Mixed, i.Halfway = s.Desired.Trust, i.Both != "" && s.Desired.Trust == i.Both, false
	if next.Own == s.Observed.Transport.Own || next.Also != "" || s.Observed.Transport.Also != "" {
		return
	}
	if next.Own != schema.TLSSecrets {
		c.Trust, c.Rotation = state.Trust{}, &state.Rotation{
			Old: i.Alone, Both: i.Alone, New: i.Alone, Trusts: map[string]time.Time{},
			Leaves: []state.IssuedLeaf{{By: state.ByBoth, Bundle: state.BundleOther}},
		}
		return
	}
	c.Rotation, c.Trust = nil, state.Trust{Wanted: i.Alone, Kept: slices.Clone(i.Made), Mounted: i.Mounted, Running: []string{i.Mounted}}
	i.Left = append(slices.Clone(i.Left), "(what quorate has issued)")
}

// Retemplate has the members' template trust and listen to what members are to by now.
func Retemplate(s *situation.Situation) {
	retrust(s)
	a := transport.Of(s.Git, s.Observed, s.Now)
	if a.Template != s.Observed.Transport && s.Observed.Transport.Own != "" {
		s.Git.Template = strings.TrimRight(fmt.Sprintf("(listening to %s %s", a.Template.Own, a.Template.Also), " ") + ")"
	}
}

// retrust has the members' template mount what members are to trust by now. What it would be is
// not known before.
func retrust(s *situation.Situation) {
	if a := issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now); a.Changing {
		if a.Trust != s.Git.Trust {
			s.Git.Trust, s.Git.Template = a.Trust, "(trusting "+a.Trust+")"
		}
		return
	}
	if s.Observed.Certificates.Rotation == nil {
		return // another program issues them
	}
	if a := trust.Of(s.Git.Spec.TLS, s.Observed, s.Now); a.Trust != s.Git.Trust {
		s.Git.Trust, s.Git.Template = a.Trust, "(trusting "+a.Trust+")"
	}
}

// Prove has the time come until which a change of the mode or of the authorities waits, and every
// member show what is asked of it.
func Prove(s *situation.Situation) {
	if t := transport.Of(s.Git, s.Observed, s.Now); t.Phase == transport.Overlap {
		s.Now = t.Until
		return
	}
	if i := issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now); i.Changing {
		if i.Until.After(s.Now) {
			s.Now = i.Until
		}
		return
	}
	a, r := trust.Of(s.Git.Spec.TLS, s.Observed, s.Now), s.Observed.Certificates.Rotation
	if a.Until.After(s.Now) {
		s.Now = a.Until
	}
	by := state.ByPresent
	if a.Phase == trust.Settle {
		by = a.Keep
	}
	r.Shown = nil
	for _, p := range s.Observed.Pods {
		for _, port := range []string{"client", "peer"} {
			r.Shown = append(r.Shown, state.Handshake{Member: p.Name, Port: port, By: by})
		}
	}
}

// ReplacePod lets the StatefulSet recreate the pod of an ordinal.
func ReplacePod(s *situation.Situation, ordinal int32) {
	for i := range s.Observed.Pods {
		if s.Observed.Pods[i].Ordinal == ordinal {
			s.Observed.Pods[i] = recreated(s, ordinal)
		}
	}
}

// Unlist takes a member out of the rounds.
func Unlist(s *situation.Situation, id string) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Members = slices.DeleteFunc(slices.Clone(s.Observed.Rounds[i].Members), func(m state.Member) bool { return m.ID == id })
	}
}

// recreated is the pod that the StatefulSet makes for an ordinal now.
func recreated(s *situation.Situation, ordinal int32) state.Pod {
	p := state.Pod{
		Name: naming.Member(s.Desired.Name, ordinal), Ordinal: ordinal, Created: s.Now, ReadySince: s.Now, RunsSince: s.Now,
		Template: s.Observed.Set.Template, Version: s.Observed.Set.Version,
	}
	if ordinal < s.Observed.Set.Partition {
		p.Template, p.Version = s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion
	}
	return p
}

// LeadBy makes a member the leader of the last round.
func LeadBy(s *situation.Situation, id string) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Members = slices.Clone(s.Observed.Rounds[i].Members)
		for j := range s.Observed.Rounds[i].Members {
			s.Observed.Rounds[i].Members[j].Leader = id
		}
	}
}

// Settle lets the StatefulSet finish what it has begun, and makes every pod
// ready and every member healthy, in two rounds, as they are when nothing goes
// wrong. A pod that cannot start with a template that was given up does not get
// better.
func Settle(s *situation.Situation) {
	s.Observed.Volumes = slices.Clone(s.Observed.Volumes)
	for i := range s.Observed.Volumes {
		s.Observed.Volumes[i].Capacity = s.Observed.Volumes[i].Size
	}
	if s.Observed.Set != nil && s.Observed.Set.Terminating {
		s.Observed.Set = nil
	}
	if s.Observed.Set == nil {
		return
	}
	s.Observed.Set.Settled = true
	replace(s)
	for i := range s.Observed.Pods {
		p := &s.Observed.Pods[i]
		kept := p.Template == s.Desired.Template || (s.Formed() && p.Template == s.Observed.Set.CurrentTemplate)
		if p.Trouble == "" || kept {
			p.Ready, p.Ran, p.Terminating, p.Trouble = true, true, false, ""
		}
	}
	if !slices.ContainsFunc(s.Observed.Pods, s.Observed.Set.Replaces) {
		s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = s.Observed.Set.Template, s.Observed.Set.Version
	}
	r := healthyRound(s)
	deep := r
	deep.At, deep.Deep = s.Now.Add(-state.Between), true
	s.Observed.Rounds, s.Observed.PlacesUnread = []state.Round{deep, r}, false
}

// replace creates the pods that are missing, and replaces the formed cluster's
// outdated ones at or above the partition.
func replace(s *situation.Situation) {
	for ordinal := range s.Observed.Set.Replicas {
		i := slices.IndexFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Ordinal == ordinal })
		switch {
		case i < 0:
			s.Observed.Pods = append(s.Observed.Pods, recreated(s, ordinal))
			provide(s, ordinal)
		case s.Formed() && ordinal >= s.Observed.Set.Partition && s.Observed.Set.Replaces(s.Observed.Pods[i]):
			s.Observed.Pods[i] = recreated(s, ordinal)
		}
	}
	slices.SortFunc(s.Observed.Pods, func(a, b state.Pod) int { return cmp.Compare(b.Ordinal, a.Ordinal) })
}

// provide makes the volume of a new pod, where there is none.
func provide(s *situation.Situation, ordinal int32) {
	name := naming.Member(s.Desired.Name, ordinal)
	if s.Observed.Volume(name) != nil {
		return
	}
	s.Observed.Volumes = append(s.Observed.Volumes, state.Volume{
		Claim: s.Claim(name), UID: "(new)", Member: name, Ordinal: ordinal, Bound: true,
		Size: s.WantedSize(), Capacity: s.WantedSize(), Class: s.Observed.Set.ClaimClass,
	})
}

// agreedOn is the cluster version when all is well: it follows the oldest member
// up, and goes down in a downgrade only.
func agreedOn(s *situation.Situation) string {
	var minors []string
	for _, p := range s.Observed.Pods {
		minors = append(minors, state.Minor(p.Version))
	}
	version := cmp.Or(s.ClusterVersion(), s.Desired.Spec.Version)
	if !slices.ContainsFunc(minors, func(m string) bool { return !state.Older(state.Minor(version), m) }) && len(minors) > 0 {
		oldest := slices.MinFunc(minors, func(a, b string) int {
			if state.Older(a, b) {
				return -1
			}
			return 1
		})
		return oldest + ".0"
	}
	return version
}

// healthyRound is what the members report when all is well.
func healthyRound(s *situation.Situation) state.Round {
	r := state.Round{At: s.Now, ClusterID: "(new)", ClusterVersion: agreedOn(s)}
	if s.Formed() {
		r.ClusterID = s.Observed.Record.ClusterID
	}
	if before := s.Observed.Round(); before != nil {
		r.Alarms = before.Alarms
	}
	leader := ""
	if l := s.Observed.Round().Leader(); l != nil {
		leader = l.ID
	}
	for _, p := range s.Observed.Pods {
		if m, ok := healthyMember(s, p); ok {
			m.Keep(s.Observed.Round().Member(p.Name))
			if p.Template == s.Desired.Template && m.Quota > 0 {
				m.Quota = s.WantedQuota()
			}
			r.Members = append(r.Members, m)
		}
	}
	if s.Formed() && s.Observed.Record.Joining != nil && s.Observed.Pod(s.Observed.Record.Joining.Member) == nil && s.Observed.Record.Joining.ID != "" {
		r.Members = append(r.Members, state.Member{ID: s.Observed.Record.Joining.ID, Learner: true, Term: 1})
	}
	if leader == "" && len(r.Members) > 0 {
		leader = r.Members[0].ID
	}
	for i := range r.Members {
		r.Members[i].Leader = leader
	}
	descent(s, &r)
	return r
}

// healthyMember is the member of a pod when all is well; false for a pod that
// belongs to none.
func healthyMember(s *situation.Situation, p state.Pod) (state.Member, bool) {
	m := state.Member{ID: "(" + p.Name + ")", Name: p.Name, Version: p.Version, Term: 1}
	if !s.Formed() {
		return m, true
	}
	r := s.Observed.Record
	if j := r.Joining; j != nil && j.Member == p.Name {
		m.ID, m.Learner = j.ID, !j.Promoting
		return m, j.ID != ""
	}
	if l := r.Leaving; l != nil && l.Member == p.Name && s.Observed.Round().ByID(l.ID) == nil {
		return m, false
	}
	if g := r.Recovering; g != nil {
		m.Revision = g.First()
	}
	m.ID = r.Members[p.Name]
	return m, m.ID != ""
}

// EachMember changes the members in every round.
func EachMember(s *situation.Situation, change func(*state.Member)) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Members = slices.Clone(s.Observed.Rounds[i].Members)
		for j := range s.Observed.Rounds[i].Members {
			change(&s.Observed.Rounds[i].Members[j])
		}
	}
}

// descent keeps, in a forecast, a downgrade that is not over: it ends on its own
// when every member runs the minor that it goes to.
func descent(s *situation.Situation, r *state.Round) {
	last := s.Observed.Round()
	if last == nil || !last.Downgrading {
		return
	}
	target := last.DowngradeTarget
	if !slices.ContainsFunc(r.Members, func(m state.Member) bool { return state.Minor(m.Version) != target }) {
		return
	}
	r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, target, target+".0"
	for i := range r.Members {
		r.Members[i].StorageVersion = target + ".0"
	}
}

// RecoverOn lets what a recovery waits for come true, for a forecast.
func RecoverOn(s *situation.Situation) {
	if s.Observed.Record == nil || s.Observed.Record.Recovering == nil || s.Observed.Set == nil {
		return
	}
	s.Observed.Pods = slices.DeleteFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Ordinal >= s.Observed.Set.Replicas })
	if s.Observed.Restore.State == state.RestoreRunning {
		s.Observed.Restore.State = state.RestoreDone
	}
}
