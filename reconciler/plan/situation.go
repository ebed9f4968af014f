package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// situation is the input of the rules, with the questions that several of them
// ask answered in one place.
//
// git is what Git says. d is the same with the version and the template of the
// stop that is due: what the rules work towards. See aim.
type situation struct {
	git   Desired
	d     Desired
	stops []Stop
	o     Observed
	now   time.Time
	// pardoned looks past the alarm NOSPACE and full databases: so that what
	// frees space is kept from working by nothing but other troubles.
	pardoned bool
}

func newSituation(d Desired, o Observed, now time.Time) *situation {
	o.Pods = slices.Clone(o.Pods)
	slices.SortFunc(o.Pods, func(a, b Pod) int { return cmp.Compare(b.Ordinal, a.Ordinal) })
	s := &situation{git: d, d: d, o: o, now: now}
	if slices.ContainsFunc(o.Objects, s.withheld) {
		s.o.Objects = slices.DeleteFunc(slices.Clone(o.Objects), s.withheld)
	}
	s.aim()
	return s
}

// formed says whether the cluster has ever had a quorum.
func (s *situation) formed() bool { return s.o.Record.Formed() }

// started says whether the StatefulSet has the desired template.
func (s *situation) started() bool { return s.o.Set.Template == s.d.Template }

// rolling says whether a pod or the StatefulSet still has another template
// than the desired one. Members that are put to sleep sleep as they are, unless a
// roll is half done.
func (s *situation) rolling() bool {
	if s.o.Set == nil || !s.formed() || (s.d.Spec.State == schema.StateHibernated && !s.open()) {
		return false
	}
	return !s.started() || slices.ContainsFunc(s.o.Pods, s.isOutdated)
}

// isOutdated says whether the pod is a member's that still has another template.
func (s *situation) isOutdated(p Pod) bool {
	return p.Template != s.d.Template && s.isMember(p.Name)
}

