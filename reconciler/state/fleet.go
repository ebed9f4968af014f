package state

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
	// Checks are what the checks of clusters of lower waves have answered, once each of these
	// is what its file says.
	Checks []Check
}

// Check is what a check of spec.upgrade.checks has answered.
type Check struct {
	// Cluster is namespace/name of the one that it is about, and Name the check's.
	Cluster, Name string
	// Problem is why it does not hold, half a sentence that stays the same while nothing
	// changes: "HTTP 503 from https://orders.example.com/healthz"; "" where it holds.
	Problem string
	// Detail is what was measured beside it, which may differ each time.
	Detail string
	// Do is what a person can do where it does not hold, if that is more than to look at what it
	// asks.
	Do string
	// Since is since when every answer has been to hold, or not to hold, as far as this process
	// has asked; zero where it has not been asked.
	Since time.Time
	// For is how long it must hold.
	For time.Duration
}

// Neighbour is another cluster of the same daemon.
type Neighbour struct {
	// Name is namespace/name.
	Name string
	Wave int32
	// Why is half a sentence: "2 of 3 members are ready".
	Why string
	// Broken says that it is not quorate that disrupts it: members are missing, and nothing
	// that quorate has begun there is under way.
	Broken bool
	// Since is when its StatefulSet last told something new; zero when unknown.
	Since time.Time
}

// String is the neighbour in a list.
func (n Neighbour) String() string { return fmt.Sprintf("%s (%s)", n.Name, n.Why) }

// Neighbours names the first of several neighbours, and counts the others.
func Neighbours(all []Neighbour) string {
	const maxNamed = 3
	var names []string
	for _, n := range all[:min(maxNamed, len(all))] {
		names = append(names, n.String())
	}
	text := strings.Join(names, ", ")
	if more := len(all) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
