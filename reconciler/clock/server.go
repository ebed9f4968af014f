package clock

import "time"

// second is how exact a server tells the time in its answers.
const second = time.Second

// Skew is how far the own clock is ahead of that of a server which said its time in an
// answer; negative where it is behind. When between question and answer the server looked is
// not known, nor which part of its second it was: what all of that explains is no skew.
func Skew(server, asked, answered time.Time) time.Duration {
	switch latest := server.Add(second); {
	case asked.After(latest):
		return asked.Sub(latest)
	case answered.Before(server):
		return answered.Sub(server)
	}
	return 0
}

// Counted is the time from which waits count: the own one, or that of the server where the
// own clock is ahead of it by more than clocks differ. Most that is waited for was noted by
// it, and a clock that is ahead would cut each grace short.
func Counted(own time.Time, skew time.Duration) time.Time {
	if skew > Tolerance {
		// Without the monotonic reading, which a step of the wall clock does not move: after a step of two hours it
		// would be two hours behind, and every wait that began before the step two hours longer.
		return own.Round(0).Add(-skew)
	}
	return own
}
