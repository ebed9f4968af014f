package schedule

import "time"

// clockTolerance is how far a time may lie ahead of the clock and still be taken for
// one that has been: clocks are set, and those of two nodes differ.
const clockTolerance = 5 * time.Minute

// Ahead reports whether a time that was noted when it was "now" lies ahead of the
// clock, by more than clocks differ: the clock was wrong then, or is now.
func Ahead(noted, now time.Time) bool { return noted.After(now.Add(clockTolerance)) }
