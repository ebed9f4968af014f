// Package clock says what the times are worth that other machines have noted: nodes, the
// API server, and quorate itself where it ran on another node. Each has a clock of its
// own, and one that is wrong must neither make a wait of years nor cut one short. It is
// pure: the time is given to it.
package clock

import "time"

// Tolerance is how far a time may lie ahead of the clock and still be taken for one that
// has been: clocks are set, and those of two nodes differ.
const Tolerance = time.Minute

// Ahead reports whether a time that was noted when it was "now" lies ahead of the clock,
// by more than clocks differ: the clock was wrong then, or is now.
func Ahead(noted, now time.Time) bool { return noted.After(now.Add(Tolerance)) }

// Age is how long ago something was noted, and never negative: a clock that is a little
// slow has seen it just now. What lies further ahead has no age: known is false, as it
// is where nothing was noted.
func Age(noted, now time.Time) (age time.Duration, known bool) {
	if noted.IsZero() || Ahead(noted, now) {
		return 0, false
	}
	return max(0, now.Sub(noted)), true
}

// Left is how much is left of a wait that began when something was noted: never more than
// the whole wait, which is what is left where that time is not to be believed.
func Left(wait time.Duration, noted, now time.Time) time.Duration {
	age, _ := Age(noted, now)
	return max(0, wait-age)
}
