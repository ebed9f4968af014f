// Package waves says which other clusters come before one that is about to be disrupted. It is
// pure, and decides nothing.
package waves

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// PlaceTime is how long a cluster may be disrupted, or a check may not hold, before a person
// should look; and one that is broken keeps its place for as long.
const PlaceTime = time.Hour

// Disrupted are the clusters that take a place. Broken ones yield theirs in time, unless
// there are more of them than may be disrupted: then what has broken them may be everywhere.
func Disrupted(s *situation.Situation) []state.Neighbour {
	yields := func(n state.Neighbour) bool {
		return n.Broken && !n.Since.IsZero() && s.Now.Sub(n.Since) >= PlaceTime
	}
	f := s.Observed.Fleet
	left := slices.DeleteFunc(slices.Clone(f.Disrupted), yields)
	if len(f.Disrupted)-len(left) > f.Limit {
		return f.Disrupted
	}
	return left
}

// Unchecked are the clusters of lower waves that are what their files say, and have a check that
// does not hold, with what was measured, and what a person can do about the first. Where each holds,
// they are those of which one has not held for as long as it must: time alone brings that about, and
// do is "".
func Unchecked(checks []state.Check, now time.Time) (others []state.Neighbour, detail, do string) {
	var young []state.Neighbour
	var measured []string
	for _, c := range checks {
		n := state.Neighbour{Name: c.Cluster, Since: c.Since}
		switch {
		case c.Since.IsZero():
			n.Why = fmt.Sprintf("check %s is asked by the daemon, when everything else is done", c.Name)
		case c.Problem != "":
			n.Why = fmt.Sprintf("check %s: %s, since %s", c.Name, c.Problem, c.Since.UTC().Format(time.RFC3339))
		case now.Sub(c.Since) < c.For:
			n.Why = fmt.Sprintf("check %s holds since %s, and must for %s", c.Name, c.Since.UTC().Format(time.RFC3339), c.For)
			young = append(young, n)
			continue
		default:
			continue
		}
		others = append(others, n)
		do = cmp.Or(do, c.Do, "look at what the check asks, and why it does not answer as it should")
		if c.Detail != "" {
			measured = append(measured, c.Name+": "+c.Detail)
		}
	}
	if len(others) == 0 {
		return young, "", ""
	}
	return others, strings.Join(measured[:min(len(measured), 3)], "; "), do
}
