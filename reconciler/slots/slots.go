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

// Kind is what backups are taken for. Each kind has places of its own: no backup that can
// be taken later keeps one back that somebody waits for.
type Kind int

// The kinds.
const (
	// Asked are backups that Git asks for, once or by a schedule.
	Asked Kind = iota
	// Step are those before a rollout, a hibernation or a deletion.
	Step
	// Repair are those before a member is replaced.
	Repair
	kinds
)

// For is a backup that wants a place.
type For struct {
	Kind Kind
	// Store tells stores from one another. Stuck says that the last backup there did not move.
	Store string
	Stuck bool
}

// Slots bound how many backups are taken at the same time, of whatever cluster, and their
// bandwidth together. As many again may try each store at which the last one got stuck: those
// cost no other backup its place, and those for one store none for another.
type Slots struct {
	places [kinds]chan struct{}
	most   int

	mu sync.Mutex
	// stuck are the places at stores that take nothing, by kind and store.
	stuck map[For]chan struct{}
	// limit of all backups that pass through this process together; nil for none.
	limit *rate.Limiter
	share int64
}

// New lets so many backups of each kind be taken at once, at a bandwidth in bytes a second
// of all together; 0 is no limit.
func New(places int, bandwidth int64) *Slots {
	s := &Slots{most: places, stuck: map[For]chan struct{}{}, limit: limiter(bandwidth)}
	for k := range s.places {
		s.places[k] = make(chan struct{}, places)
	}
	if bandwidth > 0 {
		s.share = max(1, bandwidth/int64(places))
	}
	return s
}

// Place is the place of one backup.
type Place struct {
	mu sync.Mutex
	// in is what the place is in, nil when it was given back.
	in chan struct{}
}

// TryAcquire takes a place, if one is free: one of those at its store if the last backup
// there got stuck.
func (s *Slots) TryAcquire(f For) (place *Place, ok bool) {
	in := s.lane(f)
	select {
	case in <- struct{}{}:
		return &Place{in: in}, true
	default:
		return nil, false
	}
}

// Acquire takes such a place as soon as one is free. The error is that of ctx.
func (s *Slots) Acquire(ctx context.Context, f For) (*Place, error) {
	in := s.lane(f)
	select {
	case in <- struct{}{}:
		return &Place{in: in}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Slots) lane(f For) chan struct{} {
	if !f.Stuck {
		return s.places[f.Kind]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck[f] == nil {
		s.stuck[f] = make(chan struct{}, s.most)
	}
	return s.stuck[f]
}

// Release gives the place back, once. A backup that does not move does so before its end: few
// do, because the next ones find their store stuck, and a member that sends nothing is one
// cluster's.
func (p *Place) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in != nil {
		<-p.in
		p.in = nil
	}
}

// Full reports whether all places are taken that a backup could have.
func (s *Slots) Full(f For) bool {
	in := s.lane(f)
	return len(in) == cap(in)
}

// Places is how many backups of a kind may be taken at once.
func (s *Slots) Places() int { return s.most }

// Taken is how many places of a kind are taken by backups that move.
func (s *Slots) Taken(k Kind) int { return len(s.places[k]) }

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
