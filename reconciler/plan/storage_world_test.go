package plan

import (
	"strings"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// growVolume asks exactly the claim that the decision was made on for more.
func (e *engine) growVolume(w *world, a action.GrowVolume) {
	c := &w.claims[ordinal8(a.Member)]
	if c.there && !c.pending && (podUID(c.uid) == a.UID || e.hand.careless) {
		c.large = true
	}
}

// releaseSet deletes the StatefulSet and leaves its pods, when they are those that
// the decision was made on.
func (e *engine) releaseSet(w *world, a action.ReleaseSet) {
	if a.PodUIDs == w.podUIDs() || e.hand.careless {
		w.set = fakeSet{}
	}
}

// podUIDs are the UIDs of all pods, as the plan lists them.
func (w *world) podUIDs() string {
	var uids []string
	for i := most - 1; i >= 0; i-- {
		if p := &w.pods[i]; p.state != podAbsent {
			uids = append(uids, podUID(p.uid))
		}
	}
	return strings.Join(uids, " ")
}

// misplaced reports whether the volume of a member is of another class than Git wants
// and new members get.
func (w *world) misplaced(i int8) bool {
	c := &w.claims[i]
	return w.ask.class.replaces() && !w.ask.class.differs(w.set.fast) && w.record.members[i] != 0 && c.there && !c.pending && w.ask.class.differs(c.fast)
}

// askForVolumes is a commit about the volumes.
func (w *world) askForVolumes(d *dice) string {
	switch d.roll(4) {
	case 0:
		w.ask.large = !w.ask.large
		return "a commit asks for larger volumes, or for the size of before"
	case 1:
		w.ask.class = askedClass(d.roll(int(classesAsked)))
		return "a commit says something else of the class of volumes"
	case 2:
		i := d.roll(2)
		w.barren[i] = !w.barren[i]
		return "nobody makes volumes of a class any more, or somebody does again"
	}
	w.ask.class = map[bool]askedClass{true: classFast, false: classOpen}[w.ask.class == classOpen]
	return "a commit asks for volumes of another class, or for none any more"
}

// storable reports whether the cluster can get the volumes that its file asks for. Only
// members that have others can go from one class to another.
func (w *world) storable() bool {
	if w.unstorable() {
		return false
	}
	for i := range w.claims {
		c := &w.claims[i]
		if w.record.members[i] == 0 || !c.there || c.pending {
			continue
		}
		switch moves := w.ask.class.replaces() && w.ask.class.differs(c.fast); {
		case moves && (memberCount(w) < 2 || w.ask.replicas < 2 || !w.makes(w.ask.class.fast())):
			return false
		case w.ask.large && !c.large && w.rigid && !c.fast && !moves:
			return false
		}
	}
	return true
}

// replaceable reports whether what has no volume gets one of what Git asks for now.
func (w *world) replaceable(i int8) bool {
	return w.record.members[i] == 0 && !w.unstorable() && (w.ask.class.differs(w.claims[i].fast) && w.makes(w.ask.class.fast()))
}

// judgeStorage wants volumes to grow that are members' and that Git wants larger,
// and a StatefulSet to go only when its successor finds nothing to restart.
func judgeStorage(w *world, s sight, a action.Action) string {
	switch a := a.(type) {
	case action.GrowVolume:
		switch i := ordinal8(a.Member); {
		case !w.ask.large:
			return "I25: a volume grows that Git does not want larger"
		case w.claims[i].held == strangers && s.caches.claims[i].held == strangers:
			return "I7: the volume of somebody else grows"
		}
	case action.ReleaseSet:
		if w.set.large == w.ask.large && !w.misshapen() && (w.ask.class == classOpen || !w.set.open) {
			return "I25: the StatefulSet is made anew for nothing"
		}
		for i := range w.set.replicas {
			if p := &w.pods[i]; w.record.members[i] != 0 && (p.state == podAbsent || p.template != w.ask.variant) {
				return "I25: the StatefulSet goes, and the next one finds something to restart"
			}
		}
	}
	return ""
}

// misshapen reports whether the StatefulSet asks for volumes of another class than the file does, or than there are.
func (w *world) misshapen() bool {
	return w.ask.class.differs(w.set.fast) || w.ask.class == classOpen && !w.set.open && !w.has(w.set.fast)
}

// has reports whether the volume of a member is of a class.
func (w *world) has(fast bool) bool {
	for i := range w.claims {
		if c := &w.claims[i]; w.record.members[i] != 0 && c.there && !c.pending && c.fast == fast {
			return true
		}
	}
	return false
}

// storageMutants get volumes wrong.
func storageMutants() []mutant {
	return []mutant{
		{name: "volumes never grow", breaks: "liveness", table: lacking("enlarge"), from: storageStart},
		{name: "nobody sees growth to its end", breaks: "liveness", table: lacking("volumes"), from: storageStart},
		{name: "the StatefulSet is recreated in the midst of a roll", breaks: "I25", table: func(rules []rule) []rule {
			return below("volumes", "path")(blind("volumes", asIfRolled)(rules))
		}, from: storageStart},
		{name: "a class is not tried", breaks: "I6", table: blind("repair volumes", func(s *situation.Situation) { s.Observed.Trial = state.Trial{State: state.TrialDone} }), from: storageStart},
		{name: "a class changes outside the window", breaks: "I26", table: blind("repair", func(s *situation.Situation) { s.Desired.Spec.Maintenance = nil }), from: storageStart},
		{name: "a class changes while members are down", breaks: "I2", table: blind("repair membership", wellSpoken), from: storageStart},
		{name: "a class changes whatever the fleet does", breaks: "I28", table: blind("repair", func(s *situation.Situation) { s.Observed.Fleet = state.Fleet{} }), from: storageStart},
	}
}

// asIfRolled lets every pod have the template that Git asks for.
func asIfRolled(s *situation.Situation) {
	for i := range s.Observed.Pods {
		s.Observed.Pods[i].Template = s.Desired.Template
	}
	if s.Observed.Set != nil {
		s.Observed.Set.Template, s.Observed.Set.CurrentTemplate = s.Desired.Template, s.Desired.Template
	}
}

// storageStart is where histories start that are about volumes.
func storageStart(d dice) world {
	w := runningWorld(3, v35).asking([]int8{v35, v35Old}[d.roll(2)])
	w.ask.large, w.ask.skip = d.one(2), d.one(2)
	if d.one(2) {
		w.ask.class = classFast
	}
	w.window = []windowState{noWindows, windowClosed}[d.roll(2)]
	w.around.crowded, w.leader = d.one(3), int8(d.roll(3))
	w.rigid, w.barren[1] = d.one(4), d.one(5)
	return w
}
