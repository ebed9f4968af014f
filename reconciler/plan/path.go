package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/schema/release"
)

// path refuses a change of version that etcd does not support, by what every
// member itself reports. It looks at the whole way before its first roll.
func path(s *situation) verdict {
	if !s.rolling() || (!s.versioned() && !s.passing()) {
		return pass()
	}
	if refused := messages(release.Bad(s.wanted()), release.Refuse); len(refused) > 0 && !s.rollback() {
		return refuse(refused[0], "name another release in spec.version")
	}
	versions := s.versions()
	for _, p := range s.o.Pods {
		if !s.isMember(p.Name) {
			continue
		}
		if _, known := versions[p.Name]; !known {
			return refuse(fmt.Sprintf("nobody knows which etcd %s runs, so nobody can say whether it can go to %s", p.Name, s.wanted()),
				"look at that member; quorate goes on when it reports a release")
		}
	}
	if s.d.Template == "" {
		return refuse(fmt.Sprintf("nobody can say what the pods of the stop at %s look like", s.d.Spec.Version), "report this: it is a mistake of quorate's own; meanwhile go there by two commits")
	}
	if s.betweenTwo(versions) {
		v := wait(fmt.Sprintf("no member reports %s any more, so the cluster version moves within seconds; then the way back is a downgrade", s.wanted().Line()), s.newestPod())
		v.hold.Again = quickly
		return v
	}
	if back := s.wanted(); s.clusterVersion() == "" && s.newerThan(back.Line(), versions) && !s.neverLeft() {
		return unhealthy(fmt.Sprintf("no member tells the cluster version, so nobody can say whether the way back to %s is still open%s", back, s.whyUnlisted()),
			"look at the members; quorate goes on when one tells it, or when spec.version is a release that every member can go to")
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if why := s.blocked(versions[name]); why != "" {
			return refuse(fmt.Sprintf("%s cannot go from %s to %s: %s", name, versions[name], s.git.Spec.Version, why),
				"set spec.version to a release that every member can go to")
		}
	}
	return s.pinned()
}

// blocked says why a member that runs v cannot go to the stop that is due or on
// from there, or "".
func (s *situation) blocked(v release.Version) string {
	if older(s.wanted().Line(), v.Line()) && !s.goesDown() {
		if why := s.noWayBack(); why != "" {
			return why
		}
	}
	if texts := messages(s.hopsOf(v), release.Refuse); len(texts) > 0 {
		return texts[0]
	}
	return ""
}

// noWayBack says why the members that run a newer minor cannot simply get the
// older binary again, or "". They can while the cluster version has not moved,
// and it moves as soon as no member with the old minor is left.
func (s *situation) noWayBack() string {
	old, version := s.wanted().Line(), s.clusterVersion()
	if s.neverLeft() {
		return ""
	}
	if line(version) != old {
		return fmt.Sprintf("the cluster version is %s, which is below both", version)
	}
	if s.descending() || s.reports(old) {
		return ""
	}
	return "no member reports " + old + " any more, so the cluster version is about to move"
}

// neverLeft says whether a roll is given up whose etcd has not run yet, and nothing
// serves, so that nobody can say what the cluster version is. Had the newer binary
// run before, etcd itself would refuse to start the older one, and leave the data
// alone.
func (s *situation) neverLeft() bool { return s.alone() && s.rollback() }

// newerThan says whether a member runs a newer minor than a line.
func (s *situation) newerThan(line string, versions map[string]release.Version) bool {
	for _, v := range versions {
		if older(line, v.Line()) {
			return true
		}
	}
	return false
}

// whyUnlisted is ": " and why no member could tell of the others, or "".
func (s *situation) whyUnlisted() string {
	if r := s.o.round(); r != nil && r.Problem != "" {
		return ": " + r.Problem
	}
	return ""
}

// reports says whether a member that answers runs a line.
func (s *situation) reports(wanted string) bool {
	return slices.ContainsFunc(s.o.round().Members, func(m Member) bool { return m.Problem == "" && line(m.Version) == wanted })
}

// betweenTwo says whether a roll was given up too late, when every member has the
// newer minor, and the cluster version has not moved yet: what the way back is,
// is then decided by what it moves to. Where it has no way down it is refused.
func (s *situation) betweenTwo(versions map[string]release.Version) bool {
	r, old := s.o.round(), s.wanted().Line()
	if r == nil || line(r.ClusterVersion) != old || r.Downgrading || len(r.Members) == 0 {
		return false
	}
	for _, v := range versions {
		if !older(old, v.Line()) || len(messages(release.Hop(v, s.wanted()), release.Refuse)) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.Members, func(m Member) bool { return m.Problem != "" })
}

// pinned refuses to go through a release whose image nobody has pinned, where Git
// pins that of the last one.
func (s *situation) pinned() verdict {
	if s.git.Spec.Image.Digest == "" {
		return pass()
	}
	for _, stop := range s.stops[:len(s.stops)-1] {
		if stop.Version != s.o.Set.Version {
			return refuse(fmt.Sprintf("the way to %s goes through %s, and spec.image.digest pins one image only", s.git.Spec.Version, stop.Version),
				"go there by two commits, each with its digest, or leave spec.image.digest out until the last stop")
		}
	}
	return pass()
}

// agreed waits, before a roll to another minor, until the members have agreed on
// the one that they run: with two steps at once the older ones would crash.
func (s *situation) agreed() verdict {
	low, _, known := s.span()
	version := s.clusterVersion()
	if !known || !older(line(version), low.Line()) || !older(low.Line(), s.wanted().Line()) {
		return pass()
	}
	v := wait(fmt.Sprintf("every member runs etcd %s; the cluster version is still %s and follows within seconds", low, version), s.newestPod())
	v.hold.Again = quickly
	return v
}

// line is the release line of a version text: "3.6" of "3.6.16", or "".
func line(version string) string {
	v, err := release.Parse(version)
	if err != nil {
		return ""
	}
	return v.Line()
}
