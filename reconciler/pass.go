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
	kind, name := "", ""
	if a, ok := act.(action.ApplyObject); ok {
		kind, name = a.ObjectKind, a.Name
	}
	fresh, err := r.Observer.Refresh(ctx, v, kind, name)
	if err != nil {
		return nil, err
	}
	p, err := r.decideFresh(ctx, fresh)
	if err != nil {
		return nil, err
	}
	if p.Hold != nil || len(p.Steps) == 0 || !sameAction(p.Steps[0].Action, act) {
		return nil, state.ErrChanged
	}
	return fresh, nil
}

// sameAction reports whether two actions are the same to the last field: their text
// names the object but not its UID.
func sameAction(a, b action.Action) bool { return reflect.DeepEqual(a, b) }
