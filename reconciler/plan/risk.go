package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// How the undo of a step begins.
const (
	// harmless steps leave nothing to take back.
	harmless = "nothing to take back"
	// onlyNotes is the undo of an action that changes nothing but the record.
	onlyNotes = harmless + ": it only writes down what is"
	// anytime is for steps that a revert takes back, soon or late.
	anytime = "reversible at any time by reverting the commit"
	// until is for steps that a revert takes back while the roll is under way.
	until = "reversible by reverting the commit until the last member runs "
	// byDowngrade is for steps that a revert takes back at any time, but by another
	// roll through etcd's downgrade API.
	byDowngrade = "reversible by reverting the commit, but as a downgrade"
	// final steps have no way back through Git.
	final = "not reversible by a revert"
)

// judged is a step that says until when it can be taken back.
func (s *situation) judged(step Step) Step {
	step.Undo = step.Action.undo(s)
	return step
}

// undoMade is the undo of an action that makes what a cluster needs before it
// forms, or brings it back.
func (s *situation) undoMade() string {
	if !s.formed() {
		return harmless + ": no member runs yet"
	}
	return harmless + ": it brings back what was there"
}

// undoRestart says until when a member can get its old template back. The cluster
// version moves when the last member of the old minor is gone, and then etcd
// refuses the older binary before it was told of a downgrade, which it knows since
// 3.6: everything before can be undone by a revert.
func (s *situation) undoRestart(a RestartMember) string {
	from, to, known := parsePair(a.From, a.To)
	switch {
	case !s.formed():
		return harmless + ": the cluster has never formed and holds no data"
	case !known:
		return "nobody knows: the version that the member comes from is unknown"
	case to.Major == from.Major && to.Minor > from.Minor:
		return s.undoUpgrade(a, from, to)
	case s.descending():
		return anytime + ": until the last member runs " + to.String() + " that cancels the downgrade, after it the revert is an upgrade"
	}
	if refused := s.refusedBack(to, from); refused != "" {
		return until + to.String() + "; after it the way back is refused: " + refused
	}
	return anytime
}

// undoUpgrade is undoRestart for a step up to another minor.
func (s *situation) undoUpgrade(a RestartMember, from, to release.Version) string {
	if s.last(a) && s.refusedBack(to, from) == "" {
		return fmt.Sprintf("%s: the cluster version is %s then, and etcd is told before a member gets %s back", byDowngrade, to.Line(), from)
	}
	if s.last(a) {
		way := "the way back is a restore of the backup that was taken before"
		if s.d.Spec.Upgrade.Backup == schema.BackupSkip {
			way = "no backup was asked for, so there is no way back but an older one"
		}
		return fmt.Sprintf("%s: after it the cluster version is %s; %s", final, to.Line(), way)
	}
	return until + to.String()
}

// last says whether no other member stays on an older minor than the restart
// goes to.
func (s *situation) last(a RestartMember) bool {
	for name, v := range s.versions() {
		if name != a.Member && v.Line() != line(a.To) {
			return false
		}
	}
	return true
}

// refusedBack says why a revert would be refused once the roll has ended, or "".
func (s *situation) refusedBack(from, to release.Version) string {
	refused := messages(append(release.Bad(to), release.Hop(from, to)...), release.Refuse)
	if from == to || len(refused) == 0 {
		return ""
	}
	return refused[0]
}

// parsePair reads the two versions of a change.
func parsePair(from, to string) (a, b release.Version, known bool) {
	a, errA := release.Parse(from)
	b, errB := release.Parse(to)
	return a, b, errA == nil && errB == nil
}

// Restarts are the names of the members that the steps stop, in order.
func Restarts(steps []Step) []string {
	var names []string
	for _, s := range steps {
		if a, ok := s.Action.(RestartMember); ok {
			names = append(names, a.Member)
		}
	}
	return names
}

// LeaderMoves counts the steps that hand the leadership over.
func LeaderMoves(steps []Step) int {
	n := 0
	for _, s := range steps {
		if _, ok := s.Action.(MoveLeader); ok {
			n++
		}
	}
	return n
}

// Disruption says in one sentence what clients notice of the steps; least and
// most are how often the leadership moves, which depends on who leads.
//
//	members  while one restarts
//	1        clients are cut off
//	2        clients are cut off: a quorum is both
//	3 …      the others keep the quorum
func Disruption(replicas int32, steps []Step, least, most int) string {
	var parts []string
	if names := Restarts(steps); len(names) > 0 {
		text := plural(len(names), "restart") + ", one at a time, quorum kept"
		if replicas < 3 {
			text = plural(len(names), "restart") + cutOff(names)
		}
		parts = append(parts, text)
	}
	parts = append(parts, comings(steps)...)
	if len(parts) == 0 {
		return "no member stops"
	}
	switch {
	case most == 0:
	case least == most:
		parts = append(parts, plural(most, "leader move"))
	default:
		parts = append(parts, fmt.Sprintf("%d to %s", least, plural(most, "leader move")))
	}
	return strings.Join(parts, "; ")
}

// comings says who joins and leaves, and whether all stop.
func comings(steps []Step) []string {
	joins, leaves := 0, 0
	var parts []string
	for _, s := range steps {
		switch s.Action.(type) {
		case BeginJoin:
			joins++
		case BeginLeave:
			leaves++
		case Hibernate, BeginDeletion:
			parts = append(parts, "every member stops, and clients are cut off")
		default:
		}
	}
	if leaves > 0 {
		parts = append(parts, plural(leaves, "member")+" removed, one at a time")
	}
	if joins > 0 {
		parts = append(parts, plural(joins, "member")+" added, one at a time")
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

// plural is "1 restart", "2 restarts".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
