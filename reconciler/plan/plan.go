package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Plan is what to do about one cluster.
type Plan struct {
	// Hold says why nothing may be done now; nil when Steps[0] may be.
	Hold *Hold
	// Steps in order. Steps behind the first, and all steps behind a Hold, are
	// a forecast.
	Steps []Step
	// Warnings are about a wish that is carried out all the same.
	Warnings []situation.Remark
}

// Step is an action and one sentence saying why.
type Step struct {
	Action action.Action
	// Reason is the same from look to look, and Detail what this one has measured for
	// it.
	Reason, Detail string
	// Undo says until when the step can be taken back, and how.
	Undo action.Undo
}

// String is the step on one line.
func (s Step) String() string { return state.WithDetail(s.Steady(), s.Detail) }

// Steady is the step without what was measured.
func (s Step) Steady() string { return s.Action.String() + ": " + s.Reason }

// Because is the reason, with what was measured.
func (s Step) Because() string { return state.WithDetail(s.Reason, s.Detail) }

// HoldKind says what sort of waiting a Hold is.
type HoldKind string

// The kinds of holds.
const (
	// HoldWaiting ends by itself: something that was started is not over yet.
	HoldWaiting HoldKind = "Waiting"
	// HoldConfirm asks the caller for another round of health, then to plan again.
	HoldConfirm HoldKind = "Confirm"
	// HoldUnhealthy ends when the cluster is healthy again.
	HoldUnhealthy HoldKind = "Unhealthy"
	// HoldStopped is a roll that stopped at a member that does not come back.
	HoldStopped HoldKind = "Stopped"
	// HoldRefused ends with a new commit: what Git asks for is not safe.
	HoldRefused HoldKind = "Refused"
	// HoldObserve is a cluster that quorate may only look at.
	HoldObserve HoldKind = "Observe"
)

// Hold says why nothing is done, and what would change that.
type Hold struct {
	Kind HoldKind
	// Rule is the name of the rule that holds.
	Rule string
	// Member is the one that the hold is about; "" for none.
	Member string
	// Message says what is awaited, in one sentence that is the same from look to
	// look.
	Message string
	// Detail is what this look has measured: numbers, an error's words, times that
	// move.
	Detail string
	// Do says what a person can do; empty when the hold ends by itself.
	Do string
	// Since is when the awaited thing began; zero when unknown.
	Since time.Time
	// Again is how long until the caller should look again.
	Again time.Duration

	// awaits is what a forecast supposes to have come about behind the hold.
	awaits awaits
}

// awaits is what a hold waits for, where a forecast has to know it.
type awaits int

const (
	// awaitsWindow is for the next maintenance window, however far away. The zero
	// value is for what comes about with time.
	awaitsWindow awaits = iota + 1
	// awaitsFleet is for other clusters.
	awaitsFleet
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

// Make says what to do next about one cluster, and why.
func Make(d state.Desired, o state.Observed, now time.Time) Plan {
	return makeWith(table(), d, o, now)
}

// Decide is Make without the forecast: a hold, or the one step that is due. It costs
// a fraction of it.
func Decide(d state.Desired, o state.Observed, now time.Time) Plan {
	s := situation.Of(d, o, now)
	return decide(first(table(), s), s)
}

// makeWith is Make with a rule table of the caller's choice: tests take rules
// out to show that each of them is needed.
func makeWith(rules []rule, d state.Desired, o state.Observed, now time.Time) Plan {
	s := situation.Of(d, o, now)
	v := first(rules, s)
	p := decide(v, s)
	p.Warnings = s.Warnings()
	switch {
	case v.hold != nil:
		p.Steps = forecastBehind(rules, s, *v.hold)
	case v.step != nil:
		p.Steps = append(p.Steps, forecast(rules, s, *v.step)...)
	}
	return p
}

// decide is the plan that a verdict makes, without a forecast.
func decide(v verdict, s *situation.Situation) Plan {
	switch {
	case v.hold != nil:
		return Plan{Hold: v.hold}
	case v.step != nil:
		return observeOnly(s.Desired, Plan{Steps: []Step{judged(s, *v.step)}})
	}
	return Plan{}
}

// observeOnly turns a plan into a report where the file asks for that.
func observeOnly(d state.Desired, p Plan) Plan {
	if d.Spec.Mode != schema.ModeObserve || len(p.Steps) == 0 || p.Hold != nil {
		return p
	}
	p.Hold = &Hold{
		Kind:    HoldObserve,
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
