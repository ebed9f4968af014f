package plan

import (
	"slices"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// Stop is one roll on the way to what Git says. Most ways have one stop: what Git
// says.
type Stop struct {
	// Version of etcd that every member runs at the stop.
	Version string
	// Flush has every member save its state beside its log at once, so that what
	// an old release wrote into the log is never read again.
	Flush bool
	// Template is the hash of the pod template at the stop. Stops leaves it
	// empty: only who renders can tell.
	Template string
}

// Stops are the rolls that are left until the cluster is what a spec says, the
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
func Stops(spec schema.ClusterSpec, o Observed) []Stop {
	s := &situation{d: Desired{Spec: spec}, o: o}
	low, high, known := s.span()
	if !known || !s.formed() {
		return []Stop{{Version: spec.Version}}
	}
	if set := o.Set; low == high && low == s.wanted() && set != nil && set.CurrentTemplate == set.Template {
		return []Stop{{Version: spec.Version}} // at rest, which is nearly always
	}
	var stops []Stop
	for _, v := range s.walk(low, high) {
		stops = append(stops, Stop{Version: v})
	}
	return s.flushing(low, stops)
}

// walk are the versions on the way. Where there is no way the path rule says so.
// A roll that is not closed counts as not begun: the walk stays at its stop until
// every pod is ready there, and with it at the first member that does not come back.
func (s *situation) walk(low, high release.Version) []string {
	straight := []string{s.d.Spec.Version}
	from := s.lowestOf(low)
	if older(s.wanted().Line(), high.Line()) {
		if !s.goesDown() {
			return straight // a roll that is given up, or a downgrade under way
		}
		from = s.lowestOf(s.oldestOf(high.Line()))
	}
	if s.d.Spec.Upgrade.Path != schema.PathStepwise || from.Line() == s.wanted().Line() {
		return straight
	}
	path, err := release.Path(from, s.wanted())
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
func (s *situation) flushing(at release.Version, stops []Stop) []Stop {
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
			return slices.Insert(stops, 0, Stop{Version: s.newestOf(at.Line()), Flush: true})
		}
		at = to
	}
	return stops
}

// exposed says whether a member's log may hold entries of a line before oldest.
// What nobody knows counts as yes, and so does a member that came later.
func (s *situation) exposed(oldest string) bool {
	r := s.o.Record
	if r.BornOn != "" && !older(r.BornOn, oldest) {
		return false
	}
	for name, id := range r.Members {
		if r.Flushed[name] != id {
			return true
		}
	}
	return false
}

// span are the lowest and the highest version of the members, by what they
// report, unless that of a member is unknown.
func (s *situation) span() (low, high release.Version, known bool) {
	versions := s.versions()
	for _, p := range s.o.Pods {
		if !s.isMember(p.Name) {
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
func (s *situation) lowestOf(v release.Version) release.Version {
	if s.o.Set == nil || s.o.Set.CurrentTemplate == s.o.Set.Template {
		return v
	}
	if before, err := release.Parse(s.o.Set.CurrentVersion); err == nil && release.Compare(before, v) < 0 {
		return before
	}
	return v
}

// oldestOf is the oldest release of a line that a member runs.
func (s *situation) oldestOf(line string) release.Version {
	var oldest release.Version
	for _, v := range s.versions() {
		if v.Line() == line && (oldest == release.Version{} || release.Compare(v, oldest) < 0) {
			oldest = v
		}
	}
	return oldest
}

// newestOf is the newest release of a line that a member runs.
func (s *situation) newestOf(line string) string {
	var newest release.Version
	for _, v := range s.versions() {
		if v.Line() == line && release.Compare(v, newest) > 0 {
			newest = v
		}
	}
	return newest.String()
}

// older says whether one line, such as "3.5", comes before another. A text that
// is no line comes before nothing.
func older(a, b string) bool {
	va, errA := release.Parse(a + ".0")
	vb, errB := release.Parse(b + ".0")
	return errA == nil && errB == nil && release.Compare(va, vb) < 0
}

// aim makes the stop that is due what the rules work towards. So one roll has the
// same rules whether it is the whole way or a part of it.
func (s *situation) aim() {
	s.d, s.stops = s.git, nil
	if len(s.git.Problems) > 0 {
		return
	}
	s.stops = Stops(s.git.Spec, s.o)
	for i := range s.stops {
		s.stops[i].Template = s.git.templateOf(s.stops[i])
	}
	s.d.Spec.Version, s.d.Template = s.stops[0].Version, s.stops[0].Template
}

// templateOf is the template at a stop, or "" where nobody has rendered it.
func (d Desired) templateOf(stop Stop) string {
	for _, known := range d.Stops {
		if known.Version == stop.Version && known.Flush == stop.Flush {
			return known.Template
		}
	}
	if stop.Version == d.Spec.Version && !stop.Flush {
		return d.Template
	}
	return ""
}

// stop is the stop that is due.
func (s *situation) stop() Stop {
	if len(s.stops) == 0 {
		return Stop{Version: s.d.Spec.Version, Template: s.d.Template}
	}
	return s.stops[0]
}

// passing says whether the stop that is due is not yet what Git says.
func (s *situation) passing() bool { return len(s.stops) > 1 }
