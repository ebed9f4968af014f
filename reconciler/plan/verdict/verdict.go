// Package verdict has what one rule of the planner says: nothing, a step, or a hold, and
// the short words with which rules say it.
package verdict

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
)

// Verdict is what one rule says: nothing (the zero verdict), a hold, a step, or
// that there is nothing to do whatever the rules below would say.
type Verdict struct {
	Hold *decision.Hold
	Step *decision.Step
	Idle bool
}

// Silent reports whether the rule had nothing to say.
func (v Verdict) Silent() bool { return v.Hold == nil && v.Step == nil && !v.Idle }

// OneOf is what the first part of a rule says that has something to say.
func OneOf(s *situation.Situation, parts ...func(*situation.Situation) Verdict) Verdict {
	for _, part := range parts {
		if v := part(s); !v.Silent() {
			return v
		}
	}
	return Pass()
}

// The times between two passes, by what is awaited.
const (
	Quickly   = 250 * time.Millisecond
	Soon      = 2 * time.Second
	Later     = 30 * time.Second
	Rarely    = 5 * time.Minute
	Instantly = time.Duration(0)
)

// Idle is the verdict that all is as it should be, and that no rule below is
// asked.
func Idle() Verdict { return Verdict{Idle: true} }

// Pass is the verdict of a rule that has nothing to say.
func Pass() Verdict { return Verdict{} }

// Do is the verdict of a rule that wants an action.
func Do(a action.Action, reason string) Verdict {
	return Verdict{Step: &decision.Step{Action: a, Reason: reason}}
}

// AtOnce lets a step be taken again at once where it did not last.
func (v Verdict) AtOnce() Verdict {
	v.Step.AtOnce = true
	return v
}

// Otherwise adds to a step what a commit can say that does without it.
func (v Verdict) Otherwise(way string) Verdict {
	v.Step.Otherwise = way
	return v
}

// Wait is a hold that ends on its own, within minutes. One that does not wants a person:
// then it is of the kind Unhealthy, and says what to do; and it says so from the beginning
// where nobody knows since when it lasts.
func Wait(s *situation.Situation, message string, since time.Time, do string) Verdict {
	return WaitFor(s, message, since, situation.ComebackTime, do)
}

// WaitFor is Wait for what may take longer.
func WaitFor(s *situation.Situation, message string, since time.Time, most time.Duration, do string) Verdict {
	v := WaitUntil(message, since)
	late := !since.IsZero() && s.Now.Sub(since) >= most
	if late {
		v.Hold.Kind = decision.Unhealthy
	}
	if late || since.IsZero() {
		v.Hold.Do = do
	}
	return v
}

// WaitUntil is a hold that ends at a time that is known: the rule says something else then.
func WaitUntil(message string, since time.Time) Verdict {
	return Verdict{Hold: &decision.Hold{Kind: decision.Waiting, Message: message, Since: since, Again: Soon}}
}

// Refuse is a hold that ends with a new commit.
func Refuse(message, do string) Verdict {
	return Verdict{Hold: &decision.Hold{Kind: decision.Refused, Message: message, Do: do, Again: Rarely}}
}

// About adds to a verdict which member it is about, and what was measured.
func (v Verdict) About(r situation.Remark) Verdict {
	switch {
	case v.Hold != nil:
		v.Hold.Member, v.Hold.Detail = r.Member, r.Detail
	case v.Step != nil:
		v.Step.Detail = r.Detail
	}
	return v
}

// At adds to a hold the member that it is about.
func (v Verdict) At(member string) Verdict {
	v.Hold.Member = member
	return v
}

// Advise adds to a hold what a person can do.
func (v Verdict) Advise(do string) Verdict {
	v.Hold.Do = do
	return v
}

// Again sets when a hold is looked at again.
func (v Verdict) Again(in time.Duration) Verdict {
	v.Hold.Again = in
	return v
}

// Measured adds what was measured.
func (v Verdict) Measured(format string, args ...any) Verdict {
	detail := fmt.Sprintf(format, args...)
	switch {
	case v.Hold != nil:
		v.Hold.Detail = detail
	case v.Step != nil:
		v.Step.Detail = detail
	}
	return v
}

// Unhealthy is a hold that ends when the cluster is healthy.
func Unhealthy(message, do string) Verdict {
	return Verdict{Hold: &decision.Hold{Kind: decision.Unhealthy, Message: message, Do: do, Again: Soon}}
}

// ConfirmIn asks for another round.
func ConfirmIn(in time.Duration, message string) Verdict {
	return Verdict{Hold: &decision.Hold{Kind: decision.Confirm, Message: message, Again: in}}
}
