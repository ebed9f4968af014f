package situation

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// Blocked tells why a member that runs v cannot go to the stop that is due or on
// from there, or "".
func (s *Situation) Blocked(v release.Version) string {
	if state.Older(s.WantedVersion().Line(), v.Line()) && !s.GoesDown() {
		if why := s.noWayBack(); why != "" {
			return why
		}
	}
	if texts := Messages(s.hopsOf(v), release.Refuse); len(texts) > 0 {
		return texts[0]
	}
	return ""
}

// Climbs reports whether a member goes from one release to another with nothing but a
// restart: inside a minor, or to the next one.
func Climbs(from, to release.Version) bool {
	return from.Line() == to.Line() || state.Older(from.Line(), to.Line()) && len(Messages(release.Hop(from, to), release.Refuse)) == 0
}

// noWayBack tells why the members that run a newer minor cannot simply get the
// older binary again, or "". They can while the cluster version has not moved,
// and it moves as soon as no member with the old minor is left.
func (s *Situation) noWayBack() string {
	old, version := s.WantedVersion().Line(), s.ClusterVersion()
	if s.NeverLeft() {
		return ""
	}
	if state.Minor(version) != old {
		return fmt.Sprintf("the cluster version is %s, which is below both", version)
	}
	if s.Descending() || s.Reports(old) {
		return ""
	}
	return "no member reports " + old + " any more, so the cluster version is about to move"
}

// NeverLeft reports whether a roll is given up whose etcd has not run yet, and nothing
// serves, so that the cluster version is unknown. Had the newer binary
// run before, etcd itself would refuse to start the older one, and leave the data
// alone.
func (s *Situation) NeverLeft() bool { return s.Alone() && s.GivingUp() }

// NewerThan reports whether a member runs a newer minor than one.
func (s *Situation) NewerThan(minor string, versions map[string]release.Version) bool {
	for _, v := range versions {
		if state.Older(minor, v.Line()) {
			return true
		}
	}
	return false
}

// WhyUnlisted is why no member could tell of the others, in the words of an error, or
// "".
func (s *Situation) WhyUnlisted() string {
	if r := s.Observed.Round(); r != nil {
		return r.Problem
	}
	return ""
}

// Reports is whether a member that answers runs a minor.
func (s *Situation) Reports(wanted string) bool {
	return slices.ContainsFunc(s.Observed.Round().Members, func(m state.Member) bool { return m.Problem == "" && state.Minor(m.Version) == wanted })
}

// VersionUndecided reports whether a roll was given up too late, when every member has the
// newer minor, and the cluster version has not moved yet: what the way back is,
// is then decided by what it moves to. Where it has no way down it is refused.
func (s *Situation) VersionUndecided(versions map[string]release.Version) bool {
	r, old := s.Observed.Round(), s.WantedVersion().Line()
	if r == nil || state.Minor(r.ClusterVersion) != old || r.Downgrading || len(r.Members) == 0 {
		return false
	}
	for _, v := range versions {
		if !state.Older(old, v.Line()) || len(Messages(release.Hop(v, s.WantedVersion()), release.Refuse)) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.Members, func(m state.Member) bool { return m.Problem != "" })
}
