// Package situation answers the questions about one cluster that several rules ask. It is
// pure, and decides nothing: what to do is for the rules of package plan to say.
package situation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// Situation is the input of the rules, with the questions that several of them
// ask answered in one place.
//
// Git is what Git says. Desired is the same with the version, the template and the members
// of the stop that is due: what the rules work towards. See Aim.
type Situation struct {
	Git       state.Desired
	Desired   state.Desired
	Waypoints []state.Waypoint
	// Observed has no time that lies ahead of Now by more than clocks differ: what takes
	// the place of those that do is said in package clock. Ahead are these.
	Observed state.Observed
	Ahead    []clock.Stamp
	Now      time.Time
	// tolerant ignores the alarm NOSPACE and full databases: so that what
	// frees space is kept from working by nothing but other troubles.
	tolerant bool
}

// Of is the situation of one cluster at one time.
func Of(d state.Desired, o state.Observed, now time.Time) *Situation {
	o, ahead := clock.Settle(o, now)
	o.Pods = slices.Clone(o.Pods)
	slices.SortFunc(o.Pods, func(a, b state.Pod) int { return cmp.Compare(b.Ordinal, a.Ordinal) })
	s := &Situation{Git: d, Desired: d, Observed: o, Ahead: ahead, Now: now}
	s.Aim()
	return s
}

// Formed reports whether the cluster has ever had a quorum.
func (s *Situation) Formed() bool { return s.Observed.Record.Formed() }

// Started reports whether the StatefulSet has the desired template.
func (s *Situation) Started() bool { return s.Observed.Set.Template == s.Desired.Template }

// Rolling reports whether a pod or the StatefulSet still has another template
// than the desired one. Members that are hibernated stay unchanged, unless a
// roll is half done.
func (s *Situation) Rolling() bool {
	if s.Observed.Set == nil || !s.Formed() || (s.Desired.Spec.State == schema.StateHibernated && !s.RollOpen()) {
		return false
	}
	return !s.Started() || slices.ContainsFunc(s.Observed.Pods, s.isOutdated)
}

// isOutdated reports whether the pod is a member's that still has another template, or one
// that admission has made something else of in the midst of a roll: the controller replaces
// it, and closes no roll before. At rest it stays as it is, above which the partition is.
func (s *Situation) isOutdated(p state.Pod) bool {
	return (p.Template != s.Desired.Template || p.Stale && halfway(s)) && s.IsMember(p.Name)
}

// halfway reports whether the StatefulSet has not closed its roll, or lets pods go.
func halfway(s *Situation) bool {
	set := s.Observed.Set
	return set.CurrentTemplate != set.Template || set.Partition < set.Replicas
}

