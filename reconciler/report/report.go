package report

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/schema"
)

// The topics of Said. Any other topic is a warning.
const (
	// TopicState is what quorate waits for; TopicStep and TopicFailure are the
	// step that is being tried and why the last try failed.
	TopicState   = "state"
	TopicStep    = "step"
	TopicFailure = "failure"
	// topicRetry is since when that try is repeated.
	topicRetry = "retry"
)

// Planned tells what the plan says: as metrics and as statuses, and where it says
// something new, in the log and as Events. restore is the one that Git names for the
// cluster; nil for none.
func (r *Reporter) Planned(v *observe.View, p decision.Plan, restore *desired.Restore) {
	key, list := v.Cluster.Key(), []schema.Status{ClusterStatus(v, p)}
	members := list[0].Status.Cluster.Members
	r.Metrics.observed(v, p, members, r.Board.measure(key, v, members), r.Now())
	if restore != nil {
		list = append(list, RestoreStatus(v, p, *restore))
	}
	r.Board.Note(key, list)
	for _, w := range p.Warnings {
		if text := w.String(); r.Said.Changed(key, text, v.Desired.SpecHash) {
			r.Log.Warn("cluster warning", "cluster", key, "warning", text)
			r.event(v, corev1.EventTypeWarning, "Warning", text)
		}
	}
	if p.Hold != nil || len(p.Steps) == 0 {
		r.Said.Clear(key, TopicStep, TopicFailure)
	}
	if p.Idle() {
		r.revived.Forget(key)
	}
	switch {
	case p.Hold != nil:
		r.reportHold(v, *p.Hold)
	case len(p.Steps) == 0 && r.Said.Changed(key, TopicState, "idle"):
		r.Log.Info("cluster is up to date", "cluster", key, "version", v.Desired.Spec.Version, "commit", v.Desired.Commit)
	}
}

// reportHold reports a hold once. What ends on its own gets no warning Event.
func (r *Reporter) reportHold(v *observe.View, h decision.Hold) {
	if !r.Said.Changed(v.Cluster.Key(), TopicState, h.String()) {
		return
	}
	r.Log.Log(context.Background(), levelOf(h), "on hold", "cluster", v.Cluster.Key(), "kind", string(h.Kind), "rule", h.Rule, "reason", h.Told(), "remedy", h.Do)
	kind := corev1.EventTypeWarning
	if h.Kind == decision.Waiting || h.Kind == decision.Confirm || h.Kind == decision.ObserveOnly {
		kind = corev1.EventTypeNormal
	}
	r.event(v, kind, "Hold"+string(h.Kind), h.String())
}

// Starting tells what is about to be done, before it is done. A step that
// failed and is tried again was reported already.
func (r *Reporter) Starting(v *observe.View, s decision.Step) {
	if !r.Said.Changed(v.Cluster.Key(), TopicStep, s.Steady()) {
		return
	}
	r.Said.Clear(v.Cluster.Key(), TopicState)
	r.Log.Info("step started", "cluster", v.Cluster.Key(), "action", s.Action.String(), "reason", s.Because(), "commit", v.Cluster.Commit)
	r.event(v, corev1.EventTypeNormal, s.Action.Kind(), s.String())
}

// Done tells of a step that was taken.
func (r *Reporter) Done(v *observe.View, s decision.Step, took time.Duration) {
	r.Said.Clear(v.Cluster.Key(), TopicStep, TopicFailure)
	r.Metrics.acted(v.Cluster, s.Action.Kind())
	r.Log.Info("step done", "cluster", v.Cluster.Key(), "action", s.Action.String(), "duration", took.Round(time.Millisecond).String())
	if _, revived := s.Action.(action.Revive); revived {
		r.revived.Put(v.Cluster.Key(), true)
	}
	r.reportCorrection(v, s.Action)
}

// Failed tells a failed pass. It is tried again, later each time.
func (r *Reporter) Failed(c desired.Cluster, err error) {
	r.Metrics.failed(c)
	r.Metrics.Panicked("clusters", err)
	r.Board.Failed(c.Key(), err, UnseenCluster(c))
	if !r.Said.Changed(c.Key(), TopicFailure, WithoutNumbers(err.Error())) {
		return
	}
	r.Log.Error("pass failed", "cluster", c.Key(), "error", err.Error())
	if about := r.Subject(c.Key()); about != nil {
		r.Events.Event(about, corev1.EventTypeWarning, "Failed", Shorten(err.Error()))
	}
}

// Succeeded ends a row of failed passes.
func (r *Reporter) Succeeded(c desired.Cluster) {
	r.Metrics.succeeded(c)
	r.Board.Succeeded(c.Key())
}

// Retry is a step that was taken several times in a row, in vain.
type Retry struct {
	Times int
	// Since is when it was taken first, Again when it is taken next, and Most the longest
	// time between two times.
	Since, Again time.Time
	Most         time.Duration
}

// Waits reports once that a step keeps failing with a problem, and when it is tried again.
// otherwise is what a commit can say that does without the step, "" for nothing.
func (r *Reporter) Waits(c desired.Cluster, problem, otherwise string, t Retry) {
	since := TimeOrNever(t.Since)
	retry := fmt.Sprintf("it has failed since %s, and is tried again within %s of each failure, or with a commit that changes the file", since, t.Most)
	if otherwise != "" {
		retry += "; " + otherwise
	}
	r.Board.again(c.Key(), reasonFailed, problem, retry)
	if r.Said.Changed(c.Key(), topicRetry, since) {
		r.Log.Warn("step waits after its failures", "cluster", c.Key(), "failures", t.Times, "since", since, "again", TimeOrNever(t.Again), "error", problem, "remedy", otherwise)
	}
}

// Repeated reports once that a step succeeds each time, and is due again.
func (r *Reporter) Repeated(c desired.Cluster, step string, t Retry) {
	since := TimeOrNever(t.Since)
	r.Board.again(c.Key(), reasonRepeated, step, fmt.Sprintf("quorate has taken this step again and again since %s, and it is due each time: something undoes it, or it has no effect; it is taken again within %s of the last time, or with a commit that changes the file", since, t.Most))
	if r.Said.Changed(c.Key(), topicRetry, step+" "+since) {
		r.Log.Warn("step is due again and again", "cluster", c.Key(), "step", step, "times", t.Times, "since", since, "again", TimeOrNever(t.Again))
	}
}

// event records an Event on the StatefulSet; without one on the record, once there
// is that.
func (r *Reporter) event(v *observe.View, kind, reason, message string) {
	about := r.Subject(v.Cluster.Key())
	if v.Set != nil {
		about = v.Set
	}
	if about != nil {
		r.Events.Event(about, kind, reason, Shorten(message))
	}
}

// Shorten keeps an Event's message below the API's limit of 1024 bytes.
func Shorten(message string) string {
	const most = 1000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "…"
}

// TimeOrNever is a time for people.
func TimeOrNever(t time.Time) string {
	return cmp.Or(schema.TimeText(t), "never")
}
