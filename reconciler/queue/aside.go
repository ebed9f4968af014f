package queue

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Run makes passes with so many workers until the queue is shut down, and returns when
// those under way have ended.
func (q Queue) Run(ctx context.Context, workers int, h Handler) {
	p := &pool{queue: q, handler: h, ctx: ctx, working: workers, places: places{free: workers, mostLate: max(1, (1+mostRequesting)*workers/2)}, most: workers}
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
	p.pause()
	p.leave()
	return sync.OnceFunc(p.enter)
}

// mostRequesting is how many times as many passes as there are workers may leave theirs to others
// while they wait for the API server, which takes up to a tenth of a second for a list.
const mostRequesting = 3

// Requesting makes requests with next. A pass that waits for an answer needs no processor: another
// one computes meanwhile. One that waits without end can be seen by Motionless.
func Requesting(next http.RoundTripper) http.RoundTripper { return requests{next} }

type requests struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r requests) RoundTrip(request *http.Request) (*http.Response, error) {
	if p, inPool := request.Context().Value(passKey{}).(*pass); inPool && p.yield() {
		defer p.resume()
	}
	return r.next.RoundTrip(request)
}

// WrappedRoundTripper is for client-go, which looks for what it has wrapped.
func (r requests) WrappedRoundTripper() http.RoundTripper { return r.next }

// Pause is for what very many passes wait for at once. A pass that pauses needs no processor, and keeps
// its worker until it is aside, so that the others wait in the queue.
type Pause struct{ pass *pass }

// BeginPause has the pass with this ctx pause. Outside of Run it does nothing.
func BeginPause(ctx context.Context) Pause {
	p, inPool := ctx.Value(passKey{}).(*pass)
	if !inPool {
		return Pause{}
	}
	p.pause()
	return Pause{p}
}

// Aside gives the worker of the pass to others, as Aside does.
func (p Pause) Aside() {
	if p.pass != nil {
		p.pass.leave()
	}
}

// End has the pass go on in its turn, so that those whose pauses end together have no more of the
// processor than the workers have: before those that have not begun, unless it is late. Those that are
// late have every second turn at the most, and are twice as many as the workers at the most. It is called once, and without a lock for which a pass may wait
// that is at work.
func (p Pause) End(late bool) {
	if p.pass != nil {
		p.pass.enterInTurn(late)
	}
}

// pool is the workers of one queue.
type pool struct {
	queue   Queue
	handler Handler
	ctx     context.Context
	most    int
	all     sync.WaitGroup

	mu sync.Mutex
	// working are the workers whose pass is not aside, and those that have none.
	working int
	// requesting are the passes that have left their workers while they wait for the API server.
	requesting int
	// places are of the passes that are not aside.
	places places
}

