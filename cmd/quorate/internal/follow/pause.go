package follow

import (
	"time"
)

// The longest pause between two looks that fail.
const (
	maxPause     = 5 * time.Minute
	pauseFactor  = 10
	jitterFactor = 0.1
)

// Pause is how long to wait for the next look: the interval, give or take a
// tenth, so that many daemons do not ask one server in step; twice as long after
// each failure from the second on; and never shorter than the server asks for.
func Pause(interval time.Duration, failed int, asked time.Duration, random float64) time.Duration {
	most := max(interval, min(maxPause, pauseFactor*interval))
	wait := most
	if n := max(failed-1, 0); n < 8 && interval <= maxPause {
		wait = min(interval<<n, most)
	}
	wait += time.Duration(float64(wait) * jitterFactor * (2*random - 1))
	return max(wait, min(asked, maxPause))
}
