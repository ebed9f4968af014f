package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// path refuses a change of version that etcd does not support, by what every
// member itself reports.
func path(s *situation) verdict {
	if !s.rolling() || !s.versioned() {
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
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if stop := s.firstStop(versions[name]); stop != "" {
			return refuse(fmt.Sprintf("%s goes from %s to %s through %s, and this version of quorate does not walk a path: Stepwise by itself yet", name, versions[name], s.wanted(), stop),
				"set spec.version to "+stop+" first")
		}
		if why := s.blocked(versions[name]); why != "" {
			return refuse(fmt.Sprintf("%s cannot go from %s to %s: %s", name, versions[name], s.wanted(), why),
				"set spec.version to a release that every member can go to")
		}
	}
	return pass()
}

// firstStop is where a member would go first on a stepwise path of several rolls,
// or "".
func (s *situation) firstStop(v release.Version) string {
	if s.d.Spec.Upgrade.Path != schema.PathStepwise || v.Line() == s.wanted().Line() {
		return ""
	}
	stops, err := release.Path(v, s.wanted())
	if err != nil || len(stops) < 2 {
		return ""
	}
	return stops[0].String()
}

// blocked says why a member that runs v cannot go to the wanted version, or "".
func (s *situation) blocked(v release.Version) string {
	if v.Major == s.wanted().Major && v.Minor > s.wanted().Minor {
		return s.noWayBack()
	}
	if texts := messages(release.Hop(v, s.wanted()), release.Refuse); len(texts) > 0 {
		return texts[0]
	}
	return ""
}

// noWayBack says why the members that run a newer minor cannot simply get the
// older binary again, or "". They can while the cluster version has not moved,
// and it moves as soon as no member with the old minor is left.
func (s *situation) noWayBack() string {
	old := s.wanted().Line()
	if s.alone() && s.rollback() {
		// Nothing serves, so nobody can say what the cluster version is. The newer
		// binary has not run in this pod; had it run before, etcd itself would
		// refuse to start the older one, and leave the data alone.
		return ""
	}
	version := s.clusterVersion()
	if version == "" {
		return "the cluster version is unknown, so nobody can say whether the way back is still open"
	}
	if line(version) != old {
		return fmt.Sprintf("the cluster version is already %s, and an older binary would refuse to start on it; a downgrade through etcd's own API or a restore is needed",
			version)
	}
	for _, m := range s.o.round().Members {
		if m.Problem == "" && line(m.Version) == old {
			return ""
		}
	}
	return "no member reports " + old + " any more, so the cluster version is about to move"
}

// line is the release line of a version text: "3.6" of "3.6.16", or "".
func line(version string) string {
	v, err := release.Parse(version)
	if err != nil {
		return ""
	}
	return v.Line()
}
