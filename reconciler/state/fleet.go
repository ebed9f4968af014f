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
