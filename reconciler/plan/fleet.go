package plan

import (
	"fmt"
	"strings"
	"time"
)

// Fleet is what the other clusters of the same daemon are doing, as far as it
// matters for one that is about to begin. The zero Fleet lets it begin.
type Fleet struct {
	// Limit is how many clusters may be disrupted at once; 0 is no limit.
	Limit int
	// Disrupted are the other clusters that are disrupted now, and why.
	Disrupted []Neighbour
	// Unfinished are the clusters of lower waves that are not yet what their
	// files say, and why.
	Unfinished []Neighbour
}

// Neighbour is another cluster of the same daemon.
type Neighbour struct {
	// Name is namespace/name.
	Name string
	Wave int32
	// Why is half a sentence: "2 of 3 members are ready".
	Why string
}

// String is the neighbour in a list.
func (n Neighbour) String() string { return fmt.Sprintf("%s (%s)", n.Name, n.Why) }

// Begins says whether the cluster would be disrupted anew: then, and only then,
// the caller has to fill in Observed.Fleet before it asks for a plan.
func Begins(d Desired, o Observed, now time.Time) bool { return newSituation(d, o, now).begins() }

// fleet keeps a change that reaches many clusters from disrupting many at once,
// and takes them wave by wave.
//
//	never waits                because
//	a roll that has begun      half of it is worse than either end
//	a repair, a mended member  they make the cluster safer
func fleet(s *situation) verdict {
	f := s.o.Fleet
	switch {
	case !s.begins():
		return pass()
	case len(f.Unfinished) > 0:
		return inLine(fmt.Sprintf("wave %d begins when every lower wave is done; not yet: %s", s.d.Spec.Upgrade.Wave, neighbours(f.Unfinished)))
	case f.Limit > 0 && len(f.Disrupted) >= f.Limit:
		return inLine(fmt.Sprintf("at most %s may be disrupted at once (--max-disrupted), and now it is %s", clusters(f.Limit), neighbours(f.Disrupted)))
	}
	return pass()
}

// turn is the time between two looks at whether it is this cluster's turn: short
// beside a roll, and long for many clusters that wait.
const turn = 10 * time.Second

// inLine is a hold until other clusters are done.
func inLine(message string) verdict {
	v := wait(message, time.Time{})
	v.hold.Again = turn
	return v
}

// begins says whether what comes next would disrupt a cluster that is not yet
// disrupted: a roll, a change of the number of members, or members that make way for
// others with volumes of another class.
func (s *situation) begins() bool {
	r := s.o.Record
	if !s.formed() || s.o.Set == nil || r.Joining != nil || r.Leaving != nil || r.Replacing != "" {
		return false
	}
	switch {
	case !s.rolling():
		return !s.complete() || s.replaceable() && len(s.misplaced()) > 0
	case s.open(), s.victim() != nil, s.relieves():
		return false
	}
	return true
}

// neighbours names the first neighbours, and counts the others.
func neighbours(all []Neighbour) string {
	const most = 3
	var names []string
	for _, n := range all[:min(most, len(all))] {
		names = append(names, n.String())
	}
	text := strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// clusters is "1 cluster", "3 clusters".
func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}
