package starvation_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/starvation"
	"github.com/quorate/quorate/reconciler/starvation/starvationtest"
)

// A limit of a process that stands still for a while ends later by that time.
func TestATimeoutDoesNotCountAStandstill(t *testing.T) {
	const limit, still = time.Second, 1500 * time.Millisecond
	end := starvationtest.Watch(t)
	ctx, cancel := starvation.WithTimeout(t.Context(), limit)
	defer cancel()
	begun, had := time.Now(), starvation.Begin()
	starvationtest.StandStill(t, still)
	<-ctx.Done()
	// A tick is lost for as long as it is longer than usual, so that a little of the standstill counts.
	if took := time.Since(begun); !errors.Is(ctx.Err(), context.DeadlineExceeded) || took < limit+still-200*time.Millisecond || had.Elapsed() < limit-200*time.Millisecond {
		t.Errorf("a limit of %s ended after %s, %s of them with a processor: %v", limit, took, had.Elapsed(), ctx.Err())
	}
	end()
	lost := starvation.Lost()
	if lost < still-200*time.Millisecond {
		t.Errorf("%s are lost in %s", lost, still)
	}
	starvationtest.StandStill(t, 200*time.Millisecond)
	if more := starvation.Lost() - lost; more > 0 {
		t.Errorf("%s are lost once nothing is measured any more", more)
	}
}

// Time counts as lost while a tick is late, and not only after it: once a stopped process runs again, a limit
// may be looked at before the tick ends.
func TestATickThatIsLateCountsBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starvation.Tock(time.Now())
		defer starvation.Tock(time.Time{})
		before := starvation.Lost()
		time.Sleep(time.Second)
		if lost := starvation.Lost() - before; lost != 950*time.Millisecond {
			t.Errorf("a tick that has taken 1s loses %s until now, want all but twice the 25ms of a tick", lost)
		}
	})
}

// What is lost is logged once a minute where it is much, with what to do.
func TestWhatIsLostIsLogged(t *testing.T) {
	for _, c := range []struct {
		lost time.Duration
		want int
	}{{0, 0}, {17 * time.Second, 0}, {20 * time.Second, 3}} {
		synctest.Test(t, func(t *testing.T) {
			var logged strings.Builder
			ctx, end := context.WithCancel(t.Context())
			go starvation.Watch(ctx, slog.New(slog.NewTextHandler(&logged, nil)))
			for range 3 {
				time.Sleep(30 * time.Second)
				starvation.Lose(c.lost)
				time.Sleep(30 * time.Second)
			}
			time.Sleep(time.Second)
			end()
			synctest.Wait()
			time.Sleep(time.Second)
			if n := strings.Count(logged.String(), `msg="quorate is short of CPU" lost=`); n != c.want {
				t.Errorf("%s lost of each minute are logged %d times in three minutes, want %d: %s", c.lost, n, c.want, logged.String())
			}
		})
	}
}

// Time that the process loses is added to a limit, however often, and nothing else is.
func TestALimitIsInTheTimeThatTheProcessHas(t *testing.T) {
	for _, c := range []struct {
		name string
		// lost is lost after each second.
		lost []time.Duration
		want time.Duration
	}{
		{"none is lost", nil, 3 * time.Second},
		{"once", []time.Duration{2 * time.Second}, 5 * time.Second},
		{"again after the limit was put off", []time.Duration{2 * time.Second, 0, 0, time.Second}, 6 * time.Second},
		{"too late", []time.Duration{0, 0, 0, time.Second}, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				ctx, cancel := starvation.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				var called atomic.Int64
				starvation.AfterFunc(3*time.Second, func() { called.Store(int64(time.Since(begun))) })
				never := starvation.AfterFunc(3*time.Second, func() { t.Error("what was stopped is called") })
				go func() {
					for _, lost := range c.lost {
						time.Sleep(time.Second - time.Millisecond)
						starvation.Lose(lost)
						time.Sleep(time.Millisecond)
					}
				}()
				time.Sleep(2500 * time.Millisecond)
				never()
				inner, end := context.WithCancel(ctx)
				defer end()
				<-inner.Done()
				synctest.Wait()
				if took := time.Since(begun); took != c.want || time.Duration(called.Load()) != c.want {
					t.Errorf("it ended after %s, and called after %s, want %s", took, time.Duration(called.Load()), c.want)
				}
				if !errors.Is(inner.Err(), context.DeadlineExceeded) {
					t.Errorf("it ended with %v", inner.Err())
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// A context with a limit ends with its parent, and when it is cancelled, for that reason.
func TestAContextEndsForItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := starvation.WithTimeout(t.Context(), time.Second)
		if err := ctx.Err(); err != nil {
			t.Errorf("it begins with %v", err)
		}
		cancel()
		cancel()
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("one that is cancelled ends with %v", ctx.Err())
		}
		parent, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		begun := time.Now()
		ctx, cancel = starvation.WithTimeout(parent, time.Hour)
		defer cancel()
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("with its parent it ends after %s with %v", time.Since(begun), ctx.Err())
		}
	})
}
