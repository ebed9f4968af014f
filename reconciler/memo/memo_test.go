package memo_test

import (
	"sync"
	"testing"

	"github.com/quorate/quorate/reconciler/memo"
)

func TestMap(t *testing.T) {
	var m memo.Map[int]
	if got := m.Get("a"); got != 0 {
		t.Errorf("nothing is kept, got %d", got)
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { m.Change("a", func(n int) int { return n + 1 }) })
	}
	all.Wait()
	if before := m.Put("a", 7); before != 100 || m.Get("a") != 7 || m.Get("b") != 0 {
		t.Errorf("before %d, now %d", before, m.Get("a"))
	}
	m.Forget("a")
	if got := m.Get("a"); got != 0 {
		t.Errorf("forgotten, got %d", got)
	}
}
