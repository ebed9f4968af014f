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
		"well: again when it says":        {passes{wait: time.Hour}, 3, 0, 3},
		"nothing names it: never again":   {passes{unknown: true}, 1, 0, 0},
		"a failure: again, less and less": {passes{err: errors.New("away")}, 129, 129, 0},
		"a conflict: told when it lasts":  {passes{err: state.ErrChanged}, 129, 124, 0},
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
