package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/checks"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/waves"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// rules answer what to do about one cluster: make with a forecast, and decide without.
type rules struct {
	make, decide func(state.Desired, state.Observed, time.Time) decision.Plan
}

// inTime has the planner take the members' answers for as old as they are: they are stamped by the clock of this
// process, and now may be that of the API server, which is behind it.
func inTime(of func(state.Desired, state.Observed, time.Time) decision.Plan) func(state.Desired, state.Observed, time.Time) decision.Plan {
	return func(d state.Desired, o state.Observed, now time.Time) decision.Plan {
		if shift := time.Until(now); shift.Abs() >= time.Second {
			o.Rounds = slices.Clone(o.Rounds)
			for i := range o.Rounds {
				o.Rounds[i].At = o.Rounds[i].At.Add(shift)
			}
		}
		return of(d, o, now)
	}
}

// plan asks the planner about a view, for a plan with its forecast: where this cluster is
// about to be disrupted again, with the other clusters in the view. At rest nothing
// begins, they do not matter, and one answer is enough.
func (r *Reconciler) plan(ctx context.Context, v *observe.View) (p decision.Plan, err error) {
	now := r.now()
	v.Observed.Fleet = state.Fleet{}
	if p = r.rules.make(v.Desired, v.Observed, now); p.Idle() || !situation.Begins(v.Desired, v.Observed, now) {
		return p, nil
	}
	if v.Observed.Fleet, err = r.fleet(ctx, v.Cluster, false); err != nil {
		return decision.Plan{}, err
	}
	return r.rules.make(v.Desired, v.Observed, now), nil
}

// decideFresh asks the planner what is due by what the API server itself says, also of the
// other clusters.
func (r *Reconciler) decideFresh(ctx context.Context, v *observe.View) (p decision.Plan, err error) {
	now := r.now()
	v.Observed.Fleet = state.Fleet{}
	if situation.Begins(v.Desired, v.Observed, now) {
		if v.Observed.Fleet, err = r.fleet(ctx, v.Cluster, true); err != nil {
			return decision.Plan{}, err
		}
	}
	return r.rules.decide(v.Desired, v.Observed, now), nil
}

