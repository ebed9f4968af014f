package report

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
)

// Once keeps the last sentence about each topic of each cluster, so that a log
// and a list of Events say each thing once. It decides nothing.
type Once struct {
	mu   sync.Mutex
	last map[string]map[string]string
}

// The topics. Any other topic is a warning.
const (
	// TopicState is what quorate waits for; TopicStep and TopicFailure are the
	// step that is being tried and why the last try failed.
	TopicState   = "state"
	TopicStep    = "step"
	TopicFailure = "failure"
)

// Changed says whether the sentence differs from the last one on the topic.
func (s *Once) Changed(cluster, topic, sentence string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]map[string]string{}
	}
	if s.last[cluster] == nil {
		s.last[cluster] = map[string]string{}
	}
	if last, known := s.last[cluster][topic]; known && last == sentence {
		return false
	}
	s.last[cluster][topic] = sentence
	return true
}

// Clear ends a topic: the same sentence would be news again.
func (s *Once) Clear(cluster string, topics ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, topic := range topics {
		delete(s.last[cluster], topic)
	}
}

func (s *Once) Forget(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, cluster)
}

// Planned tells what the plan says, where it says something new.
func (r *Reporter) Planned(v *observe.View, p plan.Plan) {
	r.Metrics.observed(v, p)
	key := v.Cluster.Key()
	for _, w := range p.Warnings {
		if r.Said.Changed(key, w, v.Desired.SpecHash) {
			r.Log.Warn("warning", "cluster", key, "message", w)
			r.event(v, corev1.EventTypeWarning, "Warning", w)
		}
	}
	if p.Hold != nil || len(p.Steps) == 0 {
		r.Said.Clear(key, TopicStep, TopicFailure)
	}
	if p.Idle() {
		r.revived.Delete(key)
	}
	switch {
	case p.Hold != nil:
		r.reportHold(v, *p.Hold)
	case len(p.Steps) == 0 && r.Said.Changed(key, TopicState, "idle"):
		r.Log.Info("idle", "cluster", key, "message", "the cluster is what Git says", "version", v.Desired.Spec.Version, "commit", v.Desired.Commit)
	}
}

// reportHold tells a hold once. What ends by itself is no Event of its own.
func (r *Reporter) reportHold(v *observe.View, h plan.Hold) {
	if !r.Said.Changed(v.Cluster.Key(), TopicState, h.String()) {
		return
	}
	r.Log.Info("hold", "cluster", v.Cluster.Key(), "kind", string(h.Kind), "rule", h.Rule, "message", h.Message, "do", h.Do)
	kind := corev1.EventTypeWarning
	if h.Kind == plan.HoldWaiting || h.Kind == plan.HoldConfirm || h.Kind == plan.HoldObserve {
		kind = corev1.EventTypeNormal
	}
	r.event(v, kind, "Hold"+string(h.Kind), h.String())
}

// Starting tells what is about to be done, before it is done. A step that
// failed and is tried again was told already.
func (r *Reporter) Starting(v *observe.View, s plan.Step) {
	if !r.Said.Changed(v.Cluster.Key(), TopicStep, s.String()) {
		return
	}
	r.Said.Clear(v.Cluster.Key(), TopicState)
	r.Log.Info("step", "cluster", v.Cluster.Key(), "action", s.Action.String(), "reason", s.Reason, "commit", v.Cluster.Commit)
	r.event(v, corev1.EventTypeNormal, s.Action.Kind(), s.String())
}

func (r *Reporter) Done(v *observe.View, s plan.Step, took time.Duration) {
	r.Said.Clear(v.Cluster.Key(), TopicStep, TopicFailure)
	r.Metrics.acted(v.Cluster, s.Action.Kind())
	r.Log.Info("done", "cluster", v.Cluster.Key(), "action", s.Action.String(), "took", took.Round(time.Millisecond).String())
	if _, revived := s.Action.(action.Revive); revived {
		r.revived.Store(v.Cluster.Key(), true)
	}
	r.reportCorrection(v, s.Action)
}

// Failed tells a failed pass. It is tried again, later each time.
func (r *Reporter) Failed(c desired.Cluster, err error) {
	r.Metrics.failed(c)
	r.Board.Failed(c.Key(), err, UnseenCluster(c))
	if !r.Said.Changed(c.Key(), TopicFailure, err.Error()) {
		return
	}
	r.Log.Error("failed", "cluster", c.Key(), "error", err.Error())
	if about := r.Subject(c.Key()); about != nil {
		r.Events.Event(about, corev1.EventTypeWarning, "Failed", Shorten(err.Error()))
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
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
