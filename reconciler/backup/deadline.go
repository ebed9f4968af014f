package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultStall is how long nothing of a backup may move before it fails.
	DefaultStall = 5 * time.Minute
	// Timeout bounds one backup also while it moves: every wait ends.
	Timeout = 24 * time.Hour
	// answerTime is how long a store may say nothing in a call that moves no database.
	answerTime = time.Minute
	// callTimeout bounds such a call also while the store says something.
	callTimeout = time.Hour
	// quietPart is the part of the stall time after which a backup is known to be quiet.
	quietPart = 10
)

// ErrSilent says that a call was ended because nothing moved for too long.
var ErrSilent = errors.New("nothing moved for too long")

// watch ends a call in which nothing moves. What moves is what the store answers, and
// what is read of a database at either end.
type watch struct {
	// around is the watch of which this call is a part.
	around *watch
	stall  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
	// quiet is called when a part of stall has passed, and mute as well where it is the
	// store that is waited for; nil for nobody.
	quiet, mute func()
	// mu is held while the watch looks, and guards ended.
	mu    sync.Mutex
	ended bool
	// moved is when something moved last, in Unix nanoseconds.
	moved atomic.Int64
	// fromMember says that the member is waited for, and not the store.
	fromMember atomic.Bool
	silent     atomic.Pointer[silence]
}

// silence is why a watch has ended a call.
type silence struct {
	// member says that the member was waited for, and not the store.
	member bool
	lasted time.Duration
}

func (s *silence) Error() string {
	if s.member {
		return fmt.Sprintf("the member sent nothing for %s", s.lasted)
	}
	return fmt.Sprintf("nothing moved for %s", s.lasted)
}

func (s *silence) Unwrap() error { return ErrSilent }

type watchKey struct{}

// watchOf is the watch of a call, nil for none.
func watchOf(ctx context.Context) *watch {
	w, _ := ctx.Value(watchKey{}).(*watch)
	return w
}

// newWatch begins a watch. end must be called.
func newWatch(ctx context.Context, stall, most time.Duration, quiet func()) (w *watch, watched context.Context, end context.CancelFunc) {
	ctx, stop := context.WithTimeout(ctx, most)
	ctx, cancel := context.WithCancelCause(ctx)
	w = &watch{around: watchOf(ctx), stall: stall, cancel: cancel, quiet: quiet}
	w.moved.Store(time.Now().UnixNano())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.next(0), w.look)
	return w, context.WithValue(ctx, watchKey{}, w), func() {
		w.end()
		cancel(nil)
		stop()
	}
}

// end ends the watch: it calls nobody any more.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// next is how long to wait where nothing has moved for a time.
func (w *watch) next(idle time.Duration) time.Duration {
	if soon := w.stall / quietPart; w.quiet != nil && idle < soon {
		return soon - idle
	}
	return w.stall - idle
}

// look ends the call if nothing has moved for too long.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	idle := time.Since(time.Unix(0, w.moved.Load()))
	switch {
	case w.ended:
		return
	case idle >= w.stall:
		s := &silence{w.fromMember.Load(), w.stall}
		w.silent.Store(s)
		w.cancel(s)
		return
	case w.quiet != nil && idle >= w.stall/quietPart:
		if w.mute != nil && !w.fromMember.Load() {
			w.mute()
		}
		w.quiet()
	}
	w.timer.Reset(w.next(idle))
}

// move says that something has moved.
func (w *watch) move() {
	for ; w != nil; w = w.around {
		w.moved.Store(time.Now().UnixNano())
	}
}

// why is why the watch, or one around it, has ended the call, nil where none has.
func (w *watch) why() *silence {
	for ; w != nil; w = w.around {
		if s := w.silent.Load(); s != nil {
			return s
		}
	}
	return nil
}

// reader reads what a store sends, and says that it moves.
func (w *watch) reader(ctx context.Context, r io.Reader) io.Reader {
	return &movingReader{ctx, w, r, false}
}

// snapshot reads what a member sends, and says that it moves.
func (w *watch) snapshot(ctx context.Context, r io.Reader) io.Reader {
	return &movingReader{ctx, w, r, true}
}

