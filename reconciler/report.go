package reconciler

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
)

// said keeps the last sentence about each topic of each cluster, so that a log
// and a list of Events say each thing once. It decides nothing.
type said struct {
	mu   sync.Mutex
	last map[string]map[string]string
}

// The topics. Any other topic is a warning.
const (
	// topicState is what quorate waits for; topicStep and topicFailure are the
	// step that is being tried and why the last try failed.
	topicState   = "state"
	topicStep    = "step"
	topicFailure = "failure"
)

// news says whether the sentence differs from the last one on the topic.
func (s *said) news(cluster, topic, sentence string) bool {
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

// over ends a topic: the same sentence would be news again.
func (s *said) over(cluster string, topics ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, topic := range topics {
		delete(s.last[cluster], topic)
	}
}

func (s *said) forget(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, cluster)
}

// report tells what the plan says, where it says something new.
func (r *Reporter) report(v *view, p plan.Plan) {
	r.metrics.observed(v, p)
	key := v.cluster.Key()
	for _, w := range p.Warnings {
		if r.said.news(key, w, v.desired.SpecHash) {
			r.log.Warn("warning", "cluster", key, "message", w)
			r.event(v, corev1.EventTypeWarning, "Warning", w)
		}
	}
	if p.Hold != nil || len(p.Steps) == 0 {
		r.said.over(key, topicStep, topicFailure)
	}
	if p.Idle() {
		r.revived.Delete(key)
	}
	switch {
	case p.Hold != nil:
		r.reportHold(v, *p.Hold)
	case len(p.Steps) == 0 && r.said.news(key, topicState, "idle"):
		r.log.Info("idle", "cluster", key, "message", "the cluster is what Git says", "version", v.desired.Spec.Version, "commit", v.desired.Commit)
	}
}

// reportHold tells a hold once. What ends by itself is no Event of its own.
func (r *Reporter) reportHold(v *view, h plan.Hold) {
	if !r.said.news(v.cluster.Key(), topicState, h.String()) {
		return
	}
	r.log.Info("hold", "cluster", v.cluster.Key(), "kind", string(h.Kind), "rule", h.Rule, "message", h.Message, "do", h.Do)
	kind := corev1.EventTypeWarning
	if h.Kind == plan.HoldWaiting || h.Kind == plan.HoldConfirm || h.Kind == plan.HoldObserve {
		kind = corev1.EventTypeNormal
	}
	r.event(v, kind, "Hold"+string(h.Kind), h.String())
}

// reportStep tells what is about to be done, before it is done. A step that
// failed and is tried again was told already.
func (r *Reporter) reportStep(v *view, s plan.Step) {
	if !r.said.news(v.cluster.Key(), topicStep, s.String()) {
		return
	}
	r.said.over(v.cluster.Key(), topicState)
	r.log.Info("step", "cluster", v.cluster.Key(), "action", s.Action.String(), "reason", s.Reason, "commit", v.cluster.Commit)
	r.event(v, corev1.EventTypeNormal, s.Action.Kind(), s.String())
}

func (r *Reporter) reportDone(v *view, s plan.Step, took time.Duration) {
	r.said.over(v.cluster.Key(), topicStep, topicFailure)
	r.metrics.acted(v.cluster, s.Action.Kind())
	r.log.Info("done", "cluster", v.cluster.Key(), "action", s.Action.String(), "took", took.Round(time.Millisecond).String())
	if _, revived := s.Action.(action.Revive); revived {
		r.revived.Store(v.cluster.Key(), true)
	}
	r.reportCorrection(v, s.Action)
}

// reportError tells a failed pass. It is tried again, later each time.
func (r *Reporter) reportError(c desired.Cluster, err error) {
	r.metrics.failed(c)
	r.statuses.failed(c.Key(), err, unseenCluster(c))
	if !r.said.news(c.Key(), topicFailure, err.Error()) {
		return
	}
	r.log.Error("failed", "cluster", c.Key(), "error", err.Error())
	if about := r.subject(c.Key()); about != nil {
		r.events.Event(about, corev1.EventTypeWarning, "Failed", shorten(err.Error()))
	}
}

// event records an Event on the StatefulSet; without one on the record, once there
// is that.
func (r *Reporter) event(v *view, kind, reason, message string) {
	about := r.subject(v.cluster.Key())
	if v.set != nil {
		about = v.set
	}
	if about != nil {
		r.events.Event(about, kind, reason, shorten(message))
	}
}

// shorten keeps an Event's message below the API's limit of 1024 bytes.
func shorten(message string) string {
	const most = 1000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "…"
}

// timeOrNever is a time for people.
func timeOrNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
