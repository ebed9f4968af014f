package plan

import "fmt"

// Action is one thing to do. Each kind carries its own precondition, which the
// executor checks again, uncached, just before it acts. A kind stands in the
// file of its topic, action_*.go, with all that there is to say about it.
//
//sumtype:decl
type Action interface {
	// String names the action and its object in a few words.
	String() string
	// Disruptive says whether a member stops serving for a moment.
	Disruptive() bool
	// after changes a situation to what it is when the action went well.
	after(*situation)
	// undo says until when the action can be taken back, and how.
	undo(*situation) string
	isAction()
}

// change names a change of version, or the version when only settings change.
func change(from, to string) string {
	if from == to {
		return "on " + to
	}
	return from + " → " + to
}

// members is "1 member", "3 members".
func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// podName is the name that a StatefulSet gives the pod of an ordinal.
func podName(cluster string, ordinal int32) string { return fmt.Sprintf("%s-%d", cluster, ordinal) }