// outdated are the members' pods that still have another template, highest ordinal first.
func (s *situation) outdated() []Pod {
	var pods []Pod
	for _, p := range s.o.Pods {
		if s.isOutdated(p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// target is the pod that the roll restarts next: one that an abandoned roll
// left broken, else the one with the highest ordinal; nil when none is left.
func (s *situation) target() *Pod {
	if v := s.victim(); v != nil {
		return v
	}
	if pods := s.outdated(); len(pods) > 0 {
		return &pods[0]
	}
	return nil
}

// victim is the only unhealthy member that may be restarted, because its template
// is the reason that it is unhealthy: an earlier, abandoned roll broke it, so its
// template is neither the desired one nor the last whose roll ended; or etcd has
// never run in its pod, because there is no such image; or Git now wants other
// settings, see remedied. A pod that does not start for another reason, such as a
// lost volume, is not helped by another template.
func (s *situation) victim() *Pod {
	if s.o.Set.CurrentTemplate == "" {
		return nil // unknown: nobody can say what the roll has broken
	}
	if s.goesDown() {
		return nil // an older binary does not even start
	}
	var victim *Pod
	for _, p := range s.outdated() {
		unborn := !p.Ran && p.Unpulled
		if s.wellLately(p) || (p.Template == s.o.Set.CurrentTemplate && !unborn && !s.remedied(p)) {
			continue
		}
		// One that never ran is broken beyond doubt; another may only be waiting
		// for a quorum.
		if victim == nil || (victim.Ran && !p.Ran) {
			victim = &p
		}
	}
	return victim
}

// remedied says whether the roll may be the remedy of a member that does not run,
// such as a larger memory limit: its data is there, its version stays, it is the
// next one in the roll's order, and all the others are well. Restarting who is down
// costs nobody anything.
func (s *situation) remedied(p Pod) bool {
	if p.Trouble == "" || p.Ready || p.Terminating || p.Damage != "" || p.NodeGone || s.versioned() || p.Name != s.outdated()[0].Name {
		return false
	}
	return !slices.ContainsFunc(s.o.Pods, func(other Pod) bool {
		return other.Name != p.Name && s.isMember(other.Name) && !s.wellNow(other)
	})
}

// rollVictim is the victim that the roll under way is to mend, or nil: the gate
// looks past it, and nobody else is touched before it is well.
func (s *situation) rollVictim() *Pod {
	if !s.rolling() {
		return nil
	}
	return s.victim()
}

// wellNow says whether the pod and its member were fine in the last round.
func (s *situation) wellNow(p Pod) bool {
	m := s.o.round().member(p.Name)
	return s.up(p) && m != nil && m.Problem == ""
}

// up says whether a pod goes on running, as far as Kubernetes knows. While the
// alarm CORRUPT stands, etcd calls no member ready, be it ever so well: then what
// it says of itself must do.
func (s *situation) up(p Pod) bool {
	r := s.o.round()
	ready := p.Ready || (p.Trouble == "" && r != nil && r.alarmed(Corrupt))
	return ready && !p.Terminating
}

// wellLately says whether the pod is ready and its member was fine in one of the
// looks: one answer that is lost makes nobody a victim, bad is seen twice like good.
func (s *situation) wellLately(p Pod) bool {
	if !p.Ready || p.Terminating {
		return false
	}
	for i := range s.o.Rounds {
		if m := s.o.Rounds[i].member(p.Name); m != nil && m.Problem == "" {
			return true
		}
	}
	return len(s.o.Rounds) < 2
}

// rollback says whether the desired template is the one that the last roll that
// ended left behind: the roll under way is given up.
func (s *situation) rollback() bool {
	return s.o.Set.CurrentTemplate == s.d.Template
}

// versions are the versions of the members, by what they report; a member that
// does not answer counts with its pod's version. One whose version nobody knows
// is left out.
func (s *situation) versions() map[string]release.Version {
	reported := map[string]release.Version{}
	for _, p := range s.o.Pods {
		if !s.isMember(p.Name) {
			continue
		}
		text := p.Version
		if m := s.o.round().member(p.Name); m != nil && m.Version != "" {
			text = m.Version
		}
		if v, err := release.Parse(text); err == nil {
			reported[p.Name] = v
		}
	}
	return reported
}

// clusterVersion is what the members have agreed on, or "" when unknown.
func (s *situation) clusterVersion() string {
	if r := s.o.round(); r != nil {
		return r.ClusterVersion
	}
	return ""
}

// wanted is the desired version; validation has seen to it that it parses.
func (s *situation) wanted() release.Version {
	v, _ := release.Parse(s.d.Spec.Version)
	return v
}

// from is the version that a roll comes from, for messages: that of the lowest
// pod that is not yet on the desired template, of those that change it if any do.
func (s *situation) from() string {
	pods := s.outdated()
	if len(pods) == 0 {
		return s.o.Set.CurrentVersion
	}
	for _, p := range slices.Backward(pods) {
		if p.Version != s.d.Spec.Version {
			return p.Version
		}
	}
	return pods[len(pods)-1].Version
}

// versioned says whether the roll changes the version of etcd.
func (s *situation) versioned() bool {
	for _, p := range s.outdated() {
		if p.Version != s.d.Spec.Version {
			return true
		}
	}
	return s.o.Set.Version != s.d.Spec.Version
}

// small says whether the cluster cannot keep a quorum without one member.
func (s *situation) small() bool { return s.memberCount() < 3 }

// alone says whether a cluster that is too small to keep a quorum without one
// member has lost it to an abandoned roll whose etcd never ran: nothing serves,
// nothing has changed on the volume, and only the roll's own victim can bring
// the cluster back.
func (s *situation) alone() bool {
	if !s.small() || !s.rolling() {
		return false
	}
	v := s.victim()
	return v != nil && !v.Ran && v.Trouble != ""
}

// crashSoak is how long a member whose etcd has crashed must be ready, at least:
// between two crashes it may be ready for a moment, too.
const crashSoak = time.Minute

// soakTime is how long a restarted member must be ready.
func (s *situation) soakTime(p Pod) time.Duration {
	var soak time.Duration
	if s.d.Spec.Upgrade.Soak != nil {
		soak = s.d.Spec.Upgrade.Soak.Duration
	}
	if p.Crashed {
		soak = max(soak, crashSoak)
	}
	return soak
}

// warnings are the catalogue's remarks about what is wanted.
func (s *situation) warnings() []string {
	if len(s.d.Problems) > 0 {
		return nil
	}
	var texts []string
	if s.o.Set == nil || s.rolling() {
		texts = messages(release.Bad(s.wanted()), release.Warn)
	}
	if s.rolling() {
		texts = append(texts, s.hops(release.Warn)...)
		texts = append(texts, s.defaultsChanged()...)
		texts = append(texts, s.willWait()...)
	}
	if s.d.Spec.Upgrade.Backup == schema.BackupSkip && s.rolling() && s.versioned() {
		noun := "upgrade"
		if s.goesDown() || s.descending() {
			noun = "downgrade"
		}
		texts = append(texts, "spec.upgrade.backup is Skip: this "+noun+" has no backup to go back to")
	}
	texts = append(texts, s.notDefragmented()...)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// defaultsChanged says what members will do otherwise although no setting
// changes.
func (s *situation) defaultsChanged() []string {
	var texts []string
	for _, v := range s.versions() {
		for _, text := range release.DefaultsChanged(v, s.wanted()) {
			texts = append(texts, fmt.Sprintf("%s → %s: %s", v, s.wanted(), text))
		}
	}
	return texts
}

// hops are the findings of one severity about any member's way to the wanted
// version.
func (s *situation) hops(severity release.Severity) []string {
	var texts []string
	for _, v := range s.versions() {
		texts = append(texts, messages(s.hopsOf(v), severity)...)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// hopsOf are the findings about one member's way, stop by stop. That a member
// gets its old minor back while the cluster version has not moved is no hop.
func (s *situation) hopsOf(at release.Version) []release.Finding {
	var findings []release.Finding
	for _, stop := range s.stops {
		to, err := release.Parse(stop.Version)
		if err != nil {
			return findings
		}
		if down := older(to.Line(), at.Line()); !down || s.goesDown() || s.descending() {
			findings = append(findings, release.Hop(at, to)...)
		}
		at = to
	}
	return findings
}

// messages are the texts of the findings of one severity.
func messages(findings []release.Finding, severity release.Severity) []string {
	var texts []string
	for _, f := range findings {
		if f.Severity == severity {
			texts = append(texts, f.Message)
		}
	}
	return texts
}

// oldestPod and newestPod are creation times, zero without pods.
func (s *situation) oldestPod() time.Time {
	var t time.Time
	for _, p := range s.o.Pods {
		if t.IsZero() || p.Created.Before(t) {
			t = p.Created
		}
	}
	return t
}

func (s *situation) newestPod() time.Time {
	var t time.Time
	for _, p := range s.o.Pods {
		if p.Created.After(t) {
			t = p.Created
		}
	}
	return t
}
