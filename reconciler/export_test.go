package reconciler

import (
	"context"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/state"
)

// The parts of a pass, one by one, for tests.

func (r *Reconciler) Decide(ctx context.Context, c desired.Cluster) (*observe.View, decision.Plan, error) {
	return r.decide(ctx, c)
}

func (r *Reconciler) Again(ctx context.Context, v *observe.View, a action.Action) (*observe.View, error) {
	return r.decideAgain(ctx, v, a)
}

func (r *Reconciler) CarryOut(ctx context.Context, v *observe.View, s decision.Step) error {
	return r.execute(ctx, v, s)
}

func (r *Reconciler) Next(ctx context.Context) bool { return r.queue.Next(ctx, handler{r}) }

func (r *Reconciler) TakesPlace(v *observe.View, a action.Action) bool { return r.takesPlace(v, a) }

func (r *Reconciler) FindOrphans() { r.findOrphans() }

func (r *Reconciler) WatchOrphans(ctx context.Context) { r.watchOrphans(ctx) }

func (r *Reconciler) Enqueue(key string) { r.enqueue(key) }

func (r *Reconciler) Queue() queue.Queue { return r.queue }

// PlanBy lets others than the rules answer what to do: planned when a cluster is observed,
// and decide before an action.
func (r *Reconciler) PlanBy(planned, decide func(state.Desired, state.Observed, time.Time) decision.Plan) {
	r.rules = rules{planned, decide}
}

// PassOver makes one pass over a key, as a worker does, and reports whether it is this
// process's to make.
func (r *Reconciler) PassOver(ctx context.Context, key string) (mine bool, err error) {
	_, mine, err = handler{r}.Pass(ctx, key)
	return mine, err
}