// work makes passes until the queue is shut down, or there are too many workers.
func (p *pool) work() {
	for {
		one := &pass{Handler: p.handler, pool: p}
		if !p.queue.Next(context.WithValue(p.ctx, passKey{}, one), one) || p.tooMany() {
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

// places are as many as there are workers: a pass has one while it needs the processor. The pool's lock is
// held for each of its methods.
type places struct {
	// free is below 0 where passes came back that do not wait for one.
	free int
	// back, begin and late are those that wait for a place to go on, to begin, and to go on late.
	back, begin, late []chan struct{}
	// lates says that the next turn is one of those that are late.
	lates bool
	// underWay are those that are late and have gone on, mostLate at the most: what they wait for, they would
	// otherwise all wait for at once, with every place and every request that a pass may leave its worker for.
	underWay, mostLate int
}

// take returns what is closed once there is a place, for which it waits among others.
func (p *places) take(others *[]chan struct{}) (given chan struct{}) {
	given = make(chan struct{})
	*others = append(*others, given)
	p.give(0)
	return given
}

// give gives so many places back, and those that are free to those that wait.
func (p *places) give(n int) {
	for p.free += n; p.free > 0; p.free-- {
		next := p.next()
		if next == nil {
			return
		}
		close((*next)[0])
		*next = (*next)[1:]
	}
}

// next are those among whom the first is next; nil where none waits.
func (p *places) next() *[]chan struct{} {
	order := []*[]chan struct{}{&p.back, &p.begin, &p.late}
	if p.lates {
		order = []*[]chan struct{}{&p.late, &p.back, &p.begin}
	}
	for _, waiting := range order {
		isLate := waiting == &p.late
		if len(*waiting) == 0 || isLate && p.underWay >= p.mostLate {
			continue
		}
		if p.lates = !isLate; isLate {
			p.underWay++
		}
		return waiting
	}
	return nil
}

// passKey is the key of the pass in a ctx.
type passKey struct{}

// pass is one pass of a pool. It may be aside for several reasons at once.
type pass struct {
	Handler
	pool    *pool
	reasons int
	// placed says that it has a place, staffed that it has a worker, and moving that it counts
	// among those that Motionless watches. It is aside without.
	placed, staffed, moving bool
	// late says that it has gone on late.
	late bool
}

// Pass implements Handler.
func (p *pass) Pass(ctx context.Context, key string) (wait time.Duration, known bool, err error) {
	p.pool.mu.Lock()
	given := p.pool.places.take(&p.pool.places.begin)
	p.pool.mu.Unlock()
	<-given
	p.placed, p.staffed, p.moving = true, true, true
	defer func() {
		p.pool.mu.Lock()
		defer p.pool.mu.Unlock()
		p.endLate()
		p.give()
	}()
	return p.Handler.Pass(ctx, key)
}

// pause gives the place of the pass to another.
func (p *pass) pause() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.reasons++
	if p.moving {
		p.moving = false
		p.pool.queue.turns.end()
	}
	p.endLate()
	p.give()
}

// give gives the place of the pass to another. The pool is locked.
func (p *pass) give() {
	if p.placed {
		p.placed = false
		p.pool.places.give(1)
	}
}

// yield leaves the place and the worker of the pass to another, unless too many have, or it has none.
// It resumes without waiting for a turn: it may have a lock for which one that is at work waits.
func (p *pass) yield() (yielded bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if !p.placed || p.pool.requesting >= mostRequesting*p.pool.most {
		return false
	}
	p.pool.requesting++
	p.give()
	p.unstaff()
	return true
}

func (p *pass) resume() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.pool.requesting--
	if p.reasons == 0 && !p.placed {
		p.pool.places.free--
		p.placed = true
		p.staff()
	}
}

// leave has another worker take over.
func (p *pass) leave() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.unstaff()
}

// unstaff has another worker take over. The pool is locked.
func (p *pass) unstaff() {
	if !p.staffed {
		return
	}
	p.staffed = false
	p.pool.working--
	if p.pool.working < p.pool.most {
		p.pool.working++
		p.pool.all.Go(p.pool.work)
	}
}

// enter has the pass go on.
func (p *pass) enter() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.reasons--
	if p.reasons == 0 && !p.placed {
		p.pool.places.free--
		p.goOn()
	}
}

// enterInTurn has the pass go on once there is a place for it.
func (p *pass) enterInTurn(late bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.reasons--
	if p.reasons > 0 || p.placed {
		return
	}
	others := &p.pool.places.back
	if late {
		others = &p.pool.places.late
	}
	given := p.pool.places.take(others)
	p.pool.mu.Unlock()
	<-given
	p.pool.mu.Lock()
	p.late = late
	if p.reasons > 0 || p.placed { // it is aside for something else since, or is back from that
		p.endLate()
		p.pool.places.give(1)
		return
	}
	p.goOn()
}

// endLate lets another one that is late go on, if this has. The pool is locked.
func (p *pass) endLate() {
	if p.late {
		p.late = false
		p.pool.places.underWay--
		p.pool.places.give(0)
	}
}

func (p *pass) goOn() {
	p.placed, p.moving = true, true
	p.pool.queue.turns.begin()
	p.staff()
}

// staff gives the pass a worker, with which there may be one too many. The pool is locked.
func (p *pass) staff() {
	if !p.staffed {
		p.staffed = true
		p.pool.working++
	}
}
