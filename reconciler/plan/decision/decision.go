// Package decision has what the planner answers: a plan of steps, or a hold. It has no
// rules: what tells of a plan, or executes its first step, needs no more than this.
package decision

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// Plan is what to do about one cluster.
type Plan struct {
	// Hold is why nothing may be done now; nil when Steps[0] may be.
	Hold *Hold
	// Steps in order. Steps behind the first, and all steps behind a Hold, are
	// a forecast.
	Steps []Step
	// Warnings are about what is applied all the same.
	Warnings []situation.Remark
}

// Step is an action and one sentence saying why.
type Step struct {
	Action action.Action
	// Reason is the same from pass to pass, and Detail what this one has measured for
	// it.
	Reason, Detail string
	// AtOnce says that members are down until the step is taken: where it did not last
	// because another writer undid it, it is taken again at once.
	AtOnce bool
	// Otherwise is what a commit can say that does without the step, where it keeps
	// failing; "" for nothing.
	Otherwise string
	// Undo says until when the step can be taken back, and how.
	Undo action.Undo
}

// String is the step on one line.
func (s Step) String() string { return state.WithDetail(s.Steady(), s.Detail) }

// Steady is the step without what was measured.
func (s Step) Steady() string { return s.Action.String() + ": " + s.Reason }

// Because is the reason, with what was measured.
func (s Step) Because() string { return state.WithDetail(s.Reason, s.Detail) }

// HoldKind is the kind of waiting.
type HoldKind string

// The kinds of holds.
const (
	// Waiting ends on its own: something that was started is not over yet.
	Waiting HoldKind = "Waiting"
	// Confirm asks the caller for another round of health, then to plan again.
	Confirm HoldKind = "Confirm"
	// Unhealthy ends when the cluster is healthy again.
	Unhealthy HoldKind = "Unhealthy"
	// Unreachable ends when quorate reaches the members again: they serve, as far as
	// Kubernetes can tell, and it is quorate that does not see them.
	Unreachable HoldKind = "Unreachable"
	// Stopped is a roll that stopped at a member that does not come back.
	Stopped HoldKind = "Stopped"
	// Refused ends with a new commit: what Git asks for is not safe.
	Refused HoldKind = "Refused"
	// ObserveOnly is a cluster that quorate may only observe.
	ObserveOnly HoldKind = "Observe"
)

// RuleRecovery and RuleRemedy are the rules that speak when a cluster has lost its quorum:
// the second one where its members need no more than another template to come back.
const (
	RuleRecovery = "recovery"
	RuleRemedy   = "remedy"
)

// Hold is why nothing is done, and what would change that.
type Hold struct {
	Kind HoldKind
	// Rule is the name of the rule that holds.
	Rule string
	// Member is the one that the hold is about; "" for none.
	Member string
	// Message is what is awaited, in one sentence that is the same from pass to
	// pass.
	Message string
	// Detail is what this pass has measured: numbers, an error's words, times that
	// move.
	Detail string
	// Do is what a person can do; empty when the hold ends on its own.
	Do string
	// Since is when the awaited thing began; zero when unknown.
	Since time.Time
	// Again is how long until the next pass.
	Again time.Duration
	// Listen says that a hold of the kind Confirm wants the leader asked whom it hears, too.
	Listen bool
	// Compare says that a hold of the kind Confirm wants the members' data compared, too.
	Compare bool
	// Stops is the member that stops next, where the data is compared for that: a leader
	// that hands over meanwhile does not hand over to it.
	Stops string
	// Places says that a hold of the kind Confirm wants it read whether nodes take the pods
	// back that a roll stops, and the members not asked.
	Places bool

	// awaits is what a forecast supposes to have come about behind the hold.
	Awaits awaits
}

// awaits is what a hold waits for, where a forecast has to know it.
type awaits int

const (
	// AwaitsWindow is for the next maintenance window, however far away. The zero
	// value is for what comes about with time.
	AwaitsWindow awaits = iota + 1
	// AwaitsFleet is for other clusters.
	AwaitsFleet
	// AwaitsClients is for clients, and members, to take up what they are to trust or to show.
	AwaitsClients
)

// String is the hold on one line.
func (h Hold) String() string { return h.withDo(h.Told()) }

// Steady is the hold without what was measured.
func (h Hold) Steady() string { return h.withDo(h.Message) }

// Told is the message, with what was measured.
func (h Hold) Told() string { return state.WithDetail(h.Message, h.Detail) }

func (h Hold) withDo(message string) string {
	if h.Do == "" {
		return message
	}
	return message + "; " + h.Do
}

// ObserveOnly turns a plan with a step into a report of it, for a cluster that quorate
// may only observe.
func (p Plan) ObserveOnly() Plan {
	p.Hold = &Hold{
		Kind:    ObserveOnly,
		Rule:    "observe",
		Message: fmt.Sprintf("mode is Observe: quorate would %s, and touches nothing", p.Steps[0].Action),
		Do:      "set spec.mode to Enforce to let it act",
		Again:   5 * time.Minute,
	}
	return p
}

// Idle says that there is nothing to do and nothing to wait for.
func (p Plan) Idle() bool { return p.Hold == nil && len(p.Steps) == 0 }

// Text renders the plan for a terminal, a line a step.
func (p Plan) Text() string {
	var b strings.Builder
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	if p.Hold != nil {
		fmt.Fprintf(&b, "hold (%s): %s\n", p.Hold.Kind, p.Hold)
	}
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "%2d. %s\n", i+1, s)
	}
	if b.Len() == 0 {
		return "nothing to do\n"
	}
	return b.String()
}

// Restarts are the names of the members that the steps stop, in order.
func Restarts(steps []Step) []string {
	var names []string
	for _, s := range steps {
		if a, ok := s.Action.(action.RestartMember); ok {
			names = append(names, a.Member)
		}
	}
	return names
}
