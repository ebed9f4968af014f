package reconciler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/quorate/quorate/reconciler/copies"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// decideAgain reads the record, the StatefulSet and the pods from the API server
// itself and decides again: an action is applied only when fresh data leads
// to the very same one.
func (r *Reconciler) decideAgain(ctx context.Context, v *observe.View, act action.Action) (*observe.View, error) {
	kind, name := restsOn(act)
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

// restsOn is what an action rests on beside the record, the StatefulSet and the pods: the
// object that it applies; the volume claims, where it stops a member, because one that was
// deleted a moment ago goes with the pod, with the budget, which keeps others from stopping
// one beside it; or where it lets one join, which is to get another volume.
func restsOn(act action.Action) (kind, name string) {
	a, applies := act.(action.ApplyObject)
	_, resizes := act.(action.ResizeSet)
	_, joins := act.(action.BeginJoin)
	switch {
	case applies:
		return a.ObjectKind, a.Name
	case resizes || joins || act.Disruptive():
		return "PersistentVolumeClaim", ""
	}
	return "", ""
}

// sameAction reports whether two actions are the same to the last field: their text
// names the object but not its UID.
func sameAction(a, b action.Action) bool { return reflect.DeepEqual(a, b) }

// Pass observes one cluster, decides, and executes at most one action. It
// returns how long until the next pass, or until a step that failed is tried again.
func (r *Reconciler) Pass(ctx context.Context, c desired.Cluster) (time.Duration, error) {
	decided := r.Reporter.Metrics.Passing()
	defer decided()
	v, p, err := r.look(ctx, c)
	if err != nil {
		return 0, err
	}
	r.Reporter.Metrics.Looked(c.Key())
	var asked []doubt
	for next := further(v, p, asked); next != ""; next = further(v, p, asked) {
		if last, left := r.pace.left(v.Cluster, next); left > 0 {
			return r.unconfirmed(v, p, last, left)
		}
		compare, begun := p.Hold.Compare, time.Now()
		if p, err = r.confirm(ctx, v, p, v.Desired.Spec.Mode != schema.ModeObserve); err != nil {
			return 0, err
		}
		asked = append(asked, doubt{name: next, compared: compare, took: time.Since(begun)})
	}
	r.planned(v, p)
	switch {
	case p.Hold != nil:
		if p.Hold.Kind == decision.Waiting && v.Observed.Restore.State == state.RestoreRunning {
			if err := r.Executor.KeepOffered(ctx, v); err != nil {
				return 0, err
			}
		}
		return r.Observer.Lanes.Spaced(v.Cluster.Key(), r.pace.held(v.Cluster, asked, *p.Hold)), nil
	case len(p.Steps) == 0:
		return r.rest(ctx, v)
	}
	decided()
	return r.take(ctx, v, p.Steps[0], asked)
}

// rest ends a pass that finds nothing to do. How far members have written is noted by what they
// answer in full: a status alone may tell of what is not on a disk yet.
func (r *Reconciler) rest(ctx context.Context, v *observe.View) (time.Duration, error) {
	r.pace.rest(v.Cluster)
	r.Observer.Rested(v)
	if v.Glanced {
		return r.resync(), nil
	}
	return r.resync(), execute.KeepFloors(ctx, r.Executor, v)
}

// spacing is the least time between two looks at clusters at rest, whichever they are: so many clusters
// that they would come sooner are looked at less often.
const spacing = 5 * time.Millisecond

// resync is how long a cluster at rest is left alone of which the watches tell nothing.
func (r *Reconciler) resync() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.Options.Resync, time.Duration(len(r.desired))*spacing)
}

// settling is how often members are asked once more in the pass that has compared their
// data: they are a moment behind after that, and another pass would compare them again.
const settling = 5

// further is what to confirm next in a pass that has confirmed this much, "" for nothing:
// each once, and the data by one comparison, behind which the members settle.
func further(v *observe.View, p decision.Plan, asked []doubt) string {
	next := confirming(v, p)
	if next == "" {
		return ""
	}
	again := 1
	for _, d := range asked {
		switch {
		case d.compared && p.Hold.Compare:
			return ""
		case d.compared:
			again = settling
		case d.name == next:
			again--
		}
	}
	if again <= 0 {
		return ""
	}
	return next
}

// unconfirmed ends a pass whose members were asked again, or compared, a moment ago, for the
// same step: it failed, or could not be taken.
func (r *Reconciler) unconfirmed(v *observe.View, p decision.Plan, last try, left time.Duration) (time.Duration, error) {
	if last.problem == "" {
		return r.atMost(left), nil
	}
	if len(p.Steps) > 0 {
		p.Hold = nil
		r.planned(v, p)
	}
	return r.notYet(v, last, left)
}

// take executes a step, unless it failed, or did not last, a moment ago.
func (r *Reconciler) take(ctx context.Context, v *observe.View, step decision.Step, asked []doubt) (time.Duration, error) {
	if last, left := r.pace.left(v.Cluster, failing(step), lasting(step)); left > 0 {
		return r.notYet(v, last, left)
	}
	if err := r.execute(ctx, v, step); err != nil {
		last := r.pace.failed(v.Cluster, step, asked, err)
		if r.refused(v, step.Action, err) {
			return state.MinRequeue, nil // what heals does not wait for it
		}
		r.reportRetry(v, last)
		return r.atMost(last.wait()), err
	}
	last := r.pace.done(v.Cluster, step, asked)
	return r.notYet(v, last, last.wait())
}

