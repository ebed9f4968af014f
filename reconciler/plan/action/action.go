// Package action has what can be done: one small struct a kind, with its precondition,
// its effect on a situation and its way back. Package plan chooses, package execute
// executes, and both need the same words.
package action

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
)

// Action is one thing to do. Each kind carries its own precondition, which the
// executor checks again, uncached, just before it acts. A kind is in the
// file of its topic, action_*.go, with all that there is to say about it.
//
//sumtype:decl
type Action interface {
	// String names the action and its object in a few words.
	String() string
	// Disruptive reports whether a member stops serving for a moment.
	Disruptive() bool
	// Kind is the kind of the action in CamelCase, as Events and metrics have it.
	Kind() string
	// After changes a situation to what it is when the action went well.
	After(*situation.Situation)
	// Undo says until when the action can be taken back, and how.
	Undo(*situation.Situation) Undo
	isAction()
}

// Change names a change of version, or the version when only settings change.
func Change(from, to string) string {
	if from == to {
		return "on " + to
	}
	return from + " → " + to
}
