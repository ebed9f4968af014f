package publish

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/sources"
)

// writer decides when something is written for people. A failure is logged once, and
// tried again after ever longer pauses.
type writer struct {
	// what is written, for the log.
	what string
	// interval is the shortest time between two writes.
	interval time.Duration
	log      *slog.Logger

	next   time.Time // when the next write may start
	failed int       // writes since the last good one
	said   memo.Once // the failure that was logged last
}

// checkInterval is the time between two checks for something to write.
const checkInterval = time.Second

// run calls do whenever a write may start, until ctx ends.
func (w *writer) run(ctx context.Context, do func(now time.Time)) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if !now.After(w.next) {
				continue
			}
			if err := contain.Run(func() error { do(now); return nil }); err != nil {
				w.fail(ctx, err)
			}
		}
	}
}

// fail ends a write with an error, and logs it unless it was logged last.
func (w *writer) fail(ctx context.Context, err error) {
	w.failed++
	w.next = time.Now().Add(follow.Pause(w.interval, w.failed, sources.RetryAfter(err), rand.Float64()))
	if text := err.Error(); w.said.Changed(w.what, "failure", text) {
		w.log.WarnContext(ctx, "publishing failed, will retry", "what", w.what, "error", text)
	}
}

// succeed ends a write without an error.
func (w *writer) succeed() {
	w.failed = 0
	w.said.Forget(w.what)
}