// refused notes that an object was not taken as it was applied, and reports whether that is so.
func (r *Reconciler) refused(v *observe.View, act action.Action, err error) bool {
	kind, name := "", ""
	problem, refused := kube.Refusal(err)
	switch a := act.(type) {
	case action.ApplyObject:
		kind, name = a.ObjectKind, a.Name
	case action.CopyCertificate:
		kind, name = "Secret", a.Namespace+"/"+a.Secret
		problem, refused = copies.Refusal(err)
	case action.DeleteCopy:
		kind, name = "Secret", a.Namespace+"/"+a.Secret
	default:
		return false
	}
	if !refused {
		return false
	}
	again := r.Observer.Fights.Refused(v.Cluster.Key(), kind+"/"+name, problem, v.Cluster.Digest, r.now())
	r.Reporter.Refused(v, kind, name, *again)
	return true
}

// notYet ends a pass after which there is nothing to do but what failed, or what does not
// last. That is no success; the second only once it is more than a blip.
func (r *Reconciler) notYet(v *observe.View, last try, left time.Duration) (time.Duration, error) {
	if last.problem == "" && !last.often() {
		return r.atMost(left), nil
	}
	r.reportRetry(v, last)
	return r.atMost(left), queue.ErrNotYet
}

// atMost keeps passes coming while a step waits: another one may be due.
func (r *Reconciler) atMost(wait time.Duration) time.Duration { return min(wait, r.Options.Resync) }

// reportRetry reports a step that fails, or does not last, for longer than a blip.
func (r *Reconciler) reportRetry(v *observe.View, last try) {
	if !last.often() {
		return
	}
	again := report.Retry{Times: last.times, Since: last.since, Again: last.until, Most: queue.MaxRetry}
	if last.done != "" {
		r.Reporter.Repeated(v.Cluster, last.done, again)
	} else {
		r.Reporter.Waits(v.Cluster, last.problem, last.otherwise, again)
	}
}

// Plan returns what a Pass would do, and changes nothing.
func (r *Reconciler) Plan(ctx context.Context, c desired.Cluster) (decision.Plan, error) {
	_, p, err := r.decide(ctx, c)
	return p, err
}

// decide observes one cluster and plans. Where the plan wants health confirmed,
// it observes again and plans again.
func (r *Reconciler) decide(ctx context.Context, c desired.Cluster) (*observe.View, decision.Plan, error) {
	v, p, err := r.observe(ctx, c)
	if err != nil {
		return v, p, err
	}
	var asked []doubt
	for next := further(v, p, asked); next != ""; next = further(v, p, asked) {
		asked = append(asked, doubt{name: next, compared: p.Hold.Compare})
		if p, err = r.confirm(ctx, v, p, false); err != nil {
			return v, p, err
		}
	}
	return v, p, nil
}

// look observes one cluster, and plans. From a glance at its members follows that all is well, or
// nothing: what is to be done, or held, is decided by what they answer in full.
func (r *Reconciler) look(ctx context.Context, c desired.Cluster) (*observe.View, decision.Plan, error) {
	v, err := r.Observer.Look(ctx, c)
	if err != nil {
		return nil, decision.Plan{}, err
	}
	if !v.Glanced {
		p, err := r.plan(ctx, v)
		return v, p, err
	}
	if p := r.rules.make(v.Desired, v.Observed, r.now()); p.Idle() {
		return v, p, nil
	}
	return r.observe(ctx, c)
}

// observe observes one cluster, and plans.
func (r *Reconciler) observe(ctx context.Context, c desired.Cluster) (*observe.View, decision.Plan, error) {
	v, err := r.Observer.Observe(ctx, c)
	if err != nil {
		return nil, decision.Plan{}, err
	}
	p, err := r.plan(ctx, v)
	return v, p, err
}

// confirm asks the members again, compares their data and listens whom the leader hears where
// the plan wants that, or reads whether members can come back, and plans again. What takes long costs no other cluster its pass. To
// compare stops one member after the other for a while, so that a plan that nothing follows
// from takes their data for the same.
func (r *Reconciler) confirm(ctx context.Context, v *observe.View, p decision.Plan, acts bool) (decision.Plan, error) {
	if p.Hold.Places {
		if err := r.Observer.ReadPlaces(ctx, v); err != nil {
			return p, err
		}
		return r.plan(ctx, v)
	}
	compare := p.Hold.Compare && acts
	defer queue.Aside(ctx)()
	r.Observer.Confirm(ctx, v, observe.Question{Compare: compare, Listen: p.Hold.Listen, Stops: p.Hold.Stops, Well: p.Hold.Again == verdict.Instantly})
	if p.Hold.Compare && !acts {
		v.Observed.AssumeCompared()
	}
	return r.plan(ctx, v)
}

// execute decides again on fresh data, and acts.
func (r *Reconciler) execute(ctx context.Context, v *observe.View, step decision.Step) error {
	turn, reserved, err := r.reserve(ctx, v, step.Action)
	if err != nil {
		return err
	}
	defer turn.End()
	fresh, err := r.decideAgain(ctx, v, step.Action)
	if err != nil {
		return err
	}
	if !reserved && r.takesPlace(fresh, step.Action) {
		return state.ErrChanged
	}
	if err := r.Options.Lease(); err != nil {
		return err // before it is said that the step begins
	}
	r.Reporter.Starting(fresh, step)
	if err := turn.Held(); err != nil {
		return err
	}
	started, ended := time.Now(), r.Reporter.Metrics.Acting(fresh.Cluster, step.Action, r.now())
	defer ended()
	if err := r.Executor.Execute(ctx, fresh, step.Action); errors.Is(err, state.ErrChanged) {
		return fmt.Errorf("%s: %w", step.Action, err)
	} else if err != nil {
		return err
	}
	r.Reporter.Done(fresh, step, time.Since(started))
	return nil
}
