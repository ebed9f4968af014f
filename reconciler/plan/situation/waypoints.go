package situation

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// Waypoints are the rolls that are left until the cluster is what a spec says, the
// one that is due first, and what the spec says last. There is always one. It
// goes by what the members report, so that a roll under way, a restart of quorate
// or another commit need nothing to be remembered.
//
//	from     to      path       stops
//	3.5.30   3.6.16  any        3.6.16
//	3.4.34   3.6.16  Strict     3.6.16, which the path rule refuses
//	3.4.34   3.6.16  Stepwise   3.5.35, 3.6.16
//	3.6.16   3.7.3   any        3.6.16 with Flush, 3.7.3: where 3.5 may have run
//	3.5.35   3.7.3   Stepwise   3.6.16 with Flush, 3.7.3
//	3.7.1    3.6.16  Stepwise   3.7.3, 3.6.16
func Waypoints(spec schema.ClusterSpec, o state.Observed) []state.Waypoint {
	s := &Situation{Desired: state.Desired{Spec: spec}, Observed: o}
	low, high, known := s.VersionSpan()
	if !known || !s.Formed() {
		return []state.Waypoint{{Version: spec.Version}}
	}
	if set := o.Set; low == high && low == s.WantedVersion() && set != nil && set.CurrentTemplate == set.Template {
		return []state.Waypoint{{Version: spec.Version}} // at rest, which is nearly always
	}
	var stops []state.Waypoint
	for _, v := range s.walk(low, high) {
		stops = append(stops, state.Waypoint{Version: v})
	}
	return s.flushing(low, stops)
}

// walk are the versions in between. Where there is no path the path rule reports it.
// A roll that is not closed counts as not begun: the walk stays at its stop until
// every pod is ready there, and with it at the first member that does not come back.
func (s *Situation) walk(low, high release.Version) []string {
	straight := []string{s.Desired.Spec.Version}
	from := s.lowestOf(low)
	if state.Older(s.WantedVersion().Line(), high.Line()) {
		if !s.GoesDown() {
			return straight // a roll that is given up, or a downgrade under way
		}
		from = s.lowestOf(s.oldestOf(high.Line()))
	}
	if s.Desired.Spec.Upgrade.Path != schema.PathStepwise || from.Line() == s.WantedVersion().Line() {
		return straight
	}
	path, err := release.Path(from, s.WantedVersion())
	if err != nil || len(path) < 2 {
		return straight
	}
	var versions []string
	for _, v := range path {
		versions = append(versions, v.String())
	}
	return versions
}

// flushing adds what a step to a minor needs that cannot read the whole log: a
// stop before it, at the release that the members run, or that the way goes
// through anyway.
func (s *Situation) flushing(at release.Version, stops []state.Waypoint) []state.Waypoint {
	for i := range stops {
		to, err := release.Parse(stops[i].Version)
		if err != nil {
			return stops
		}
		oldest, limited := release.OldestLog(to)
		_, before := release.OldestLog(at)
		switch {
		case !limited || before || !s.exposed(oldest) || to.Minor != at.Minor+1:
		case i > 0:
			stops[i-1].Flush = true
		default:
			return slices.Insert(stops, 0, state.Waypoint{Version: s.newestOf(at.Line()), Flush: true})
		}
		at = to
	}
	return stops
}

// exposed reports whether a member's log may hold entries of a minor before oldest.
// What is unknown counts as yes, and so does a member that came later.
func (s *Situation) exposed(oldest string) bool {
	r := s.Observed.Record
	if r.BornOn != "" && !state.Older(r.BornOn, oldest) {
		return false
	}
	for name, id := range r.Members {
		if r.Flushed[name] != id {
			return true
		}
	}
	return false
}

// VersionSpan are the lowest and the highest version of the members, by what they
// report, unless that of a member is unknown.
func (s *Situation) VersionSpan() (low, high release.Version, known bool) {
	versions := s.Versions()
	for _, p := range s.Observed.Pods {
		if !s.IsMember(p.Name) {
			continue
		}
		v, ok := versions[p.Name]
		if !ok {
			return low, high, false
		}
		if !known || release.Compare(v, low) < 0 {
			low = v
		}
		if !known || release.Compare(v, high) > 0 {
			high = v
		}
		known = true
	}
	return low, high, known
}

// lowestOf is v, or the version that a roll which is not closed comes from, where
// that is older.
func (s *Situation) lowestOf(v release.Version) release.Version {
	if s.Observed.Set == nil || s.Observed.Set.CurrentTemplate == s.Observed.Set.Template {
		return v
	}
	if before, err := release.Parse(s.Observed.Set.CurrentVersion); err == nil && release.Compare(before, v) < 0 {
		return before
	}
	return v
}

// oldestOf is the oldest release of a minor that a member runs.
func (s *Situation) oldestOf(minor string) release.Version {
	var oldest release.Version
	for _, v := range s.Versions() {
		if v.Line() == minor && (oldest == release.Version{} || release.Compare(v, oldest) < 0) {
			oldest = v
		}
	}
	return oldest
}

// newestOf is the newest release of a minor that a member runs.
func (s *Situation) newestOf(minor string) string {
	var newest release.Version
	for _, v := range s.Versions() {
		if v.Line() == minor && release.Compare(v, newest) > 0 {
			newest = v
		}
	}
	return newest.String()
}

// Aim makes the stop that is due what the rules work towards, and the number of members that
// it takes. So one roll has the same rules whether it is the whole way or a part of it.
func (s *Situation) Aim() {
	s.Desired, s.Waypoints = s.Git, nil
	if len(s.Git.Problems) > 0 {
		return
	}
	s.Waypoints = Waypoints(s.Git.Spec, s.Observed)
	for i := range s.Waypoints {
		s.Waypoints[i].Template = s.Git.TemplateOf(s.Waypoints[i])
	}
	s.Desired.Spec.Version, s.Desired.Template = s.Waypoints[0].Version, s.Waypoints[0].Template
	if surge.Due(s.Desired, s.Waypoint(), s.Observed) {
		s.Desired.Spec.Replicas = surge.Members
	}
}

// Surging reports whether the rules work towards a second member, see package surge.
func (s *Situation) Surging() bool { return s.Desired.Spec.Replicas != s.Git.Spec.Replicas }

// Waypoint is the stop that is due.
func (s *Situation) Waypoint() state.Waypoint {
	if len(s.Waypoints) == 0 {
		return state.Waypoint{Version: s.Desired.Spec.Version, Template: s.Desired.Template}
	}
	return s.Waypoints[0]
}

// Intermediate reports whether the stop that is due is not yet what Git says.
func (s *Situation) Intermediate() bool { return len(s.Waypoints) > 1 }
