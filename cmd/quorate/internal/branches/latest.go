package branches

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler/contain"
)

// View is what is known of all status branches at one time. It is shared, and never changed.
type View struct {
	// Branches are in the order of their names.
	Branches []Branch
	// Read is when they were last read; zero before the first time.
	Read time.Time
	// Problem says why they were not read since; "" where they were.
	Problem string
}

// Find returns the branch of a name.
func (v *View) Find(name string) (Branch, bool) {
	for _, b := range v.Branches {
		if b.Name == name {
			return b, true
		}
	}
	return Branch{}, false
}

// Latest keeps the branches of a Reader up to date while Look is called, and reads nothing
// otherwise.
type Latest struct {
	// Interval is the shortest time between two reads.
	Interval time.Duration
	reader   *Reader
	asked    chan struct{}

	mu   sync.Mutex
	held []kept
	view *View
	// tried is when the last read ended, and next is closed when the next one does.
	tried time.Time
	next  chan struct{}
}

const (
	// defaultInterval is that between two reads, each of which lists the branches.
	defaultInterval = time.Minute
	// restPart and maxRest bound how much of the time is taken by reading.
	restPart, maxRest = 4, 5 * time.Minute
	// patience is how long one who looks waits for news where there are none for longer than
	// maxUnread.
	patience = 2 * time.Second
)

// NewLatest returns a Latest that has read nothing yet. The reader is its own from then on.
func NewLatest(reader *Reader) *Latest {
	return &Latest{
		Interval: defaultInterval, reader: reader, asked: make(chan struct{}, 1), next: make(chan struct{}),
		view: &View{Problem: "the status branches have not been read yet"},
	}
}

// Run reads whenever somebody has looked, until ctx ends.
func (l *Latest) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.asked:
		}
		began := time.Now()
		err := contain.Run(func() error { return l.reader.Read(ctx) })
		if ctx.Err() != nil {
			return
		}
		l.note(err)
		rest := time.NewTimer(max(l.Interval, min(restPart*time.Since(began), maxRest)))
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// note ends a read.
func (l *Latest) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := View{Read: l.view.Read}
	l.tried = time.Now()
	if err != nil {
		v.Problem = err.Error()
	} else {
		v.Read = l.tried
	}
	l.held = l.reader.snapshot()
	v.Branches = at(l.held, l.tried, v.Read)
	l.view = &v
	close(l.next)
	l.next = make(chan struct{})
}

// Look returns what is known now, and has it read again. It waits a moment where all that is
// known is old. The same View is returned for as long as nothing has changed.
func (l *Latest) Look() *View {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := l.next; time.Since(l.tried) > maxUnread {
		l.mu.Unlock()
		select {
		case <-next:
		case <-time.After(patience):
		}
		l.mu.Lock()
	}
	now := time.Now()
	for i := range l.held {
		if l.held[i].doubt(now, l.view.Read) != l.view.Branches[i].Doubt { // it has become old meanwhile
			l.view = &View{at(l.held, now, l.view.Read), l.view.Read, l.view.Problem}
			break
		}
	}
	return l.view
}
