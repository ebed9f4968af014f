package plan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
)

// surges reports whether the only member is to be replaced by way of a second one.
func (w *world) surges() bool {
	return w.ask.surge && w.ask.replicas == 1 && w.ask.state == askRunning
}

// judgeSecond wants a second member to have everything when the first one is to leave for it.
func judgeSecond(w *world, s sight) string {
	switch {
	case w.seats[1].learner && s.second.seats[1].learner:
		return "I19: the only voter is to leave"
	case w.claims[1].short && s.second.claims[1].short, w.claims[1].behind && s.second.claims[1].behind:
		return "I16: the only member that has everything is to leave"
	case w.corrupt && s.second.corrupt && s.first.corrupt && !w.corruptLate:
		return "I15: a member is to leave while the other one holds other data"
	}
	return ""
}

// surgeStart is where histories start with one member that is replaced by way of a second one,
// for a restart, for its node, or not yet; some of them in the midst of it.
func surgeStart(d dice) world {
	w := runningWorld(1, []int8{v35, v36, v34, v37}[d.roll(4)])
	w.grownUp(&d)
	w.ask.surge = true
	w.ask.soak, w.ask.skip = []int16{0, 30}[d.roll(2)], d.one(4)
	w.ask.stepwise, w.ask.sweep = d.one(2), d.one(2)
	w.window = []windowState{noWindows, windowOpen, windowClosed}[d.roll(3)]
	w.record.applied = w.ask
	switch d.roll(4) {
	case 1:
		w.claims[0].shut = true
	case 2:
		w.ask.variant = []int8{v35Old, v36, v36Tuned, v36Dies, v36None}[d.roll(5)]
	case 3:
		w.ask.class, w.set.fast, w.set.open = classFast, true, false
	}
	return w
}

// playSurges plays histories, in which commits are taken back and nodes are cordoned at any moment,
// and returns the first invariant that is broken, and the history.
func playSurges(e *engine) (broken string, h history) {
	r := rand.New(rand.NewPCG(556, 1))
	h.events = make([]uint64, 60)
	for range histories(1500, 300) {
		h.redraw(r)
		if broken = e.tried(h, surgeStart); broken != "" {
			return broken, h
		}
	}
	return "", h
}

// 556: whatever Git says meanwhile, whatever crashes and whatever node is cordoned, one member that
// has everything keeps its vote until another has, and each surge comes to its end or is taken back.
func TestSurgesKeepOneMemberThatHasEverything(t *testing.T) {
	e := newEngine(table())
	if broken, h := playSurges(e); broken != "" {
		t.Fatal(e.story(h, surgeStart))
	}
	t.Logf("%d actions, %d worlds at rest", e.tally.actions, e.tally.rests)
}

// 557: what each step of a surge rests on is caught when it is taken out.
func TestEveryMutantOfASurgeIsCaught(t *testing.T) {
	for _, m := range []struct {
		name, breaks string
		table        func([]rule) []rule
		hand         hand
	}{
		{name: "the first member leaves although the data differs", breaks: "I15", table: blind("health surge membership", func(s *situation.Situation) {
			for i := range s.Observed.Rounds {
				s.Observed.Rounds[i].Deep = true
				for j := range s.Observed.Rounds[i].Members {
					s.Observed.Rounds[i].Members[j].Hash = 0
				}
			}
		})},
		{name: "the learner takes the first one's place", breaks: "I", hand: hand{alter: func(w *world, a action.Action) action.Action {
			if actionIs[action.PromoteMember](a) && w.record.members[1] == 0 {
				return action.BeginLeave{Member: podNames[0], ID: memberIDs[w.record.members[0]], Replace: true, Serving: true}
			}
			return a
		}}},
		{name: "a second member stays", breaks: "I13", table: blind("shrink", func(s *situation.Situation) { s.Desired.Spec.Replicas = 2 })},
	} {
		t.Run(m.name, func(t *testing.T) {
			rules := table()
			if m.table != nil {
				rules = m.table(rules)
			}
			e := newEngine(rules)
			e.hand = m.hand
			broken, _ := playSurges(e)
			if !strings.HasPrefix(broken, m.breaks) {
				t.Fatalf("breaks %q, want %s", broken, m.breaks)
			}
			t.Log(broken)
		})
	}
}
