// Package starvation keeps for how long this process was kept from running: by its CPU limit, by an
// overloaded node, or by a machine that stood still. What is late for that says nothing about who was
// asked, so that limits on answers are in the time that the process had, and not in that of the clock.
//
// This is for questions alone. A change keeps a deadline by the clock: while the process stood still,
// another may have become the one that may make it.
package starvation

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

const (
	// tick is how often it is looked at.
	tick = 25 * time.Millisecond
	// usual is how long that may take in a process that has what it needs: a goroutine keeps its
	// processor for up to 10 ms.
	usual = 2 * tick
)

// process is what is known of this process.
//
//nolint:gochecknoglobals // There is one process, and whatever has a limit asks for it.
var process struct {
	mu sync.Mutex
	// ticked is when it was last looked at; zero while it is not.
	ticked time.Time
	// lost is the time that was lost until then.
	lost time.Duration
}

// Watch measures until ctx ends, and logs where much is lost. Without it no time is lost.
func Watch(ctx context.Context, log *slog.Logger) {
	tock(time.Now())
	defer tock(time.Time{})
	for minute := Begin(); ctx.Err() == nil; {
		time.Sleep(tick)
		runtime.Gosched() // behind those that are ready to run
		tock(time.Now())
		if time.Since(minute.begun) >= time.Minute {
			minute.tell(log)
			minute = Begin()
		}
	}
}

// tell logs what was lost, if it was much.
func (s Stopwatch) tell(log *slog.Logger) {
	took, had := time.Since(s.begun), s.Elapsed()
	if lost := took - had; lost > took*3/10 {
		log.Warn("quorate is short of CPU", "lost", lost.Round(time.Second).String(), "of", took.Round(time.Second).String(),
			"remedy", "raise its limit or request of CPU, or move it to a node with more; meanwhile all that it does comes later")
	}
}

// tock ends a tick.
func tock(now time.Time) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.lost += sinceTick()
	process.ticked = now
}

// sinceTick is the time lost in the tick under way: all of it beyond what is usual.
func sinceTick() time.Duration {
	if process.ticked.IsZero() {
		return 0
	}
	return max(0, time.Since(process.ticked)-usual)
}

// Lost is the time for which the process was kept from running since it started.
func Lost() time.Duration {
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.lost + sinceTick() // a limit may end before the tick does in which time was lost
}

// Stopwatch measures the time that the process has had.
type Stopwatch struct {
	begun time.Time
	lost  time.Duration
}

// Begin starts a stopwatch.
func Begin() Stopwatch { return Stopwatch{time.Now(), Lost()} }

// Elapsed is the time since Begin less what was lost of it.
func (s Stopwatch) Elapsed() time.Duration { return time.Since(s.begun) - (Lost() - s.lost) }

// AfterFunc calls f in its own goroutine once the process has had d. Stop prevents that, if it has not begun.
func AfterFunc(d time.Duration, f func()) (stop func()) {
	var mu sync.Mutex
	var stopped bool
	var timer *time.Timer
	s := Begin()
	due := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if left := d - s.Elapsed(); left > 0 && !stopped {
			timer.Reset(left)
			return false
		}
		return !stopped
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d, func() {
		if due() {
			f()
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// WithTimeout is context.WithTimeout in the time that the process has. The context has no deadline of its
// own, since none is known: it ends as one whose deadline has passed.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c := &limited{Context: parent, done: make(chan struct{})}
	stop := AfterFunc(d, func() { c.end(context.DeadlineExceeded) })
	forget := context.AfterFunc(parent, func() { c.end(parent.Err()) })
	return c, func() {
		stop()
		forget()
		c.end(context.Canceled)
	}
}

// limited is a context that has its own end.
type limited struct {
	context.Context
	done chan struct{}
	mu   sync.Mutex
	err  error
}

func (c *limited) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

// Done implements context.Context.
func (c *limited) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *limited) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