// reserve lets one worker at a time begin to disrupt a cluster. While it is held,
// the other workers' beginnings are on the API server or have not been decided
// yet, so that a fresh read sees them all: two never take the last place. That holds for the
// workers of other processes as well, where several divide the clusters.
func (r *Reconciler) reserve(ctx context.Context, v *observe.View, action action.Action) (turn Turn, reserved bool, err error) {
	if !r.takesPlace(v, action) {
		return alone{}, false, nil
	}
	defer queue.Aside(ctx)()
	select {
	case r.disrupting <- struct{}{}:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if turn, err = r.Options.Shards.Begin(ctx); err != nil {
		<-r.disrupting
		return nil, false, err
	}
	return reservation{turn, r.disrupting}, true, nil
}

// reservation is a turn among all processes, and among the workers of this one.
type reservation struct {
	Turn
	disrupting chan struct{}
}

// End implements Turn.
func (r reservation) End() {
	r.Turn.End()
	<-r.disrupting
}

// takesPlace reports whether the action may disrupt a cluster that is not disrupted
// yet. A backup disrupts no client and takes long, so it blocks no other worker.
func (r *Reconciler) takesPlace(v *observe.View, act action.Action) bool {
	_, backup := act.(action.TakeBackup)
	return !backup && situation.Begins(v.Desired, v.Observed, r.now())
}

// fleet describes the other clusters, as far as they matter for one that is about
// to be disrupted. Nothing of it is kept: it is what they are now.
func (r *Reconciler) fleet(ctx context.Context, c desired.Cluster, fresh bool) (state.Fleet, error) {
	others, read := r.others(c), r.Observer.Standing
	if fresh {
		live, err := r.Observer.Standings(ctx)
		if err != nil {
			return state.Fleet{}, fmt.Errorf("read the state of the other clusters: %w", err)
		}
		read = live.Of
	}
	f := state.Fleet{Limit: r.Options.MaxDisrupted}
	var below []lower
	for _, o := range others {
		n := state.Neighbour{Name: o.Key(), Wave: o.Spec.Upgrade.Wave}
		s, err := read(o)
		switch {
		case errors.Is(err, observe.ErrUnread):
			// quorate disrupts nothing where it may not look, and no team stops the others by
			// taking its right away. What comes after it in a wave waits.
			if n.Why = err.Error(); n.Wave < c.Spec.Upgrade.Wave {
				f.Unfinished = append(f.Unfinished, n)
			}
			continue
		case err != nil:
			return state.Fleet{}, fmt.Errorf("read the state of %s: %w", o.Key(), err)
		}
		n.Why, n.Broken = disrupted(s, o)
		if s.Set != nil {
			n.Since = observe.LastChange(s.Set, "status")
		}
		if n.Why != "" {
			f.Disrupted = append(f.Disrupted, n)
		}
		if n.Wave >= c.Spec.Upgrade.Wave {
			continue
		}
		n.Why = unfinished(s, o)
		if n.Why != "" {
			f.Unfinished = append(f.Unfinished, n)
		} else {
			below = append(below, lower{o, s})
		}
	}
	if len(f.Unfinished) > 0 {
		return f, nil
	}
	if f.Unfinished = r.lookBelow(ctx, below); len(f.Unfinished) == 0 {
		f.Checks = askBelow(ctx, r.checks, below, r.now)
	}
	return f, nil
}

// lower is a cluster of a lower wave that seems to be what its file says.
type lower struct {
	desired.Cluster
	observe.Standing
}

// done is since when it is, as far as that is known: when that was noted, or when its StatefulSet
// last told something new, as it does when members restart, whichever is later. Both are times of
// the API server's. What quorate only observes is never noted.
func (l lower) done() (at time.Time, known bool) {
	var noted, settled time.Time
	if l.Set != nil {
		settled = observe.LastChange(l.Set, "status")
	}
	if l.Record != nil {
		if rec, err := record.Read(l.Record); err == nil && rec.Applied != nil && rec.Applied.SpecHash == schema.SpecHash(l.Spec) {
			noted = rec.Applied.At
		}
	}
	return latest(noted, settled), !noted.IsZero() && !settled.IsZero()
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// others are the other clusters that Git names, by name.
func (r *Reconciler) others(c desired.Cluster) []desired.Cluster {
	var others []desired.Cluster
	for key, o := range r.Desired() {
		if key != c.Key() {
			others = append(others, *o)
		}
	}
	slices.SortFunc(others, func(a, b desired.Cluster) int { return cmp.Compare(a.Key(), b.Key()) })
	return others
}

// lookBelow observes clusters that seem well in Kubernetes, members
// included, until one is found that is not done.
func (r *Reconciler) lookBelow(ctx context.Context, clusters []lower) []state.Neighbour {
	for _, o := range clusters {
		v, err := r.Observer.Observe(ctx, o.Cluster)
		why := ""
		if err != nil {
			why = "its state cannot be read: " + err.Error()
		} else {
			why = leftToDo(r.rules.make(v.Desired, v.Observed, r.now()))
		}
		if why != "" {
			return []state.Neighbour{{Name: o.Key(), Wave: o.Spec.Upgrade.Wave, Why: why}}
		}
	}
	return nil
}

// askBelow asks the checks of clusters that are what their files say, until one is found that does
// not hold. One that is asleep, or deleted, has nothing that could be asked.
func askBelow(ctx context.Context, asker *checks.Asker, clusters []lower, now func() time.Time) []state.Check {
	subjects := subjectsOf(clusters)
	switch {
	case len(subjects) == 0:
		return nil
	case asker == nil:
		return checks.Unasked(subjects)
	}
	defer queue.Aside(ctx)()
	return asker.Ask(ctx, subjects, func(answers []state.Check) bool {
		_, _, do := waves.Unchecked(answers, now())
		return do != ""
	})
}

// subjectsOf are those of the clusters that have checks. Runs count from when the last of all
// clusters became what its file says; of one where that is not known, none does.
func subjectsOf(clusters []lower) (subjects []checks.Subject) {
	for _, o := range clusters {
		if len(o.Spec.Upgrade.Checks) > 0 && o.Spec.State == schema.StateRunning {
			subjects = append(subjects, checks.Subject{Key: o.Key(), Spec: o.Spec})
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	var last time.Time
	noted := map[string]bool{}
	for _, o := range clusters {
		at, known := o.done()
		last, noted[o.Key()] = latest(last, at), known
	}
	for i, s := range subjects {
		if noted[s.Key] {
			subjects[i].Done = last
		}
	}
	return subjects
}

// leftToDo is why a cluster is not what Git says, "" when it is. One that is only
// observed never notes down that it is.
func leftToDo(p decision.Plan) string {
	if p.Idle() {
		return ""
	}
	if h := p.Hold; h != nil && (len(p.Steps) == 0 || (h.Kind != decision.Confirm && h.Kind != decision.ObserveOnly)) {
		return h.Message
	}
	for _, s := range p.Steps {
		if _, note := s.Action.(action.RecordApplied); !note {
			return "still to do: " + s.Action.String()
		}
	}
	return ""
}

// disrupted is why the cluster counts as disrupted, "" when it does not: members
// are missing, or quorate has begun something that restarts them; it is broken where
// quorate has not. One that never served, or that quorate only watches, does not count.
func disrupted(s observe.Standing, c desired.Cluster) (why string, broken bool) {
	if s.Record == nil || c.Spec.Mode == schema.ModeObserve {
		return "", false
	}
	rec, err := record.Read(s.Record)
	switch {
	case err != nil:
		return "its record cannot be read", false
	case !rec.Formed(), rec.Hibernated, rec.Deleted:
		return "", false
	case rec.Joining != nil:
		return rec.Joining.Member + " is joining", false
	case rec.Leaving != nil:
		return rec.Leaving.Member + " is leaving", false
	case rec.Replacing != "":
		return rec.Replacing + " is being replaced", false
	case s.Set == nil && c.Spec.State == schema.StateRunning:
		return "its StatefulSet is gone", false
	case s.Set == nil:
		return "", false
	}
	why, broken = unsettled(s.Set)
	return why, broken && rec.Recovering == nil
}

// unsettled is why the members of a StatefulSet are not all up and settled, or "", and
// whether nothing but missing members is the reason.
func unsettled(set *appsv1.StatefulSet) (why string, broken bool) {
	switch status, replicas := set.Status, observe.Replicas(set); {
	case status.ObservedGeneration < set.Generation:
		return "its StatefulSet has just been changed", false
	case status.CurrentRevision != status.UpdateRevision:
		return "it is being rolled", false
	case status.ReadyReplicas < replicas:
		return fmt.Sprintf("%d of %d members are ready", status.ReadyReplicas, replicas), true
	}
	return "", false
}

// unfinished is why a running cluster is plainly not what its file says, or "":
// then the members have to be asked.
func unfinished(s observe.Standing, c desired.Cluster) string {
	if len(c.Problems) > 0 {
		return "its file has errors"
	}
	if c.Spec.State != schema.StateRunning || c.Spec.Mode == schema.ModeObserve {
		return ""
	}
	if s.Record == nil {
		return "it has not been made yet"
	}
	rec, err := record.Read(s.Record)
	switch {
	case err != nil:
		return "its record cannot be read"
	case rec.Applied == nil || rec.Applied.SpecHash != schema.SpecHash(c.Spec):
		return "its file has not been applied yet"
	}
	why, _ := disrupted(s, c)
	return why
}
