package release

import "fmt"

// Severity reports whether a finding stops the action.
type Severity int

// The severities, the milder first.
const (
	// Warn is shown to the user; the action may continue.
	Warn Severity = iota
	// Refuse forbids the action.
	Refuse
)

// String is "warn" or "refuse".
func (s Severity) String() string {
	if s == Refuse {
		return "refuse"
	}
	return "warn"
}

// Finding is one thing that the catalogue has to say about a release, a hop or
// a flag.
type Finding struct {
	Severity Severity
	// Topic is what a finding about a release is about; empty for others.
	Topic Topic
	// Message is one sentence: what, why, and what to do.
	Message string
}

// Topic is what a finding about a release is about.
type Topic string

// The topics.
const (
	// Faults are fixed by a later patch.
	Faults Topic = "release-faults"
	// Unknown is a patch that the catalogue does not know.
	Unknown Topic = "release-unknown"
	// Ended is a line that is no longer maintained.
	Ended Topic = "release-ended"
)

// about sets the topic.
func (f Finding) about(topic Topic) Finding {
	f.Topic = topic
	return f
}

// refuse makes a finding that forbids.
func refuse(format string, args ...any) Finding {
	return Finding{Severity: Refuse, Message: fmt.Sprintf(format, args...)}
}

// warn makes a finding that only tells.
func warn(format string, args ...any) Finding {
	return Finding{Severity: Warn, Message: fmt.Sprintf(format, args...)}
}