// movingReader tells a watch that what it reads moves. It ends with its ctx.
type movingReader struct {
	ctx    context.Context
	w      *watch
	r      io.Reader
	member bool
}

func (m *movingReader) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	m.w.fromMember.Store(m.member)
	n, err := m.r.Read(p)
	m.w.fromMember.Store(false)
	if n > 0 {
		m.w.move()
	}
	if why := m.w.why(); why != nil && err != nil && !errors.Is(err, io.EOF) {
		return n, why
	}
	return n, err
}

// Calls is how a process calls its stores: for how long, and how many at once. That a
// store says nothing is remembered so that it is asked less, and decides nothing. The
// zero value and nil have the defaults, and remember nothing of one another.
type Calls struct {
	// Stall is how long nothing of a backup may move before it fails. Default
	// DefaultStall.
	Stall time.Duration
	// Aside is called when a call begins, which may take long, and back when it has
	// ended. Default: nothing.
	Aside func(ctx context.Context) (back func())
	// Ended is told how long each call took, by what it did. Default: nothing.
	Ended func(operation string, took time.Duration)

	mu     sync.Mutex
	stores map[string]*standing
}

// standing is what is known of one store.
type standing struct {
	// places bound the calls that move no database.
	places chan struct{}
	// answered is when it last did, and stalled says that it took no backup since one
	// got stuck.
	answered time.Time
	stalled  bool
}

const (
	// callsAtOnce bounds the calls to one store that move no database: what waits for a
	// store that says nothing must not pile up.
	callsAtOnce = 8
	// answersFor is for how long a store that answered needs not to be asked whether it
	// does.
	answersFor = 10 * time.Minute
)

// StallTime is how long nothing of a backup may move.
func (c *Calls) StallTime() time.Duration {
	if c == nil || c.Stall <= 0 {
		return DefaultStall
	}
	return c.Stall
}

// Wait says that something else that may take long is waited for until back is called.
func (c *Calls) Wait(ctx context.Context) (back func()) {
	if c == nil || c.Aside == nil {
		return func() {}
	}
	return c.Aside(ctx)
}

// about changes or reads what is known of a store.
func (c *Calls) about(t target, do func(*standing)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := t.storeName()
	if c.stores == nil {
		c.stores = map[string]*standing{}
	}
	if c.stores[key] == nil {
		c.stores[key] = &standing{places: make(chan struct{}, callsAtOnce)}
	}
	do(c.stores[key])
}

// storeName tells stores from one another.
func (t target) storeName() string {
	if t.scheme == "file" {
		return t.scheme + "://" + t.root
	}
	return t.scheme + "://" + t.bucket + " " + t.query.Get("endpoint") + t.query.Get("domain")
}

// Known is what is known of a store.
type Known struct {
	// Store tells stores from one another; "" for none.
	Store string
	// Answers says that it has lately: a backup may begin without asking it first. Stalls
	// says that the last backup there got stuck.
	Answers, Stalls bool
}

// Known is what is known of the store of an object URL.
func (c *Calls) Known(objectURL string) (k Known) {
	if t, err := parseURL("", objectURL); err == nil {
		k.Store = t.storeName()
		c.about(t, func(s *standing) { k.Answers, k.Stalls = time.Since(s.answered) < answersFor, s.stalled })
	}
	return k
}

// Watch bounds a backup: its ctx ends when neither the member nor the store has moved
// anything for the stall time. Save within it keeps to it. quiet may be nil; it is called
// when nothing has moved for a part of that time. end must be called.
func (c *Calls) Watch(ctx context.Context, quiet func()) (watched context.Context, end context.CancelFunc) {
	w, ctx, end := newWatch(ctx, c.StallTime(), Timeout, quiet)
	w.fromMember.Store(true)
	return ctx, end
}

// Explain is the error of what was done in a watched ctx, with the reason where the
// watch has ended it.
func Explain(ctx context.Context, err error) error {
	if why := watchOf(ctx).why(); why != nil && err != nil {
		return why
	}
	return err
}

