package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is how often a long step says that it goes on.
const heartbeat = 15 * time.Second

// progress prints what is being done, with the time since the beginning.
type progress struct {
	out   io.Writer
	begin time.Time
	mu    sync.Mutex
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, begin: time.Now()}
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "[%7.1fs] %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

// step says that something begins, that it goes on, and how long it took.
func (p *progress) step(what string, do func() error) error {
	begin := time.Now()
	p.say("%s…", what)
	stop := p.beat(func() string { return fmt.Sprintf("%s… going on for %.0fs", what, time.Since(begin).Seconds()) })
	err := do()
	stop()
	if err != nil {
		return err
	}
	p.say("%s… done in %.1fs", what, time.Since(begin).Seconds())
	return nil
}

// beat says again and again how things are, until stop, which returns when nothing
// more is said.
func (p *progress) beat(state func() string) (stop func()) {
	ended := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				p.say("%s", state())
			}
		}
	})
	return func() { close(ended); beats.Wait() }
}

// await asks again and again until the condition holds, ends with the last
// answer as the error once the time is over, and gives up at once when alive
// reports that nothing can come of it any more.
func await(ctx context.Context, limit time.Duration, alive, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		last := condition()
		if last == nil {
			return nil
		}
		if err := alive(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
