package lab

import (
	"fmt"
	"slices"
	"time"
)

// maxFailures bounds the failures that are kept with their text.
const maxFailures = 20

// Failure is one request that was not answered well.
type Failure struct {
	// At is when the request was abandoned, Took how long after it was sent.
	At   time.Time
	Took time.Duration
	// Text is the error.
	Text string
}

// Stats are the figures of a closed loop of requests.
type Stats struct {
	// OK and Failed count requests; a failed one is not repeated.
	OK, Failed int
	// Failures are the first of the failed ones.
	Failures []Failure
	// LongestGap is the longest time between two successive good answers, and
	// LongestGapAt when it ended. A gap that still lasts counts.
	LongestGap   time.Duration
	LongestGapAt time.Time

	begin, last time.Time
	latencies   []time.Duration
}

// newStats counts gaps from now, or from the last good answer of the stats
// before.
func newStats(now, lastOK time.Time) Stats { return Stats{begin: now, last: lastOK} }

func (s *Stats) good(sent, now time.Time) {
	s.OK++
	s.latencies = append(s.latencies, now.Sub(sent))
	s.gap(now)
	s.last = now
}

func (s *Stats) bad(sent, now time.Time, err error) {
	s.Failed++
	if len(s.Failures) < maxFailures {
		s.Failures = append(s.Failures, Failure{At: now, Took: now.Sub(sent), Text: err.Error()})
	}
}

// gap measures the time since the last good answer.
func (s *Stats) gap(now time.Time) {
	if gap := now.Sub(s.last); gap > s.LongestGap {
		s.LongestGap, s.LongestGapAt = gap, now
	}
}

// closed is a copy as of now.
func (s *Stats) closed(now time.Time) Stats {
	out := *s
	out.gap(now)
	out.Failures = slices.Clone(s.Failures)
	out.latencies = slices.Clone(s.latencies)
	slices.Sort(out.latencies)
	return out
}

// Latency is a percentile of the good answers' times, q from 0 to 1; 0 when
// there are none. It is for Stats that a Writer has returned.
func (s Stats) Latency(q float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(int(q*float64(len(s.latencies))), len(s.latencies)-1)]
}

// String is the figures on one line.
func (s Stats) String() string {
	return fmt.Sprintf("%d ok, %d failed, longest gap %s, p50 %s, p99 %s",
		s.OK, s.Failed, Round(s.LongestGap), Round(s.Latency(0.5)), Round(s.Latency(0.99)))
}

// Round makes a duration short enough to read.
func Round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}
