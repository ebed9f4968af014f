package queue

import "strings"

// fair has the keys that wait, and gives the namespaces turns: the keys of one, however many, cost
// a key of another at most one pass each time. Within a namespace the oldest is first.
type fair struct {
	waiting map[string][]string
	// turns are the namespaces with keys, the next one first.
	turns []string
	len   int
}

func newFair() *fair { return &fair{waiting: map[string][]string{}} }

// namespaceOf is the namespace of a key: NAMESPACE/NAME, with or without a kind before it.
func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace[strings.LastIndex(namespace, " ")+1:]
}

// Touch is called for a key that waits already: it keeps its place.
func (f *fair) Touch(string) {}

// Push adds a key.
func (f *fair) Push(key string) {
	namespace := namespaceOf(key)
	if len(f.waiting[namespace]) == 0 {
		f.turns = append(f.turns, namespace)
	}
	f.waiting[namespace] = append(f.waiting[namespace], key)
	f.len++
}

// Pop takes the next key out; there is one.
func (f *fair) Pop() string {
	namespace := f.turns[0]
	keys := f.waiting[namespace]
	f.turns, f.waiting[namespace] = f.turns[1:], keys[1:]
	if len(keys) > 1 {
		f.turns = append(f.turns, namespace)
	} else {
		delete(f.waiting, namespace)
	}
	f.len--
	return keys[0]
}

// Len is how many keys wait.
func (f *fair) Len() int { return f.len }