// bound begins a call that ends: one that moves a database when that does not move any
// more, another one when the store says nothing for a minute. s.close ends it.
func (s *object) bound(ctx context.Context, moves bool) (context.Context, error) {
	back, began := s.store.Calls.Wait(ctx), time.Now()
	end, leave := func() {}, func() {}
	s.ended = func() {
		if c := s.store.Calls; c != nil && c.Ended != nil {
			c.Ended(s.op, time.Since(began))
		}
		leave()
		end()
		back()
	}
	switch around := watchOf(ctx); {
	case moves && around != nil:
		s.watch = around
		around.over(s.mute)
		s.watch.fromMember.Store(false)
	case moves:
		s.watch, ctx, end = newWatch(ctx, s.store.Calls.StallTime(), Timeout, nil)
	default:
		s.watch, ctx, end = newWatch(ctx, min(answerTime, s.store.Calls.StallTime()), callTimeout, nil)
		var err error
		if leave, err = s.takePlace(ctx); err != nil {
			return ctx, err
		}
	}
	return s.traced(ctx, s.watch), nil
}

// takePlace waits for a place among the calls to a store. That it answers those that have one counts as
// an answer: to wait for them is no silence of it.
func (s *object) takePlace(ctx context.Context) (leave func(), err error) {
	if s.store.Calls == nil {
		return func() {}, nil
	}
	var places chan struct{}
	var answered time.Time
	s.store.Calls.about(s.target, func(st *standing) { places, answered = st.places, st.answered })
	look := time.NewTicker(s.watch.stall / 4)
	defer look.Stop()
	for {
		select {
		case places <- struct{}{}:
			s.watch.move()
			return func() { <-places }, nil
		case <-look.C:
			s.store.Calls.about(s.target, func(st *standing) {
				if st.answered.After(answered) {
					answered = st.answered
					s.watch.move()
				}
			})
		case <-ctx.Done():
			return func() {}, s.failed(ctx.Err())
		}
	}
}

// traced lets each answer of the store count.
func (s *object) traced(ctx context.Context, w *watch) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() {
		w.move()
		s.answered()
	}})
}

// over says which store a watch is over.
func (w *watch) over(mute func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = mute
}

// mute says that the store takes nothing for now: other backups there take no place that
// those to other stores wait for.
func (s *object) mute() {
	s.store.Calls.about(s.target, func(st *standing) { st.stalled = true })
}

// answered says that the store has.
func (s *object) answered() {
	s.store.Calls.about(s.target, func(st *standing) { st.answered = time.Now() })
}

// quickly does a part of a call that moves a database, as long as that part moves none.
func (s *object) quickly(ctx context.Context, do func(context.Context) error) error {
	around := s.watch
	w, ctx, end := newWatch(ctx, min(answerTime, around.stall), callTimeout, nil)
	s.watch = w
	defer func() {
		s.watch = around
		end()
	}()
	return do(s.traced(ctx, w))
}

// muted reports whether the call was ended because the store, and not the member, said
// nothing.
func (s *object) muted() bool {
	why := s.watch.why()
	return why != nil && !why.member
}

// silent is the error of a call in which nothing moved. That the store is silent is
// remembered until a backup comes to its end there.
func (s *object) silent() error {
	why := s.watch.why()
	if why.member {
		return &storeError{op: s.op, object: s.target.name, problem: why.Error(), next: "look at the member's log and disk", err: why}
	}
	s.store.Calls.about(s.target, func(st *standing) { st.answered, st.stalled = time.Time{}, true })
	return &storeError{
		op: s.op, object: s.target.name, problem: "the store did not answer in time: " + why.Error(),
		next: "check that the store is healthy, and the network policies on the way to it", err: why,
	}
}

// saved says that a backup came to its end.
func (s *object) saved() {
	s.store.Calls.about(s.target, func(st *standing) { st.stalled = false })
}

// Reach returns an error unless the store of objectURL answers: it is asked before a
// backup takes a place that others wait for. What is there is not looked at.
func (st Store) Reach(ctx context.Context, objectURL string) error {
	if _, err := st.ReadManifest(ctx, objectURL); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// Unreadable reports whether an error says that a manifest was read and makes no sense:
// asking again gives the same answer.
func Unreadable(err error) bool { return errors.Is(err, errBadManifest) }
