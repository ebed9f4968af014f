package perturb

import (
	"fmt"
	"time"
)

// counter counts what quorate sends in one direction, and picks what is disturbed. Who has
// it locks it.
type counter struct {
	// at is what to disturb, as its name says, and how.
	at, how string
	// counted is how many there were of each sort, and names are all of them in their order.
	counted map[string]int
	names   []string
	// hit reports whether the disturbance has come about, and disturbed when.
	hit       bool
	disturbed time.Time
	// off is true while nothing is counted or disturbed.
	off bool
}

func newCounter(at, how string) counter {
	return counter{at: at, how: how, counted: map[string]int{}, off: true}
}

// next counts one more, and returns how to disturb it, "" for not at all.
func (c *counter) next(sort string) string {
	if c.off {
		return ""
	}
	c.counted[sort]++
	name := fmt.Sprintf("%s-%d", sort, c.counted[sort])
	c.names = append(c.names, name)
	if name != c.at {
		return ""
	}
	c.hit, c.disturbed = true, time.Now()
	return c.how
}
