package slots

import (
	"sync"
	"time"
)

// Turns let namespaces that wait for a place have one in turn, so that one with many backups
// keeps none of another waiting for all of them. Who waits asks again and again: what does not
// ask any more has no turn.
type Turns struct {
	// Grace is for how long the turn of a namespace is kept that does not ask again.
	Grace time.Duration

	mu sync.Mutex
	// asked is when each that waits asked last, and served when each had a place last.
	asked, served map[string]time.Time
}

// Mine reports whether the next place may be the namespace's: no other one that waits has had
// its last before. It notes that the namespace waits.
func (t *Turns) Mine(namespace string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		t.asked, t.served = map[string]time.Time{}, map[string]time.Time{}
	}
	t.asked[namespace] = now
	mine := true
	for other, at := range t.asked {
		if now.Sub(at) > t.Grace {
			delete(t.asked, other)
			continue
		}
		mine = mine && !t.served[other].Before(t.served[namespace])
	}
	return mine
}

// Served notes that the namespace has had a place, and waits no more.
func (t *Turns) Served(namespace string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.asked, namespace)
	t.served[namespace] = now
}
