package daemon

import (
	"context"
	"sync"
	"time"
)

// tenancy is a shard that this daemon holds, with what is under way over its clusters.
type tenancy struct {
	claim *claim
	// under way ends with during, which cut ends.
	during context.Context
	cut    context.CancelFunc

	mu     sync.Mutex
	closed bool
	under  sync.WaitGroup
}

func newTenancy(c *claim) *tenancy {
	t := &tenancy{claim: c}
	t.during, t.cut = context.WithCancel(context.Background())
	return t
}

// open reports whether enter would let in.
func (t *tenancy) open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed
}

// enter begins something, which leave ends; mine is false once the tenancy is closed.
func (t *tenancy) enter(ctx context.Context) (entered context.Context, leave func(), mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, false
	}
	t.under.Add(1)
	entered, end := context.WithCancel(ctx)
	stop := context.AfterFunc(t.during, end)
	return entered, func() {
		stop()
		end()
		t.under.Done()
	}, true
}

// close lets nothing in any more, and returns when all that is under way has been left. It is
// ended after a while, or when ctx ends.
func (t *tenancy) close(ctx context.Context, patience time.Duration) {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		t.under.Wait()
		close(ended)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	case <-timer.C:
	}
	t.cut()
	<-ended
}
