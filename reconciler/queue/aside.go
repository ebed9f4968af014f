package queue

import (
	"context"
	"sync"
)

// Run makes passes with so many workers until the queue is shut down, and returns when
// those under way have ended.
func (q Queue) Run(ctx context.Context, workers int, h Handler) {
	p := &pool{queue: q, handler: h, ctx: ctx, most: workers, working: workers}
	for range workers {
		p.all.Go(p.work)
	}
	p.all.Wait()
}

// Aside says that the pass with this ctx now waits for something that may take long,
// such as a store of backups, until back is called. Meanwhile another worker takes its
// place, so that what one key waits for costs no other key its pass. The key itself has
// no second pass beside it. Outside of Run it does nothing.
func Aside(ctx context.Context) (back func()) {
	p, inPool := ctx.Value(passKey{}).(*pass)
	if !inPool {
		return func() {}
	}
	p.leave()
	return sync.OnceFunc(p.enter)
}

// pool is the workers of one queue.
type pool struct {
	queue   Queue
	handler Handler
	ctx     context.Context
	most    int
	all     sync.WaitGroup

	mu sync.Mutex
	// working are the workers whose pass is not aside.
	working int
}

// work makes passes until the queue is shut down, or there are too many workers.
func (p *pool) work() {
	for p.queue.Next(context.WithValue(p.ctx, passKey{}, &pass{pool: p}), p.handler) {
		if p.tooMany() {
			return
		}
	}
}

// tooMany reports whether a worker is to end, because those that were aside are back.
func (p *pool) tooMany() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working <= p.most {
		return false
	}
	p.working--
	return true
}

// passKey is the key of the pass in a ctx.
type passKey struct{}

// pass is one pass of a pool. It may be aside for several reasons at once.
type pass struct {
	pool    *pool
	reasons int
}

func (p *pass) leave() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.reasons++
	if p.reasons > 1 {
		return
	}
	p.pool.queue.turns.end()
	p.pool.working--
	if p.pool.working < p.pool.most {
		p.pool.working++
		p.pool.all.Go(p.pool.work)
	}
}

func (p *pass) enter() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.reasons--
	if p.reasons == 0 {
		p.pool.queue.turns.begin()
		p.pool.working++
	}
}
