// Package memo keeps one value for each cluster, by its key: what saves work, or words.
// Nothing is decided by it, and a process that starts with nothing in it does the same.
package memo

import (
	"maps"
	"sync"
)

// Map keeps a value for each key. Its zero value is ready to use, by several goroutines.
type Map[T any] struct {
	mu     sync.Mutex
	values map[string]T
}

// Get returns what is kept for a key; the zero value for nothing.
func (m *Map[T]) Get(key string) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key]
}

// Put keeps a value, and returns the one before.
func (m *Map[T]) Put(key string, value T) (before T) {
	return m.Change(key, func(T) T { return value })
}

// Change lets change make a new value of the kept one, and returns the one before.
// change must not use the map.
func (m *Map[T]) Change(key string, change func(T) T) (before T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]T{}
	}
	before = m.values[key]
	m.values[key] = change(before)
	return before
}

// Len is for how many keys something is kept.
func (m *Map[T]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}

// Forget drops what is kept for a key.
func (m *Map[T]) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// Retain drops what is kept for each key for which keep returns false. keep must not use
// the map.
func (m *Map[T]) Retain(keep func(key string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.values, func(key string, _ T) bool { return !keep(key) })
}
