package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/state"
)

// passes is a handler that answers the same each time, and counts.
type passes struct {
	wait              time.Duration
	unknown           bool
	err               error
	made, failed, won int
}

func (p *passes) Pass(context.Context, string) (time.Duration, bool, error) {
	p.made++
	return p.wait, !p.unknown, p.err
}

func (p *passes) Failed(string, error) { p.failed++ }
func (p *passes) Succeeded(string)     { p.won++ }

func TestWhatAPassEndsWith(t *testing.T) {
	for name, test := range map[string]struct {
		handler           passes
		made, failed, won int
	}{
		"well: again when it says":             {passes{wait: time.Hour}, 3, 0, 3},
		"nothing names it: never again":        {passes{unknown: true}, 1, 0, 0},
		"a failure: again, less and less":      {passes{err: errors.New("away")}, 35, 35, 0},
		"a failure with a back-off of its own": {passes{wait: time.Hour, err: errors.New("away")}, 3, 3, 0},
		"what failed is not due yet":           {passes{wait: time.Hour, err: queue.ErrNotYet}, 3, 0, 0},
		"a conflict: told when it lasts":       {passes{err: state.ErrChanged}, 35, 30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, p := queue.New(state.MinRequeue), test.handler
				q.Add("shop/orders")
				go q.Work(t.Context(), &p)
				time.Sleep(2*time.Hour + time.Minute/2)
				q.ShutDown()
				synctest.Wait()
				if p.made != test.made || p.failed != test.failed || p.won != test.won {
					t.Errorf("%d passes, %d failed, %d succeeded", p.made, p.failed, p.won)
				}
			})
		})
	}
}

// That the process ends is no failure.
func TestTheEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := queue.New(state.MinRequeue), passes{err: errors.New("cut off")}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		q.Add("shop/orders")
		if !q.Next(ctx, &p) || p.made != 1 || p.failed != 0 {
			t.Errorf("%+v", p)
		}
		q.ShutDown()
		if q.Next(ctx, &p) {
			t.Error("a queue that is shut down has another key")
		}
	})
}

// waking is a handler that wakes its key by what it does, and is woken besides.
type waking struct {
	passes
	queue queue.Queue
}

func (w *waking) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	w.queue.Wake(key)
	return w.passes.Pass(ctx, key)
}

// 186: nothing that happens around a key brings the next pass forward after a failure,
// but for a pass every minute; news do, and news that come during a pass.
func TestWakingIsNoReasonToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(state.MinRequeue)
		p := &waking{passes{err: errors.New("away")}, q}
		q.Add("shop/orders")
		go q.Work(t.Context(), p)
		wake := func(during time.Duration) (made int) {
			synctest.Wait()
			before := p.made
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Second / 2) {
				q.Wake("shop/orders")
			}
			synctest.Wait()
			return p.made - before
		}
		if made := wake(time.Minute); made != 9 {
			t.Errorf("%d passes in the minute after the first", made)
		}
		if made := wake(time.Hour); made < 50 || made > 62 {
			t.Errorf("%d passes in an hour", made)
		}
		before := p.made
		q.Add("shop/orders")
		synctest.Wait()
		if p.made != before+1 {
			t.Errorf("%d passes after news", p.made-before)
		}
		q.ShutDown()
	})
}

// meanwhile is a handler to which news come during its first pass.
type meanwhile struct {
	passes
	queue queue.Queue
}

func (m *meanwhile) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	if m.made == 0 {
		m.queue.Add(key)
	}
	return m.passes.Pass(ctx, key)
}

// News that come while a pass fails do not wait: that pass knew nothing of them.
func TestNewsDuringAFailingPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(time.Hour)
		m := &meanwhile{passes{err: errors.New("away")}, q}
		q.Add("shop/orders")
		go q.Work(t.Context(), m)
		time.Sleep(time.Second)
		synctest.Wait()
		if m.made != 2 {
			t.Errorf("%d passes", m.made)
		}
		q.ShutDown()
	})
}
