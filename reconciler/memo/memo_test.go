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
	m.Put("b", 1)
	m.Put("c", 2)
	m.Retain(func(key string) bool { return key == "c" })
	if m.Get("b") != 0 || m.Get("c") != 2 || m.Len() != 1 {
		t.Errorf("kept b %d and c %d, want 0 and 2", m.Get("b"), m.Get("c"))
	}
}

func TestOnceReportsASentenceOnlyWhenItIsNew(t *testing.T) {
	var said memo.Once
	for i, c := range []struct {
		key, topic, sentence string
		want                 bool
	}{
		{"a", "state", "waiting", true},
		{"a", "state", "waiting", false},
		{"a", "step", "waiting", true},
		{"b", "state", "waiting", true},
		{"a", "state", "", true},
		{"a", "state", "waiting", true},
	} {
		if got := said.Changed(c.key, c.topic, c.sentence); got != c.want {
			t.Errorf("%d: Changed(%q, %q, %q) = %t", i, c.key, c.topic, c.sentence, got)
		}
	}
	said.Clear("a", "state", "unknown")
	if said.Changed("a", "step", "waiting") || !said.Changed("a", "state", "waiting") {
		t.Error("Clear forgets the named topics and no other")
	}
	said.Retain(func(key string) bool { return key == "a" })
	if said.Changed("a", "step", "waiting") || !said.Changed("b", "state", "waiting") {
		t.Error("Retain forgets the other keys and no more")
	}
	said.Forget("a")
	if !said.Changed("a", "step", "waiting") {
		t.Error("Forget forgets every topic")
	}
}
