package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/reconciler/state"
)

// due says whether a backup is to begin.
func dueOf(q desired.Backup, rec requestRecord, now time.Time) (schedule.Due, error) {
	if q.Schedule != nil {
		return schedule.Next(*q.Schedule, q.Name(), rec.past(), now)
	}
	_, taken := rec.Done[q.Hash()]
	return schedule.Once(rec.past(), taken, now), nil
}

const (
	// lookAgain is the longest time between two looks at a schedule, so that a
	// clock that jumps delays no backup by more.
	lookAgain = 5 * time.Minute
	// placeWait is how long a backup waits before it asks for a place again.
	placeWait = 5 * time.Second
)

// SetRequests replaces what Git says of backups and schedules. For one that is no
// longer named no further backup is taken; those that were taken stay.
func (s *Scheduler) SetRequests(list []desired.Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]desired.Backup, len(list))
	for _, request := range list {
		key := request.Key()
		next[key] = request
		if old, known := s.wished[key]; !known || old.Hash() != request.Hash() || old.Held != request.Held {
			s.queue.Add(key)
		}
	}
	for key, old := range s.wished {
		if _, named := next[key]; !named {
			s.forgetRequest(old)
		}
	}
	s.wished = next
}

// Requests returns what Git says of backups and schedules, by kind and name.
func (s *Scheduler) Requests() map[string]desired.Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.wished)
}

// nextRequest makes one pass over the next request in the queue.
func (s *Scheduler) nextRequest(ctx context.Context) bool {
	key, shutdown := s.queue.Get()
	if shutdown {
		return false
	}
	defer s.queue.Done(key)
	s.mu.Lock()
	request, named := s.wished[key]
	s.mu.Unlock()
	if !named {
		s.queue.Forget(key)
		return true
	}
	wait, err := s.RequestPass(ctx, request)
	switch {
	case errors.Is(err, state.ErrChanged), ctx.Err() != nil:
		s.queue.AddAfter(key, Soon)
	case err != nil:
		s.reportRequestError(request, err)
		s.queue.AddRateLimited(key)
	default:
		s.reporter.statuses.succeeded(key)
		s.queue.Forget(key)
		s.queue.AddAfter(key, wait)
	}
	return true
}

// RequestPass looks at one backup or schedule, decides, and takes one step: it
// notes what is new, finishes what a killed quorate began, takes the backup that is
// due, restores the newest on trial, or removes those that nobody keeps. It returns how long until the next look.
func (s *Scheduler) RequestPass(ctx context.Context, q desired.Backup) (time.Duration, error) {
	k, err := s.readRequest(ctx, q)
	if err != nil {
		return 0, err
	}
	if k.record.begin(q, s.now()) {
		return 0, s.writeRequest(ctx, q, k)
	}
	s.measure(q, k.record)
	due, err := dueOf(q, k.record, s.now())
	drill, errDrill := drillAt(q, k.record)
	s.noteRequest(q, k.record, due)
	switch begun := k.record.Begun; {
	case errDrill != nil:
		return 0, errDrill
	case err != nil:
		return 0, fmt.Errorf("%s: %w", q.Key(), err)
	case begun != nil && begun.Job != "" && !begun.Failed:
		return s.followTaking(ctx, q, k)
	case begun != nil && (!begun.Failed || due.Now):
		return 0, s.settle(ctx, q, k)
	case due.Now:
		return s.takeRequested(ctx, q, k, due)
	case k.record.Drill != nil:
		return s.followDrill(ctx, q, k)
	case !drill.IsZero() && !s.now().Before(drill):
		return s.beginDrill(ctx, q, k)
	case retains(q, k.record, s.now()): // what a drill has found is known by then
		return 0, s.retain(ctx, q, k)
	}
	s.reportDue(q, k, due)
	return s.untilLook(q, k.record, due, drill), nil
}

// untilLook is how long nothing is to be done.
func (s *Scheduler) untilLook(q desired.Backup, rec requestRecord, due schedule.Due, drill time.Time) time.Duration {
	now, wait := s.now(), lookAgain
	if !due.Begins.IsZero() {
		wait = min(wait, due.Begins.Sub(now))
	}
	if drill.After(now) {
		wait = min(wait, drill.Sub(now))
	}
	if late := rec.overdueAt(q, now); late.After(now) {
		wait = min(wait, late.Sub(now))
	}
	return max(wait, Soon)
}

// waitsFor says why a backup that is due does not begin, and looks again later.
func (s *Scheduler) waitsFor(q desired.Backup, why string, again time.Duration) (time.Duration, error) {
	if s.reporter.said.news(q.Key(), topicState, why) {
		s.log.Info("backup waits", "request", q.Key(), "cluster", q.ClusterName(), "message", why)
	}
	return again, nil
}
