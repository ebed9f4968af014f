// Package slots bounds how many backups are taken at the same time, and the bandwidth
// that they take together. What a backup is, it does not know.
package slots

import (
	"context"
	"io"
	"sync"

	"golang.org/x/time/rate"
)

// burst is how many bytes pass at once where the bandwidth is limited.
const burst = 64 << 10

// Slots bound how many backups are taken at the same time, of whatever cluster and
// for whatever reason, and their bandwidth together. As many again may wait for stores
// that say nothing: those cost no other backup its place.
type Slots struct {
	places, quiet chan struct{}
	// limit of all backups that pass through this process together; nil for none.
	limit *rate.Limiter
	share int64
}

// New lets so many backups be taken at once, at a bandwidth in bytes a second; 0
// is no limit.
func New(places int, bandwidth int64) *Slots {
	s := &Slots{places: make(chan struct{}, places), quiet: make(chan struct{}, places), limit: limiter(bandwidth)}
	if bandwidth > 0 {
		s.share = max(1, bandwidth/int64(places))
	}
	return s
}

// Place is the place of one backup.
type Place struct {
	mu sync.Mutex
	// in is what the place is in, nil when it was released.
	in, quiet chan struct{}
}

// TryAcquire takes a place, if one is free: one of those for stores that say nothing if
// the last backup to the store got stuck.
func (s *Slots) TryAcquire(stuck bool) (place *Place, ok bool) {
	in := s.lane(stuck)
	select {
	case in <- struct{}{}:
		return &Place{in: in, quiet: s.quiet}, true
	default:
		return nil, false
	}
}

// Acquire takes such a place as soon as one is free. The error is that of ctx.
func (s *Slots) Acquire(ctx context.Context, stuck bool) (*Place, error) {
	in := s.lane(stuck)
	select {
	case in <- struct{}{}:
		return &Place{in: in, quiet: s.quiet}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Slots) lane(stuck bool) chan struct{} {
	if stuck {
		return s.quiet
	}
	return s.places
}

// Release gives the place back.
func (p *Place) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.in
	p.in = nil
}

// GiveWay lets another backup have the place of this one, which does not move, if there
// is room among those that say nothing.
func (p *Place) GiveWay() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil || p.in == p.quiet {
		return
	}
	select {
	case p.quiet <- struct{}{}:
		<-p.in
		p.in = p.quiet
	default:
	}
}

// Full reports whether all places are taken, of those that move or of the others.
func (s *Slots) Full(stuck bool) bool {
	in := s.lane(stuck)
	return len(in) == cap(in)
}

// Places is how many backups may be taken at once.
func (s *Slots) Places() int { return cap(s.places) }

// Taken is how many places are taken by backups that move.
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
	// What is read at once takes a second at most: a wait for the limit is no silence.
	return &limitReader{ctx, r, limit, max(1, min(burst, int(limit.Limit())))}
}

// limitReader reads no faster than all readers of its limit together may.
type limitReader struct {
	ctx   context.Context
	from  io.Reader
	limit *rate.Limiter
	most  int
}

func (l *limitReader) Read(p []byte) (int, error) {
	n, err := l.from.Read(p[:min(len(p), l.most)])
	if n > 0 {
		if werr := l.limit.WaitN(l.ctx, n); werr != nil {
			return n, werr
		}
	}
	return n, err
}
