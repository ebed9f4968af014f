package publish

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/sources"
)

// turns are the times at which something is written for people, about what is known.
// Nobody waits for it. A failure is said once, and tried again at ever longer
// intervals.
type turns struct {
	// what is written, for the log.
	what string
	// interval is the shortest time between two turns.
	interval time.Duration
	log      *slog.Logger

	next   time.Time // when the next turn may come
	failed int       // turns since the last good one
	said   string
}

// lookInterval is how often it is seen whether there is something to write.
const lookInterval = time.Second

// each calls do again and again, when a turn may come, until ctx ends.
func (t *turns) each(ctx context.Context, do func(now time.Time)) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if now.After(t.next) {
				do(now)
			}
		}
	}
}

// fail ends a turn with an error, and says why unless it was the last to be said.
func (t *turns) fail(ctx context.Context, err error) {
	t.failed++
	t.next = time.Now().Add(follow.Pause(t.interval, t.failed, sources.RetryAfter(err), rand.Float64()))
	if text := err.Error(); text != t.said {
		t.said = text
		t.log.WarnContext(ctx, "not written", "what", t.what, "error", text, "message", "it is tried again; what is done does not depend on it")
	}
}

// succeed ends a turn well.
func (t *turns) succeed() { t.failed, t.said = 0, "" }
