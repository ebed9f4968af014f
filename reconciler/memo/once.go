package memo

import (
	"maps"
	"slices"
)

// Once keeps the last sentence about each topic of each key, so that a log and a list of
// Events say each thing once. Its zero value is ready to use. It decides nothing.
type Once struct {
	// last maps a topic to its sentence; no map in it is ever changed.
	last Map[map[string]string]
}

// Changed reports whether the sentence differs from the last one on the topic.
func (o *Once) Changed(key, topic, sentence string) bool {
	before := o.last.Change(key, func(last map[string]string) map[string]string {
		if kept, known := last[topic]; known && kept == sentence {
			return last
		}
		next := maps.Clone(last)
		if next == nil {
			next = map[string]string{}
		}
		next[topic] = sentence
		return next
	})
	last, known := before[topic]
	return !known || last != sentence
}

// Clear forgets the last sentence on the topics, so that the same sentence is news again.
func (o *Once) Clear(key string, topics ...string) {
	o.last.Change(key, func(last map[string]string) map[string]string {
		known := func(topic string) bool { _, found := last[topic]; return found }
		if !slices.ContainsFunc(topics, known) {
			return last
		}
		next := maps.Clone(last)
		maps.DeleteFunc(next, func(topic, _ string) bool { return slices.Contains(topics, topic) })
		return next
	})
}

// Forget drops every sentence about a key.
func (o *Once) Forget(key string) { o.last.Forget(key) }

// Retain forgets every sentence about a key for which keep returns false.
func (o *Once) Retain(keep func(key string) bool) { o.last.Retain(keep) }
