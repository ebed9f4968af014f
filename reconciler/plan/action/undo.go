package action

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// UndoKind is how far an action can be undone.
type UndoKind int

// The kinds of undo.
const (
	// UndoUnknown is unknown.
	UndoUnknown UndoKind = iota
	// UndoNothing is for an action that leaves nothing to take back.
	UndoNothing
	// UndoAnytime is for what can be taken back soon or late.
	UndoAnytime
	// UndoUntil is for what a revert takes back until something has happened.
	UndoUntil
	// UndoByDowngrade is for what a revert takes back at any time, but by another
	// roll through etcd's downgrade API.
	UndoByDowngrade
	// UndoFinal is for what has no way back through Git.
	UndoFinal
)

// String is the kind as a person reads it.
func (k UndoKind) String() string {
	switch k {
	case UndoNothing:
		return "nothing to take back"
	case UndoAnytime:
		return "reversible at any time by reverting the commit"
	case UndoUntil:
		return "reversible by reverting the commit until the last member runs"
	case UndoByDowngrade:
		return "reversible by reverting the commit, but as a downgrade"
	case UndoFinal:
		return "not reversible by a revert"
	default:
		return "unknown"
	}
}

// Undo says until when an action can be taken back, and how.
type Undo struct {
	Kind UndoKind
	// Text is one sentence for people.
	Text string
}

// undo is a kind and why it is that one; "" where the kind says enough.
func undo(kind UndoKind, why string) Undo {
	if why == "" {
		return Undo{kind, kind.String()}
	}
	return Undo{kind, kind.String() + ": " + why}
}

func harmless(why string) Undo { return undo(UndoNothing, why) }

func anytime(why string) Undo { return undo(UndoAnytime, why) }

func byDowngrade(why string) Undo { return undo(UndoByDowngrade, why) }

func final(why string) Undo { return undo(UndoFinal, why) }

// onlyNotes is the undo of an action that changes nothing but the record.
func onlyNotes() Undo { return harmless("it only writes down what is") }

// untilLast is the undo of what a revert takes back until the last member runs a
// version; rest tells what comes then, "" for nothing.
func untilLast(version, rest string) Undo {
	return Undo{UndoUntil, UndoUntil.String() + " " + version + rest}
}

// undoMade is the undo of an action that makes what a cluster needs before it
// forms, or brings it back.
func undoMade(s *situation.Situation) Undo {
	if !s.Formed() {
		return harmless("no member runs yet")
	}
	return harmless("it brings back what was there")
}

// undoRestart says until when a member can get its old template back. The cluster
// version moves when the last member of the old minor is gone, and then etcd
// refuses the older binary before a downgrade was enabled, which it knows since
// 3.6: everything before can be undone by a revert.
func undoRestart(s *situation.Situation, a RestartMember) Undo {
	from, to, known := parsePair(a.From, a.To)
	switch {
	case !s.Formed():
		return harmless("the cluster has never formed and holds no data")
	case !known:
		return undo(UndoUnknown, "the version that the member comes from is unknown")
	case to.Major == from.Major && to.Minor > from.Minor:
		return undoUpgrade(s, a, from, to)
	case s.Descending():
		return anytime("until the last member runs " + to.String() + " that cancels the downgrade, after it the revert is an upgrade")
	}
	if refused := refusedBack(to, from); refused != "" {
		return untilLast(to.String(), "; after it the way back is refused: "+refused)
	}
	return anytime("")
}

// undoUpgrade is undoRestart for a step up to another minor.
func undoUpgrade(s *situation.Situation, a RestartMember, from, to release.Version) Undo {
	if last(s, a) && refusedBack(to, from) == "" {
		return byDowngrade(fmt.Sprintf("the cluster version is %s then, and etcd's downgrade API is called before a member gets %s back", to.Line(), from))
	}
	if last(s, a) {
		way := "the way back is a restore of the backup that was taken before"
		if s.Desired.Spec.Upgrade.Backup == schema.BackupSkip {
			way = "no backup was asked for, so there is no way back but an older one"
		}
		return final(fmt.Sprintf("after it the cluster version is %s; %s", to.Line(), way))
	}
	return untilLast(to.String(), "")
}

// last reports whether no other member stays on an older minor than the restart
// goes to.
func last(s *situation.Situation, a RestartMember) bool {
	for name, v := range s.Versions() {
		if name != a.Member && v.Line() != state.Minor(a.To) {
			return false
		}
	}
	return true
}

// refusedBack returns why a revert would be refused once the roll has ended, or "".
func refusedBack(from, to release.Version) string {
	refused := situation.Messages(append(release.Bad(to), release.Hop(from, to)...), release.Refuse)
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
