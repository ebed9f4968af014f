package queue_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/state"
)

// slow is a handler whose keys that begin with "slow" wait for an hour, aside.
type slow struct {
	mu           sync.Mutex
	made         map[string]int
	working, top int
}

func (s *slow) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	s.count(key, 1)
	defer s.count("", -1)
	if key[:4] == "slow" {
		s.count("", -1)
		for range 2 { // for two reasons, one after the other and one within the other
			back := queue.Aside(ctx)
			within := queue.Aside(ctx)
			time.Sleep(time.Hour)
			within()
			back()
			back() // twice is once
		}
		s.count("", 1)
	}
	time.Sleep(time.Second)
	return 24 * time.Hour, true, nil
}

func (s *slow) Failed(string, error) {}
func (s *slow) Succeeded(string)     {}

func (s *slow) count(key string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working += by
	s.top = max(s.top, s.working)
	if key != "" {
		s.made[key]++
	}
}

// 173: passes that wait leave their places to others, of which never more are at work
// than there are workers; and when they are back, there are as many workers as before.
func TestAPassThatWaitsLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := queue.New(state.MinRequeue), &slow{made: map[string]int{}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), 2, s)
		}()
		for i := range 6 {
			q.Add("slow" + strconv.Itoa(i))
		}
		time.Sleep(time.Second)
		for i := range 30 {
			q.Add("fast" + strconv.Itoa(i))
		}
		time.Sleep(30 * time.Second)
		s.mu.Lock()
		if len(s.made) != 36 || s.top > 2 {
			t.Errorf("%d keys had their pass, %d at once", len(s.made), s.top)
		}
		s.mu.Unlock()
		time.Sleep(3 * time.Hour)
		s.mu.Lock()
		s.top = 0
		s.mu.Unlock()
		for i := range 30 {
			q.Add("fast" + strconv.Itoa(i))
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		if s.made["fast29"] != 2 || s.top != 2 {
			t.Errorf("%d passes, %d at once", s.made["fast29"], s.top)
		}
		s.mu.Unlock()
		q.ShutDown()
		<-ended
	})
}

// Outside of a pool there is nobody to leave a place to.
func TestAsideOutsideOfAPool(t *testing.T) {
	queue.Aside(t.Context())()
}
