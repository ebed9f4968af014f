package reconciler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
)

// decideAgain reads the record, the StatefulSet and the pods from the API server
// itself and decides again: an action is applied only when fresh data leads
// to the very same one.
func (r *Reconciler) decideAgain(ctx context.Context, v *observe.View, act action.Action) (*observe.View, error) {
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

// Pass observes one cluster, decides, and executes at most one action. It
// returns how long until the next pass.
func (r *Reconciler) Pass(ctx context.Context, c desired.Cluster) (time.Duration, error) {
	v, p, err := r.decide(ctx, c)
	if err != nil {
		return 0, err
	}
	r.Reporter.Planned(v, p)
	r.noteCluster(v, p)
	switch {
	case p.Hold != nil:
		return max(p.Hold.Again, state.MinRequeue), nil
	case len(p.Steps) == 0:
		return r.Options.Resync, nil
	}
	if err := r.execute(ctx, v, p.Steps[0]); err != nil {
		return 0, err
	}
	return r.pace.after(c.Key(), p.Steps[0].String()), nil
}

// Plan returns what a Pass would do, and changes nothing.
func (r *Reconciler) Plan(ctx context.Context, c desired.Cluster) (decision.Plan, error) {
	_, p, err := r.decide(ctx, c)
	return p, err
}

// decide observes one cluster and plans. Where the plan wants health confirmed,
// it observes again and plans again.
func (r *Reconciler) decide(ctx context.Context, c desired.Cluster) (*observe.View, decision.Plan, error) {
	v, err := r.Observer.Observe(ctx, c)
	if err != nil {
		return nil, decision.Plan{}, err
	}
	p, err := r.plan(ctx, v)
	if err == nil && p.Hold != nil && p.Hold.Kind == decision.Confirm && len(v.Endpoints) > 0 {
		r.Observer.Confirm(ctx, v)
		p, err = r.plan(ctx, v)
	}
	return v, p, err
}

// execute decides again on fresh data, and acts.
func (r *Reconciler) execute(ctx context.Context, v *observe.View, step decision.Step) error {
	release, reserved := r.reserve(ctx, v, step.Action)
	defer release()
	fresh, err := r.decideAgain(ctx, v, step.Action)
	if err != nil {
		return err
	}
	if !reserved && r.takesPlace(fresh, step.Action) {
		return state.ErrChanged
	}
	r.Reporter.Starting(fresh, step)
	started := time.Now()
	if err := r.Executor.Execute(ctx, fresh, step.Action); errors.Is(err, state.ErrChanged) {
		return fmt.Errorf("%s: %w", step.Action, err)
	} else if err != nil {
		return err
	}
	r.Reporter.Done(fresh, step, time.Since(started))
	return nil
}
