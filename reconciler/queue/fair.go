package queue

import (
	"slices"
	"strings"
	"sync"
)

// fair has the keys that wait. Those of which something is known to have happened, and those whose time has come,
// have their turn alternately: a commit does not wait for looks at all clusters at rest. Within each of these the
// namespaces have turns.
type fair struct {
	mu sync.Mutex
	// happened are the keys of which something has happened since they had their turn.
	happened map[string]bool
	events   byNamespace
	timers   byNamespace
	// timer says that the last key was one of timers.
	timer bool
}

func newFair() *fair {
	return &fair{happened: map[string]bool{}, events: byNamespace{waiting: map[string][]string{}}, timers: byNamespace{waiting: map[string][]string{}}}
}

// happen notes that something has happened of a key which is about to be added.
func (f *fair) happen(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened[key] = true
}

// Touch is called for a key that waits already: it keeps its place, unless it waited for its time.
func (f *fair) Touch(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.happened[key] && f.timers.remove(key) {
		f.events.push(key)
	}
}

// Push adds a key.
func (f *fair) Push(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.happened[key] {
		f.events.push(key)
	} else {
		f.timers.push(key)
	}
}

// Pop takes the next key out; there is one.
func (f *fair) Pop() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = f.events.len == 0 || !f.timer && f.timers.len > 0
	if f.timer {
		return f.timers.pop()
	}
	key := f.events.pop()
	delete(f.happened, key)
	return key
}

// Len is how many keys wait.
func (f *fair) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events.len + f.timers.len
}

// byNamespace gives the namespaces turns: the keys of one, however many, cost a key of another at
// most one pass each time. Within a namespace the oldest is first.
type byNamespace struct {
	waiting map[string][]string
	// turns are the namespaces with keys, the next one first.
	turns []string
	len   int
}

// namespaceOf is the namespace of a key: NAMESPACE/NAME, with or without a kind before it.
func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace[strings.LastIndex(namespace, " ")+1:]
}

func (b *byNamespace) push(key string) {
	namespace := namespaceOf(key)
	if len(b.waiting[namespace]) == 0 {
		b.turns = append(b.turns, namespace)
	}
	b.waiting[namespace] = append(b.waiting[namespace], key)
	b.len++
}

func (b *byNamespace) pop() string {
	namespace := b.turns[0]
	keys := b.waiting[namespace]
	b.turns, b.waiting[namespace] = b.turns[1:], keys[1:]
	if len(keys) > 1 {
		b.turns = append(b.turns, namespace)
	} else {
		delete(b.waiting, namespace)
	}
	b.len--
	return keys[0]
}

// remove takes a key out, if it waits.
func (b *byNamespace) remove(key string) bool {
	namespace := namespaceOf(key)
	i := slices.Index(b.waiting[namespace], key)
	if i < 0 {
		return false
	}
	b.waiting[namespace] = slices.Delete(b.waiting[namespace], i, i+1)
	if len(b.waiting[namespace]) == 0 {
		delete(b.waiting, namespace)
		b.turns = slices.DeleteFunc(b.turns, func(other string) bool { return other == namespace })
	}
	b.len--
	return true
}
