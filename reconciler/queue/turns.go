package queue

import (
	"sync"
	"time"
)

// turns counts the passes under way that are not aside.
type turns struct {
	mu   sync.Mutex
	busy int
	// last is when one of them last began, ended, went aside or came back.
	last time.Time
}

func (t *turns) begin() { t.turn(1) }

func (t *turns) end() { t.turn(-1) }

func (t *turns) turn(by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy, t.last = t.busy+by, time.Now()
}

// Motionless returns for how long the passes under way have done nothing that can be
// seen: none has begun, ended, gone aside or come back. It is 0 while no pass is under
// way but those that are aside, which wait for something that has an end.
func (q Queue) Motionless(now time.Time) time.Duration {
	q.turns.mu.Lock()
	defer q.turns.mu.Unlock()
	if q.turns.busy == 0 {
		return 0
	}
	return now.Sub(q.turns.last)
}
