package situation

import (
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// refusalCounts is how long what Kubernetes said about a pod counts as what it would say
// now: the StatefulSet controller tries again after a time that doubles up to 1000
// seconds.
const refusalCounts = 20 * time.Minute

// Missing are the pods of members that should exist and do not.
type Missing struct {
	// Names are theirs, by ordinal.
	Names []string
	// Refusal is what Kubernetes says of them; nil where it says nothing, or none is
	// missing.
	Refusal *state.PodRefusal
	// Refused are those that it speaks of.
	Refused []string
}

// Comes reports whether a missing pod is about to be created. The StatefulSet controller
// begins with the lowest, and goes no further than those that are refused.
func (m Missing) Comes(name string) bool {
	return !slices.ContainsFunc(m.Refused, func(refused string) bool { return naming.Ordinal(refused) <= naming.Ordinal(name) })
}

// MissingOf is what the StatefulSet lacks. Nothing waits for the pod of a place without a
// member, and that of a learner has a deadline of its own.
func MissingOf(s *Situation) Missing {
	var m Missing
	for ordinal := range s.Observed.Set.Replicas {
		if name := naming.Member(s.Desired.Name, ordinal); s.IsMember(name) && s.Observed.Pod(name) == nil {
			m.Names = append(m.Names, name)
		}
	}
	if r := s.Observed.Set.Refusal; r != nil && s.Now.Sub(r.At) < refusalCounts {
		m.Refused = slices.DeleteFunc(slices.Clone(m.Names), func(name string) bool { return len(r.Pods) > 0 && !slices.Contains(r.Pods, name) })
	}
	if len(m.Refused) > 0 {
		m.Refusal = s.Observed.Set.Refusal
	}
	return m
}
