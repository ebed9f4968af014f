package plan

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
)

// invariants is a set of those of doc.go, a bit each by its number.
type invariants uint32

func those(numbers ...int) (set invariants) {
	for _, n := range numbers {
		set |= 1 << n
	}
	return set
}

// judgedBy are the invariants that the judge holds an action against in this
// world. What it has never held anything against, it has never checked.
func judgedBy(w *world, s sight, a action.Action) invariants {
	return judgedAround(w, s, a) | judgedInside(w, s, a)
}

// judgedAround are those about who else is there.
func judgedAround(w *world, s sight, a action.Action) (set invariants) {
	if w.around.shared && w.record.owner.who != 0 {
		set |= those(27)
	}
	if beginsSomething(w, s, a) {
		set |= those(25, 28)
	}
	return set
}

func judgedInside(w *world, s sight, a action.Action) invariants {
	switch a.(type) {
	case action.CreateRecord:
		return those(7)
	case action.CreateSet:
		return those(4)
	case action.RecordFormed:
		return those(4, 20)
	case action.TakeBackup:
		if w.bucketBad {
			return those(9, 13)
		}
		return those(13)
	case action.StartRoll:
		return those(2, 14) | onBackup(w) | onWindow(w)
	case action.MoveLeader:
		return those(16, 19, 20) | onWindow(w)
	case action.RestartMember:
		if !w.record.formed {
			return those(4)
		}
		return those(2, 3, 14, 15, 16, 20, 25) | onWindow(w)
	case action.EndRoll:
		return those(2)
	case action.RecordApplied:
		return those(13, 14)
	case action.EnableDowngrade:
		return those(14) | onBackup(w)
	case action.CancelDowngrade, action.Wake:
		return those(25)
	case action.Hibernate, action.BeginDeletion:
		return those(12, 14) | onBackup(w)
	case action.DeleteObject, action.ForgetCluster:
		return those(12)
	case action.Defragment, action.Disarm:
		return those(23)
	}
	return judgedOfMembers(w, s, a)
}

// judgedOfMembers are those of an action that changes the members.
func judgedOfMembers(w *world, s sight, a action.Action) invariants {
	switch a := a.(type) {
	case action.BeginJoin:
		return those(2, 5, 24, 25)
	case action.AddLearner:
		return those(19, 24)
	case action.PromoteMember, action.EndJoin:
		return those(19, 20)
	case action.BeginLeave:
		return those(2, 17, 20)
	case action.RemoveMember:
		if s.second.leader == s.second.seated(a.ID) {
			return those(1, 2, 17, 20, 24)
		}
		return those(1, 2, 17, 24)
	case action.EndLeave:
		return those(24)
	case action.ResizeSet:
		return those(1)
	case action.GrowVolume:
		return those(7, 25)
	case action.ReleaseSet, action.TryClass:
		return those(25)
	case action.DeletePod:
		return those(2, 3)
	case action.DeleteVolume:
		if w.record.deleted {
			return those(12)
		}
		return those(3, 6, 7)
	}
	return 0
}

// onBackup is I11 where a backup is needed.
func onBackup(w *world) invariants {
	if w.ask.skip || !changesVersion(w, w.ask.variant) && w.ask.state == askRunning {
		return 0
	}
	return those(11)
}

// onWindow is I26 where no window is open.
func onWindow(w *world) invariants {
	if w.window != windowClosed {
		return 0
	}
	return those(26)
}

// tempts are the invariants that quorate breaks in this world if it does anything
// at all, or the wrong thing.
func (w *world) tempts() (set invariants) {
	for _, t := range []struct {
		there bool
		of    invariants
	}{
		{w.foreign, those(7)},
		{w.ask.broken || w.set.there && w.record.lost, those(12)},
		{w.record.formed && w.elected && w.leader < 0, those(17, 18)},
		{w.ask.frozen || w.unstorable(), those(22)},
	} {
		if t.there {
			set |= t.of
		}
	}
	for i := range int8(most) {
		if g := w.guard(i); w.pods[i].state == podStarting && slices.Contains([]guardSays{guardEmpty, guardForeign, guardOutdated, guardOlder}, g) {
			set |= those(5)
		}
	}
	return set
}

// judgments counts by the number of the invariant.
type judgments [32]int

func (j *judgments) note(set invariants) {
	for n := 0; set != 0; n, set = n+1, set>>1 {
		j[n] += int(set & 1)
	}
}

func (j *judgments) add(more judgments) {
	for n := range j {
		j[n] += more[n]
	}
}

// elsewhere are the invariants that the worlds of the simulation know nothing of,
// and why.
var elsewhere = map[int]string{
	10: "retention has a property of its own, in reconciler/schedule",
	29: "users and roles have a simulation of their own, in reconciler/plan/auth",
}

// invariantTexts are those of doc.go by their number.
func invariantTexts() map[int]string {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		panic(err)
	}
	texts := map[int]string{}
	for _, m := range regexp.MustCompile(`(?m)^//\tI(\d+) +(.*)$`).FindAllStringSubmatch(string(doc), -1) {
		n, _ := strconv.Atoi(m[1])
		texts[n] = strings.TrimRight(m[2], " –")
	}
	return texts
}

// ofRecovery are those that the walk through a recovery judges, and ofWorlds those
// that the worlds with all rules do.
const ofRecovery = invariants(1<<5 | 1<<8 | 1<<13 | 1<<18 | 1<<21)

func ofWorlds() (set invariants) {
	for n := range invariantTexts() {
		if _, other := elsewhere[n]; !other && n != 8 && n != 21 {
			set |= those(n)
		}
	}
	return set
}

// sawAll wants something to have been held against each of the invariants: a check
// that never met its case cannot fail.
func (j *judgments) sawAll(t *testing.T, set invariants) {
	for n := range j {
		if set&those(n) != 0 && j[n] == 0 {
			t.Errorf("nothing was ever held against I%d", n)
		}
	}
}

// Each invariant has a mutant that breaks it, or is none of these worlds.
func TestEveryInvariantHasAMutant(t *testing.T) {
	breaks := map[string]bool{}
	for _, m := range slices.Concat(mutants(), lossMutants()) {
		breaks[m.breaks] = true
	}
	for n, text := range invariantTexts() {
		name := "I" + strconv.Itoa(n)
		if _, other := elsewhere[n]; other == breaks[name] {
			t.Errorf("%s (%s): a mutant breaks it: %t, it is judged elsewhere: %t", name, text, breaks[name], other)
		}
	}
}

// 414: an upgrade needs a fresh backup, also when it was reverted and starts again. Without a quorum
// none can be taken: then a member that already has the version may get other settings.
func TestTheJudgeOfBackups(t *testing.T) {
	const old = "I11: an upgrade began with an old backup"
	for _, c := range []struct {
		name string
		// gave: member 2 has the version; lost: members 1 and 2 are down.
		gave, lost bool
		want       string
	}{
		{"no member has the version", false, false, old},
		{"reverted half way", true, false, old},
		{"no quorum, and no member has the version", false, true, old},
		{"no quorum, and a member has the version", true, true, ""},
	} {
		w := runningWorld(3, v35).asking(v36)
		w.clock, w.record.backup = 5000, fakeBackup{there: true, purpose: wordOf(variants[v36].version)}
		if c.gave {
			w.pods[2].template = v36Dies
		}
		if c.lost {
			w.pods[1].state, w.pods[2].state = podDown, podDown
			w.vote()
		}
		if got := judgeBackup(&w, plainly(&w), v36); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
