// Package queue has several workers pass over keys, such as those of clusters: each key
// by one worker at a time, once however often it was added, and again later after a
// failure. What a pass does is for its handler to say.
package queue

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/state"
)

const (
	// MaxRetry is the longest time between two tries of what fails.
	MaxRetry = 5 * time.Minute
	// maxDeaf is for how long after a failure a key is not woken.
	maxDeaf = time.Minute
)

// MaxSilentConflicts is how often in a row something may have changed between decision
// and action before that counts as a failure: a cache that lags has caught up by then.
const MaxSilentConflicts = 5

// ErrNotYet ends a pass that found nothing to do but what has failed before, or did not
// last, and whose time has not come: neither a failure nor a success.
var ErrNotYet = errors.New("what was in vain is tried again later")

// Queue has the keys that wait for a pass.
type Queue struct {
	keys  workqueue.TypedDelayingInterface[string]
	first time.Duration
	// tries is how the last passes over each key ended.
	tries *memo.Map[tries]
	turns *turns
	order *fair
}

// tries is how the last passes over a key ended.
type tries struct {
	// failures in a row.
	failures int
	// until is for how long nothing wakes the key.
	until time.Time
	// news counts the calls of Add.
	news int
}

// New returns a queue whose failed passes are tried again after first, and then after
// twice as long each time, up to MaxRetry. Namespaces take turns, and so do keys that were
// added or woken and keys whose time has come.
func New(first time.Duration) Queue {
	order := newFair()
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: order})
	keys := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Queue: ready})
	return Queue{keys, first, &memo.Map[tries]{}, &turns{}, order}
}

// BackOff is how long to wait after so many failures in a row, one at least.
func BackOff(first time.Duration, failures int) time.Duration {
	return min(first<<min(failures-1, 20), MaxRetry)
}

// Add asks for a pass over a key now, for a reason that no pass before knew of.
func (q Queue) Add(key string) {
	q.tries.Change(key, func(t tries) tries { return tries{news: t.news + 1} })
	q.Wake(key)
}

// Wake asks for a pass over a key because something has changed around it. After a failure
// that does not bring the next pass forward by much: it is often the failed pass itself
// that has changed something.
func (q Queue) Wake(key string) {
	q.order.happen(key)
	q.keys.Add(key)
}

// Len is how many keys wait.
func (q Queue) Len() int { return q.keys.Len() }

// ShutDown lets the workers end.
func (q Queue) ShutDown() { q.keys.ShutDown() }

// Handler makes the passes over the keys of a queue.
type Handler interface {
	// Pass makes one pass, and returns how long until the next. known is false for a key
	// that nothing names any more: it waits for no other pass. A wait beside an error is
	// the handler's own back-off: until then there may be passes, which end with
	// ErrNotYet where they find nothing else to do. Any other error has the key
	// wait as long as the queue says. A panic is an error of the pass.
	Pass(ctx context.Context, key string) (wait time.Duration, known bool, err error)
	// Failed is told of a pass that failed, and Succeeded of one that did not.
	Failed(key string, err error)
	Succeeded(key string)
}

// Next makes one pass over the next key, if it need not wait. It reports whether there
// was one: false means that the queue is shut down.
func (q Queue) Next(ctx context.Context, h Handler) bool {
	key, shutdown := q.keys.Get()
	if shutdown {
		return false
	}
	defer q.keys.Done(key)
	q.turns.begin()
	defer q.turns.end()
	before := q.tries.Get(key)
	if left := time.Until(before.until); left > 0 {
		q.keys.AddAfter(key, left) // an earlier reminder may have taken the place of that one
		return true
	}
	wait, known := time.Duration(0), true
	err := contain.Run(func() (err error) {
		wait, known, err = h.Pass(ctx, key)
		return err
	})
	switch {
	case !known:
		q.tries.Forget(key)
	case ctx.Err() != nil: // that the process ends is no failure
		q.keys.AddAfter(key, state.MinRequeue)
	case errors.Is(err, ErrNotYet):
		q.keys.AddAfter(key, wait)
	case err != nil:
		q.failed(key, before, wait, err, h)
	default:
		h.Succeeded(key)
		q.tries.Change(key, func(t tries) tries { return tries{news: t.news} })
		q.keys.AddAfter(key, wait)
	}
	return true
}

// failed counts a failure, and has the key wait. News that came meanwhile are news for
// the next pass, too.
func (q Queue) failed(key string, before tries, wait time.Duration, err error, h Handler) {
	if !errors.Is(err, state.ErrChanged) || before.failures >= MaxSilentConflicts {
		h.Failed(key, err)
	}
	again := wait
	if wait == 0 {
		again = BackOff(q.first, before.failures+1)
	}
	q.tries.Change(key, func(t tries) tries {
		if t.news != before.news {
			return t
		}
		t.failures++
		if wait == 0 {
			t.until = time.Now().Add(min(again, maxDeaf))
		}
		return t
	})
	q.keys.AddAfter(key, again)
}
