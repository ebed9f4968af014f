package report

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// driftStatus are the objects that are not what quorate wants of them. In a fight it leaves
// out when that was: a writer that changes an object again and again to the same is no
// news.
func driftStatus(v *observe.View, p decision.Plan) []schema.DriftStatus {
	var list []schema.DriftStatus
	for _, o := range v.Observed.Objects {
		d, there := v.Drift(o.Kind, o.Name)
		if len(d.Left) > 0 {
			list = append(list, leftStatus(o, d.Left))
		}
		if o.State == state.ObjectInSync || sleeps(v, d) {
			continue
		}
		s := schema.DriftStatus{Kind: o.Kind, Name: o.Name, State: string(o.State), Correction: correction(o, p)}
		switch f := o.Fight; {
		case o.Refused != nil:
			s.Fight = "it is not taken as quorate applies it: " + o.Refused.Problem
		case f == nil:
		case f.ByAdmission():
			s.Fight = fmt.Sprintf("the API server changes it before it is stored, by an admission policy or webhook: %s", f.Fields)
		default:
			s.Fight = fmt.Sprintf("%s changes %s again each time that it is put back", f.Manager, f.Fields)
		}
		if there {
			s.Fields, s.Manager, s.Changes = d.Fields, d.Manager, fieldDrifts(d.Changes)
			s.Since = schema.TimeText(d.Time)
		}
		if o.Fight != nil {
			s.Since = ""
			for i := range s.Changes {
				s.Changes[i].Since = ""
			}
		}
		list = append(list, s)
	}
	return list
}

// sleeps reports whether nobody has changed an object that differs, and what quorate wants of it is
// applied when its cluster, which is hibernated, wakes.
func sleeps(v *observe.View, d drift.Drift) bool {
	return d.Own && v.Observed.Record != nil && v.Observed.Record.Hibernated
}

// leftStatus is what others have set of an object and Git lets stay.
func leftStatus(o state.Object, left []drift.Change) schema.DriftStatus {
	s := schema.DriftStatus{Kind: o.Kind, Name: o.Name, State: string(state.ObjectDrifted), Correction: "never: spec.drift.ignore reports it only", Changes: fieldDrifts(left)}
	for _, c := range left {
		s.Fields = append(s.Fields, c.Path)
	}
	first := slices.MinFunc(left, func(a, b drift.Change) int { return a.Time.Compare(b.Time) })
	s.Manager, s.Since = first.Manager, schema.TimeText(first.Time)
	return s
}

func fieldDrifts(changes []drift.Change) []schema.FieldDrift {
	var list []schema.FieldDrift
	for _, c := range changes {
		list = append(list, schema.FieldDrift{Path: c.Path, Live: c.Live, Wanted: c.Want, Manager: c.Manager, Since: schema.TimeText(c.Time)})
	}
	return list
}

// correction says whether and when an object is put back, or why not. The steps behind the
// first one are a forecast, so that they promise no more than an order.
func correction(o state.Object, p decision.Plan) string {
	switch {
	case o.State == state.ObjectForeign:
		return "never: it is not quorate's"
	case p.Hold != nil && p.Hold.Kind == decision.ObserveOnly:
		return "never: spec.mode is Observe"
	case o.Left:
		return "never: spec.drift.mode is Detect"
	case o.Refused != nil:
		return "tried again at " + schema.TimeText(o.Refused.Until)
	case o.Fight != nil:
		return "tried again at " + schema.TimeText(o.Fight.Until)
	}
	apply := action.ApplyObject{ObjectKind: o.Kind, Name: o.Name}
	for i, step := range p.Steps {
		switch {
		case step.Action != action.Action(apply):
		case p.Hold != nil:
			return "when the hold of the rule " + p.Hold.Rule + " has ended"
		case i == 0:
			return "now"
		default:
			return "after the steps before it"
		}
	}
	if p.Hold != nil {
		return "when the hold of the rule " + p.Hold.Rule + " has ended"
	}
	return "after the steps before it"
}
