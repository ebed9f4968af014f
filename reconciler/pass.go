package reconciler

import (
	"context"
	"reflect"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// again reads the record, the StatefulSet and the pods from the API server
// itself and decides again: an action is carried out only when fresh data leads
// to the very same one.
func (r *Reconciler) again(ctx context.Context, v *observe.View, act action.Action) (*observe.View, error) {
	fresh := *v
	live, err := r.Observer.ReadLive(ctx, v.Cluster)
	if err != nil {
		return nil, err
	}
	fresh.Set = live.Set
	fresh.Observed.Record, fresh.Observed.RecordProblem, fresh.Observed.Set, fresh.Observed.Pods = nil, "", nil, nil
	fresh.ObserveRecord(live.Record)
	fresh.ObserveSet(live)
	if err := r.Observer.Aim(&fresh); err != nil {
		return nil, err
	}
	if err := fresh.ObserveDamage(ctx, r.Observer, live); err != nil {
		return nil, err
	}
	if err := r.Observer.ObserveRestore(ctx, &fresh); err != nil {
		return nil, err
	}
	if a, ok := act.(action.ApplyObject); ok {
		if err := r.Observer.CompareAgain(ctx, &fresh, live, a); err != nil {
			return nil, err
		}
	}
	p, err := r.decideFresh(ctx, &fresh)
	if err != nil {
		return nil, err
	}
	if p.Hold != nil || len(p.Steps) == 0 || !sameAction(p.Steps[0].Action, act) {
		return nil, state.ErrChanged
	}
	return &fresh, nil
}

// sameAction reports whether two actions are the same to the last field: their text
// names the object but not its UID.
func sameAction(a, b action.Action) bool { return reflect.DeepEqual(a, b) }
