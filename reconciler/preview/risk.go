package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
)

// leaderMoves counts the steps that hand the leadership over.
func leaderMoves(steps []decision.Step) int {
	n := 0
	for _, s := range steps {
		if _, ok := s.Action.(action.MoveLeader); ok {
			n++
		}
	}
	return n
}

// disruption returns one sentence on what clients notice of the steps; least and
// most are how often the leadership moves, which depends on which member leads.
//
//	members  while one restarts
//	1        clients are cut off
//	2        clients are cut off: a quorum is both
//	3 …      the others keep the quorum
func disruption(replicas int32, steps []decision.Step, least, most int) string {
	var parts []string
	if names := decision.Restarts(steps); len(names) > 0 {
		text := state.Plural(len(names), "restart") + ", one at a time, quorum kept"
		if replicas < 3 {
			text = state.Plural(len(names), "restart") + cutOff(names)
		}
		parts = append(parts, text)
	}
	parts = append(parts, membershipChanges(steps)...)
	if len(parts) == 0 {
		return "no member stops"
	}
	switch {
	case most == 0:
	case least == most:
		parts = append(parts, state.Plural(most, "leader move"))
	default:
		parts = append(parts, fmt.Sprintf("%d to %s", least, state.Plural(most, "leader move")))
	}
	return strings.Join(parts, "; ")
}

// membershipChanges lists how many members join and leave, and whether all stop.
func membershipChanges(steps []decision.Step) []string {
	joins, leaves := 0, 0
	var parts []string
	for _, s := range steps {
		switch s.Action.(type) {
		case action.BeginJoin:
			joins++
		case action.BeginLeave:
			leaves++
		case action.Hibernate, action.BeginDeletion:
			parts = append(parts, "every member stops, and clients are cut off")
		default:
		}
	}
	if leaves > 0 {
		parts = append(parts, state.Plural(leaves, "member")+" removed, one at a time")
	}
	if joins > 0 {
		parts = append(parts, state.Plural(joins, "member")+" added, one at a time")
	}
	return parts
}

// cutOff names the members whose restart is an outage.
func cutOff(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 1 {
		return "; clients are cut off while " + names[0] + " restarts"
	}
	return ", one at a time; clients are cut off while each of " + strings.Join(names, " and ") + " restarts"
}
