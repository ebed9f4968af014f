package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// surroundings are who else is there: another daemon, other clusters, and somebody
// who changes what quorate keeps.
type surroundings struct {
	// shared: two daemons follow two places in Git that name this cluster.
	shared bool
	// takeOver is the owner that spec.takeOver names.
	takeOver fakeOwner
	// crowded: as many other clusters are disrupted as may be; ahead: a lower wave
	// is not done; unchecked: a check of one does not hold.
	crowded, ahead, unchecked bool
	// meddled is until when an object that another writer changes again and again is left
	// alone, 0 for nobody does.
	meddled int32
}

// fakeOwner is a daemon, 1 or 2, and its claim.
type fakeOwner struct{ who, claim int8 }

func (o fakeOwner) owner() state.Owner {
	if o.who == 0 {
		return state.Owner{}
	}
	return state.Owner{Source: "git@" + string('a'+rune(o.who)), Instance: "one", Claim: int(o.claim)}
}

// ownerNamed is the opposite.
func ownerNamed(o state.Owner) fakeOwner {
	if o.Nobody() {
		return fakeOwner{}
	}
	return fakeOwner{int8(o.Source[len(o.Source)-1] - 'a'), int8(o.Claim)}
}

// text is what spec.takeOver says.
func (o fakeOwner) text() string {
	if o.who == 0 {
		return ""
	}
	return o.owner().String()
}

// occupied reports whether other clusters come first.
func (a surroundings) occupied() bool { return a.crowded || a.ahead || a.unchecked }

// happen lets something change around the cluster.
func (w *world) happen(d *dice) string {
	a := &w.around
	switch d.roll(4) {
	case 0:
		a.crowded = !a.crowded
		return "other clusters are disrupted, or no more"
	case 1:
		a.ahead, a.unchecked = !a.ahead && !a.unchecked, a.ahead
		return "a lower wave begins, is done, or a check of it holds"
	case 2:
		if w.record.formed && w.missing == 0 {
			w.drifted, a.meddled = w.drifted|2, max(1, w.clock+600)
		}
		return "somebody edits a service again and again"
	}
	if a.takeOver = (fakeOwner{}); d.one(2) {
		a.takeOver = w.record.owner
	}
	return "a commit names " + a.takeOver.text() + " in spec.takeOver"
}

// lookAround is what quorate sees of all that.
func (w *world) lookAround(o *state.Observed) {
	if w.around.crowded {
		o.Fleet.Limit, o.Fleet.Disrupted = 1, []state.Neighbour{{Name: "db/baskets", Why: "it is being rolled"}}
	}
	if w.around.ahead {
		o.Fleet.Unfinished = []state.Neighbour{{Name: "db/test", Why: "it is not done"}}
	}
	if w.around.unchecked {
		o.Fleet.Checks = []state.Check{{Cluster: "db/test", Name: "smoke", Problem: "HTTP 503", Since: noon}}
	}
}

// fight is what an object says that another writer changes again and again.
func (w *world) fight() *state.Fight {
	if w.around.meddled == 0 {
		return nil
	}
	return &state.Fight{Manager: "meddler", Fields: "spec.ports", Times: 4, Until: noonPlus(w.around.meddled)}
}

// fighting reports whether an object is left alone for now.
func (w *world) fighting() bool { return w.around.meddled != 0 && w.around.meddled > w.clock }

// claim changes the owner, when it still is the one that the decision rests on.
func (w *world) claim(a action.ClaimCluster) {
	if was := w.record.owner; was == ownerNamed(a.From) {
		w.record.owner = ownerNamed(a.To)
	}
}

// judgeAround wants one daemon to act, no more clusters disrupted than may be, and
// nothing to begin while another writer undoes what quorate does.
func judgeAround(w *world, s sight, a action.Action) string {
	if c, claims := a.(action.ClaimCluster); claims {
		if was := w.record.owner; was.who != 0 && (was != ownerNamed(c.From) || w.around.takeOver != was) {
			return "I27: takes a cluster over that nobody gave it"
		}
		return ""
	}
	if is := w.record.owner; w.around.shared && w.record.there && !w.record.lost && is.who != 0 && is.who != s.daemon+1 {
		return fmt.Sprintf("I27: acts on the cluster of another: %s", a)
	}
	if o, applies := a.(action.ApplyObject); applies && o.Name == objectNames[1] && w.drifted&2 != 0 && w.fighting() {
		return "I25: fights on"
	}
	if !beginsSomething(w, s, a) {
		return ""
	}
	switch {
	case w.around.occupied() && s.caches.around.occupied():
		return "I28: begins while other clusters are disrupted: " + a.String()
	case w.fighting() && w.drifted&2 != 0 && s.caches.drifted&2 != 0:
		return "I25: begins while somebody undoes what quorate does: " + a.String()
	}
	return ""
}

// beginsSomething reports whether an action disrupts a cluster that is at rest.
func beginsSomething(w *world, s sight, a action.Action) bool {
	if !w.record.formed || w.set.template != w.set.current || w.downgrading != 0 || s.second.downgrading != 0 || !w.allReady() || !s.second.allReady() || w.alarm || s.second.alarm {
		return false
	}
	for i := range w.seats {
		if w.seats[i].id != 0 && w.pods[i].template != w.set.current {
			return false
		}
	}
	switch a := a.(type) {
	case action.StartRoll:
		return templates[w.set.template] != a.Template
	case action.BeginJoin:
		return w.record.replacing == 0 && !a.Replace
	case action.BeginLeave:
		i := ordinal8(a.Member)
		second := w.surges() && w.record.members[1] != 0 // a surge that has begun is brought to its end
		return a.Replace && !second && w.misplaced(i) && !w.lost(i) && !s.second.lost(i) && !w.corrupt && !s.second.corrupt
	}
	return false
}

// The surroundings calm down on their own, or a person sees to it.
func (w *world) calm() {
	w.around.crowded, w.around.ahead, w.around.unchecked = false, false, false
}

// aroundMutants disregard who else is there.
func aroundMutants() []mutant {
	return []mutant{
		{name: "two daemons act on one cluster", breaks: "I27", table: lacking("owner"), from: sharedStart},
		{name: "one may take over whatever it likes", breaks: "I27", table: blind("owner", func(s *situation.Situation) {
			if s.Observed.Record != nil && s.Observed.Record.Owner != nil {
				s.Desired.Spec.TakeOver = s.Observed.Record.Owner.String()
			}
		}), from: sharedStart},
		{name: "any number of clusters is disrupted", breaks: "I28", table: lacking("fleet"), from: sharedStart},
		{name: "a fight never ends", breaks: "I25", table: blind("drift", func(s *situation.Situation) {
			for i := range s.Observed.Objects {
				s.Observed.Objects[i].Fight = nil
			}
		}), from: sharedStart},
		{name: "a roll begins in the midst of a fight", breaks: "I25", table: lacking("fight"), from: sharedStart},
	}
}

// sharedStart is where histories start in bad company.
func sharedStart(d dice) world {
	w := runningWorld(3, v35).asking([]int8{v35Old, v35}[d.roll(2)])
	w.around.shared, w.ask.skip, w.record.owner = true, true, fakeOwner{1, 1}
	w.around.crowded, w.leader = d.one(2), int8(d.roll(3))
	if d.one(2) {
		w.drifted, w.around.meddled, w.around.crowded = 2, 600, false
	}
	return w
}

// truceText is how long a fight rests, for the printer.
func truceText(f *state.Fight, now time.Time) string {
	if f == nil {
		return ""
	}
	return f.Until.Sub(now).String()
}
