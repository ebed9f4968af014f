package plan

import (
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/plan/auth"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Make returns what to do next about one cluster, and why.
func Make(d state.Desired, o state.Observed, now time.Time) decision.Plan {
	return makeWith(table(), d, o, now)
}

// Decide is Make without the forecast: a hold, or the one step that is due. It costs
// a fraction of it.
func Decide(d state.Desired, o state.Observed, now time.Time) decision.Plan {
	s := situation.Of(d, o, now)
	return decide(first(table(), s), s)
}

// makeWith is Make with a rule table of the caller's choice: tests take rules
// out to show that each of them is needed.
func makeWith(rules []rule, d state.Desired, o state.Observed, now time.Time) decision.Plan {
	s := situation.Of(d, o, now)
	v := first(rules, s)
	p := decide(v, s)
	p.Warnings = slices.Concat(s.Warnings(), objects.Warnings(s), auth.Warnings(s), certificates.Warnings(s))
	switch {
	case v.Hold != nil:
		p.Steps = forecastBehind(rules, s, *v.Hold)
	case v.Step != nil:
		p.Steps = append(p.Steps, forecast(rules, s, *v.Step)...)
	}
	return p
}

// decide is the plan that a verdict makes, without a forecast.
func decide(v verdict.Verdict, s *situation.Situation) decision.Plan {
	switch {
	case v.Hold != nil:
		return decision.Plan{Hold: v.Hold}
	case v.Step != nil:
		p := decision.Plan{Steps: []decision.Step{judged(s, *v.Step)}}
		if s.Desired.Spec.Mode == schema.ModeObserve {
			p = p.ObserveOnly()
		}
		return p
	}
	return decision.Plan{}
}
