package backup

import (
	"context"
	"io"
	"time"

	"golang.org/x/time/rate"
)

// Timeout bounds one backup, however large the database.
const Timeout = time.Hour

// burst is how many bytes pass at once where the bandwidth is limited.
const burst = 64 << 10

// Slots bound how many backups are taken at the same time, of whatever cluster and
// for whatever reason, and their bandwidth together.
type Slots struct {
	places chan struct{}
	// limit of all backups that pass through this process together; nil for none.
	limit *rate.Limiter
	share int64
}

// NewSlots lets so many backups be taken at once, at a bandwidth in bytes a second; 0
// is no limit.
func NewSlots(places int, bandwidth int64) *Slots {
	s := &Slots{places: make(chan struct{}, places), limit: limiter(bandwidth)}
	if bandwidth > 0 {
		s.share = max(1, bandwidth/int64(places))
	}
	return s
}

// TryAcquire takes a place, if one is free.
func (s *Slots) TryAcquire() (release func(), ok bool) {
	select {
	case s.places <- struct{}{}:
		return s.release, true
	default:
		return nil, false
	}
}

// Acquire takes a place as soon as one is free. The error is that of ctx.
func (s *Slots) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case s.places <- struct{}{}:
		return s.release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Slots) release() { <-s.places }

// Places is how many backups may be taken at once.
func (s *Slots) Places() int { return cap(s.places) }

// Taken is how many places are taken.
func (s *Slots) Taken() int { return len(s.places) }

// Share is the bandwidth of a backup that does not pass through this process, in bytes
// a second; 0 is no limit. Jobs know nothing of one another: each gets what is left for
// it when as many run as may.
func (s *Slots) Share() int64 { return s.share }

// Throttle reads no faster than all that pass through here together may.
func (s *Slots) Throttle(ctx context.Context, r io.Reader) io.Reader {
	return throttle(ctx, r, s.limit)
}

// Throttle reads at a bandwidth in bytes a second at most; 0 is no limit.
func Throttle(ctx context.Context, r io.Reader, bandwidth int64) io.Reader {
	return throttle(ctx, r, limiter(bandwidth))
}

// limiter is a limit in bytes a second, nil for none.
func limiter(bandwidth int64) *rate.Limiter {
	if bandwidth <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(bandwidth), burst)
}

// throttle limits r; a nil limit means no throttling.
func throttle(ctx context.Context, r io.Reader, limit *rate.Limiter) io.Reader {
	if limit == nil {
		return r
	}
	return &limitReader{ctx, r, limit}
}

// limitReader reads no faster than all readers of its limit together may.
type limitReader struct {
	ctx   context.Context
	from  io.Reader
	limit *rate.Limiter
}

func (l *limitReader) Read(p []byte) (int, error) {
	n, err := l.from.Read(p[:min(len(p), burst)])
	if n > 0 {
		if werr := l.limit.WaitN(l.ctx, n); werr != nil {
			return n, werr
		}
	}
	return n, err
}
