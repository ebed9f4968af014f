package situation

import (
	"time"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Exclusive reports whether nobody else may stop a member, because a roll stops one after the
// other: between the last look and a restart the API server would grant an eviction, and
// two members would be down. From the start of the roll to its end the disruption budget keeps
// every pod; while the roll waits for its window, nodes are drained as ever, and so is a node
// that the member which restarts next could not come back to: the roll waits for that. One that
// ends the alarm NOSPACE waits for no window.
func Exclusive(spec schema.ClusterSpec, o state.Observed, now time.Time) bool {
	s := &Situation{Desired: state.Desired{Spec: spec}, Observed: o, Now: now}
	// A StatefulSet that was scaled up by hand has its partition below no member.
	if !s.Formed() || o.Set == nil || !s.RollOpen() && o.Set.Partition >= min(o.Set.Replicas, s.PodCount()) {
		return false
	}
	if s.nextIsShut() {
		return false
	}
	r := s.Observed.Round()
	return s.WindowOpen() || r != nil && r.Alarmed(state.NoSpace)
}

// nextIsShut reports whether the node takes no pod back of the member that the roll under way
// restarts next, as far as the StatefulSet says which one that is.
func (s *Situation) nextIsShut() bool {
	var next state.Pod
	for _, p := range s.Observed.Pods { // in no order yet
		if s.IsMember(p.Name) && p.Template != s.Observed.Set.Template && p.Ordinal >= next.Ordinal {
			next = p
		}
	}
	return next.Shut != ""
}
