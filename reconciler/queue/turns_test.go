package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/state"
)

// lasting is a handler whose passes last as long as their key says, and whose passes
// "aside …" wait for a store meanwhile.
type lasting struct{}

func (lasting) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	if key == "aside" {
		defer queue.Aside(ctx)()
		time.Sleep(10 * time.Hour)
		return 24 * time.Hour, true, nil
	}
	lasts, err := time.ParseDuration(key)
	time.Sleep(lasts)
	return 24 * time.Hour, true, err
}

func (lasting) Failed(string, error) {}
func (lasting) Succeeded(string)     {}

// 220: what keeps all workers without a sign is seen; nothing to do, a pass that waits for
// a store, and a long pass beside others that turn are no such thing.
func TestOnlyPassesThatDoNotMoveAreMotionless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(state.MinRequeue)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), 2, lasting{})
		}()
		after := func(wait, want time.Duration) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			if got := q.Motionless(time.Now()); got != want {
				t.Errorf("motionless for %s, want %s", got, want)
			}
		}
		after(time.Hour, 0) // nothing to do
		q.Add("aside")
		after(time.Hour, 0)
		q.Add("3h")
		after(time.Hour, time.Hour)
		q.Add("1m")
		after(10*time.Minute, 9*time.Minute) // since the short one has ended
		after(time.Hour, 69*time.Minute)
		after(time.Hour, 0) // the long one has ended
		q.ShutDown()
		<-ended
	})
}
