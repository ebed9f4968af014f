// Package queue has several workers pass over keys, such as those of clusters: each key
// by one worker at a time, once however often it was added, and again later after a
// failure. What a pass does is for its handler to say.
package queue

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/quorate/quorate/reconciler/state"
)

// maxRetry is the longest time between two tries of a pass that fails.
const maxRetry = time.Minute

// MaxSilentConflicts is how often in a row something may have changed between decision
// and action before that counts as a failure: a cache that lags has caught up by then.
const MaxSilentConflicts = 5

// Queue has the keys that wait for a pass.
type Queue struct {
	keys workqueue.TypedRateLimitingInterface[string]
}

// New returns a queue whose failed passes are tried again after first, and then after
// twice as long each time, up to a minute.
func New(first time.Duration) Queue {
	return Queue{workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](first, maxRetry))}
}

// Add asks for a pass over a key.
func (q Queue) Add(key string) { q.keys.Add(key) }

// Len is how many keys wait.
func (q Queue) Len() int { return q.keys.Len() }

// ShutDown lets the workers end.
func (q Queue) ShutDown() { q.keys.ShutDown() }

// Handler makes the passes over the keys of a queue.
type Handler interface {
	// Pass makes one pass, and returns how long until the next. known is false for a key
	// that nothing names any more: it waits for no other pass.
	Pass(ctx context.Context, key string) (wait time.Duration, known bool, err error)
	// Failed is told of a pass that failed, and Succeeded of one that did not.
	Failed(key string, err error)
	Succeeded(key string)
}

// Work makes passes until the queue is shut down.
func (q Queue) Work(ctx context.Context, h Handler) {
	for q.Next(ctx, h) {
	}
}

// Next makes one pass over the next key. It reports whether there was one: false
// means that the queue is shut down.
func (q Queue) Next(ctx context.Context, h Handler) bool {
	key, shutdown := q.keys.Get()
	if shutdown {
		return false
	}
	defer q.keys.Done(key)
	wait, known, err := h.Pass(ctx, key)
	switch {
	case !known:
		q.keys.Forget(key)
	case ctx.Err() != nil: // that the process ends is no failure
		q.keys.AddAfter(key, state.MinRequeue)
	case errors.Is(err, state.ErrChanged) && q.keys.NumRequeues(key) < MaxSilentConflicts:
		q.keys.AddRateLimited(key)
	case err != nil:
		h.Failed(key, err)
		q.keys.AddRateLimited(key)
	default:
		h.Succeeded(key)
		q.keys.Forget(key)
		q.keys.AddAfter(key, wait)
	}
	return true
}
