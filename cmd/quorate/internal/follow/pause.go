package follow

import (
	"time"
)

// The longest pause between two polls that fail.
const (
	maxPause     = 5 * time.Minute
	pauseFactor  = 10
	jitterFactor = 0.1
)

// Pause returns how long to wait before the next attempt: the interval, plus or minus
// a tenth, so that many daemons do not ask one server at the same time; twice as long
// after each failure from the second on; and never shorter than the server asks for.
func Pause(interval time.Duration, failed int, atLeast time.Duration, random float64) time.Duration {
	longest := max(interval, min(maxPause, pauseFactor*interval))
	wait := longest
	if n := max(failed-1, 0); n < 8 && interval <= maxPause {
		wait = min(interval<<n, longest)
	}
	wait += time.Duration(float64(wait) * jitterFactor * (2*random - 1))
	return max(wait, min(atLeast, maxPause))
}