// Outdated are the members' pods that still have another template, highest ordinal first.
func (s *Situation) Outdated() []state.Pod {
	var pods []state.Pod
	for _, p := range s.Observed.Pods {
		if s.isOutdated(p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// NextRestart is the pod that the roll restarts next: one that an abandoned roll
// left broken, else the one with the highest ordinal; nil when none is left.
func (s *Situation) NextRestart() *state.Pod {
	if v := s.BrokenByRoll(); v != nil {
		return v
	}
	if pods := s.Outdated(); len(pods) > 0 {
		return &pods[0]
	}
	return nil
}

// BrokenByRoll is the only unhealthy member that may be restarted, because its template
// is the reason that it is unhealthy: an earlier, abandoned roll broke it, so its
// template is neither the desired one nor the last whose roll ended; or etcd has
// never run in its pod, because there is no such image; or Git now wants other
// settings, see remedied. A pod that does not start for another reason, such as a
// lost volume, is not helped by another template; nor is one on a node that does not
// report, where it may run all the same. One that has only just been created is not
// broken: the next moment it may serve.
func (s *Situation) BrokenByRoll() *state.Pod {
	if s.Observed.Set.CurrentTemplate == "" {
		return nil // what the roll has broken is unknown, too
	}
	if s.GoesDown() {
		return nil // an older binary does not even start
	}
	var broken *state.Pod
	for _, p := range s.Outdated() {
		neverStarted := !p.Ran && p.Unpulled
		if p.NodeGone || p.Stale || s.healthyLately(p) || s.Starting(p) || (p.Template == s.Observed.Set.CurrentTemplate && !neverStarted && !s.remedied(p)) {
			continue
		}
		// One that never ran is broken beyond doubt; another may only be waiting
		// for a quorum.
		if broken == nil || (broken.Ran && !p.Ran) {
			broken = &p
		}
	}
	return broken
}

// remedied reports whether the roll may be the remedy of a member that does not run,
// such as a larger memory limit: its data is there, its version stays, it is the
// next one in the roll's order, and all the others are well. Restarting what is down
// causes no disruption.
func (s *Situation) remedied(p state.Pod) bool {
	if p.Trouble == "" || p.Ready || p.Terminating || p.Damage != "" || s.Versioned() || p.Name != s.Outdated()[0].Name {
		return false
	}
	return !slices.ContainsFunc(s.Observed.Pods, func(other state.Pod) bool {
		return other.Name != p.Name && s.IsMember(other.Name) && !s.HealthyNow(other)
	})
}

// MendedByRoll is the broken member that the roll under way fixes, or nil: the gate
// ignores it, and no other member is touched before it is well.
func (s *Situation) MendedByRoll() *state.Pod {
	if !s.Rolling() {
		return nil
	}
	return s.BrokenByRoll()
}

// HealthyNow reports whether the pod and its member were fine in the last round.
func (s *Situation) HealthyNow(p state.Pod) bool {
	m := s.Observed.Round().Member(p.Name)
	return s.up(p) && m != nil && m.Problem == ""
}

// up reports whether a pod keeps running, as far as Kubernetes knows. While the
// alarm CORRUPT stands, etcd calls no member ready, be it ever so well: then what
// it reports about itself must do.
func (s *Situation) up(p state.Pod) bool {
	r := s.Observed.Round()
	ready := p.Ready || (p.Trouble == "" && r != nil && r.Alarmed(state.Corrupt))
	return ready && !p.Terminating
}

// healthyLately reports whether the pod is ready and its member was fine in one of the
// rounds: one lost answer breaks no member, bad is seen twice like good.
func (s *Situation) healthyLately(p state.Pod) bool {
	if !p.Ready || p.Terminating {
		return false
	}
	for i := range s.Observed.Rounds {
		if m := s.Observed.Rounds[i].Member(p.Name); m != nil && m.Problem == "" {
			return true
		}
	}
	return len(s.Observed.Rounds) < 2
}

// GivingUp reports whether the desired template is the one that the last roll that
// ended left behind: the roll under way is given up.
func (s *Situation) GivingUp() bool {
	return s.Observed.Set.CurrentTemplate == s.Desired.Template
}

// Versions are the versions of the members, by what they report; a member that
// does not answer counts with its pod's version. One whose version is unknown
// is left out.
func (s *Situation) Versions() map[string]release.Version {
	reported := map[string]release.Version{}
	for _, p := range s.Observed.Pods {
		if !s.IsMember(p.Name) {
			continue
		}
		text := p.Version
		if m := s.Observed.Round().Member(p.Name); m != nil && m.Version != "" {
			text = m.Version
		}
		if v, err := release.Parse(text); err == nil {
			reported[p.Name] = v
		}
	}
	return reported
}

// ClusterVersion is what the members have agreed on, or "" when unknown.
func (s *Situation) ClusterVersion() string {
	if r := s.Observed.Round(); r != nil {
		return r.ClusterVersion
	}
	return ""
}

// WantedVersion is the desired version; validation has seen to it that it parses.
func (s *Situation) WantedVersion() release.Version {
	v, _ := release.Parse(s.Desired.Spec.Version)
	return v
}

// FromVersion is the version that a roll comes from, for messages: that of the lowest
// pod that is not yet on the desired template, of those that change it if any do.
func (s *Situation) FromVersion() string {
	pods := s.Outdated()
	if len(pods) == 0 {
		return s.Observed.Set.CurrentVersion
	}
	for _, p := range slices.Backward(pods) {
		if p.Version != s.Desired.Spec.Version {
			return p.Version
		}
	}
	return pods[len(pods)-1].Version
}

// Versioned reports whether the roll changes the version of etcd.
func (s *Situation) Versioned() bool {
	for _, p := range s.Outdated() {
		if p.Version != s.Desired.Spec.Version {
			return true
		}
	}
	return s.Observed.Set.Version != s.Desired.Spec.Version
}

// Small reports whether the cluster cannot keep a quorum without one member.
func (s *Situation) Small() bool { return s.MemberCount() < 3 }

// Alone reports whether a cluster that is too small to keep a quorum without one
// member has lost it to an abandoned roll whose etcd never ran: nothing serves,
// nothing has changed on the volume, and only the member that the roll broke can bring
// the cluster back.
func (s *Situation) Alone() bool {
	if !s.Small() || !s.Rolling() {
		return false
	}
	v := s.BrokenByRoll()
	return v != nil && !v.Ran && v.Trouble != ""
}

// crashSoak is how long a member whose etcd has crashed must be ready, at least:
// between two crashes it may be ready for a moment, too.
const crashSoak = time.Minute

// SoakTime is how long a restarted member must be ready.
func (s *Situation) SoakTime(p state.Pod) time.Duration {
	var soak time.Duration
	if s.Desired.Spec.Upgrade.Soak != nil {
		soak = s.Desired.Spec.Upgrade.Soak.Duration
	}
	if p.Crashed {
		soak = max(soak, crashSoak)
	}
	return soak
}

// Warnings are the catalogue's remarks about what is wanted.
func (s *Situation) Warnings() []Remark {
	if len(s.Desired.Problems) > 0 {
		return nil
	}
	var texts []string
	if s.Observed.Set == nil || s.Rolling() {
		texts = Messages(release.Bad(s.WantedVersion()), release.Warn)
	}
	if s.Rolling() {
		texts = append(texts, s.hops(release.Warn)...)
		texts = append(texts, s.defaultsChanged()...)
		texts = append(texts, s.willWait()...)
	}
	if s.Desired.Spec.Upgrade.Backup == schema.BackupSkip && s.Rolling() && s.Versioned() {
		noun := "upgrade"
		if s.GoesDown() || s.Descending() {
			noun = "downgrade"
		}
		texts = append(texts, "spec.upgrade.backup is Skip: this "+noun+" has no backup to go back to")
	}
	if b := s.Observed.Record; b != nil && b.Backup != nil && b.Backup.Unreachable != "" {
		texts = append(texts, fmt.Sprintf("no restore can read the last backup, which was taken for %s: %s", b.Backup.For, b.Backup.Unreachable))
	}
	if text := clock.Warning(s.Ahead); text != "" {
		texts = append(texts, text)
	}
	texts = append(texts, keptAgainstGit(s)...)
	warnings := s.NotDefragmented()
	for _, text := range texts {
		warnings = append(warnings, Remark{Text: text})
	}
	slices.SortFunc(warnings, func(a, b Remark) int { return cmp.Compare(a.Text, b.Text) })
	return slices.Compact(warnings)
}

// defaultsChanged tells what members will do otherwise although no setting
// changes.
func (s *Situation) defaultsChanged() []string {
	var texts []string
	for _, v := range s.Versions() {
		for _, text := range release.DefaultsChanged(v, s.WantedVersion()) {
			texts = append(texts, fmt.Sprintf("%s → %s: %s", v, s.WantedVersion(), text))
		}
	}
	return texts
}

// hops are the findings of one severity about any member's way to the wanted
// version.
func (s *Situation) hops(severity release.Severity) []string {
	var texts []string
	for _, v := range s.Versions() {
		texts = append(texts, Messages(s.hopsOf(v), severity)...)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// hopsOf are the findings about one member's way, stop by stop. That a member
// gets its old minor back while the cluster version has not moved is no hop.
func (s *Situation) hopsOf(at release.Version) []release.Finding {
	var findings []release.Finding
	for _, stop := range s.Waypoints {
		to, err := release.Parse(stop.Version)
		if err != nil {
			return findings
		}
		if down := state.Older(to.Line(), at.Line()); !down || s.GoesDown() || s.Descending() {
			findings = append(findings, release.Hop(at, to)...)
		}
		at = to
	}
	return findings
}

// Messages are the texts of the findings of one severity.
func Messages(findings []release.Finding, severity release.Severity) []string {
	var texts []string
	for _, f := range findings {
		if f.Severity == severity {
			texts = append(texts, f.Message)
		}
	}
	return texts
}

// OldestPod and newestPod are creation times, zero without pods.
func (s *Situation) OldestPod() time.Time {
	var t time.Time
	for _, p := range s.Observed.Pods {
		if t.IsZero() || p.Created.Before(t) {
			t = p.Created
		}
	}
	return t
}

// NewestPod is when the newest pod was created; zero without pods.
func (s *Situation) NewestPod() time.Time {
	var t time.Time
	for _, p := range s.Observed.Pods {
		if p.Created.After(t) {
			t = p.Created
		}
	}
	return t
}
