package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// patience is how many looks a world may take to come to rest.
const patience = 600

// settle lets a world come to rest that has no more faults, and wants progress:
// quorate ends with nothing left to do and the cluster as its file says, or with
// a hold that says what a person can do. It returns what is missing, or "".
func (e *engine) settle(w *world) string {
	w.bucketBad = false
	w.calm()
	if w.window == windowClosed {
		w.window = windowOpen
	}
	var v verdict.Verdict
	var last *decision.Hold
	quiet := 0
	for look := range patience {
		broken := ""
		moved, trouble := e.proceed(w, quiet)
		if trouble != "" {
			return trouble
		}
		before := *w
		if v, broken = e.pass(w, plainly(&before), done); broken != "" {
			return broken
		}
		if v.Hold != nil && tellsAPerson(v.Hold) {
			last = v.Hold
		}
		if v.Step == nil && v.Hold == nil && !moved {
			e.held = nil
			e.tally.rests++
			e.tally.longest = max(e.tally.longest, look)
			return w.unsatisfied()
		}
		if quiet++; moved || v.Step != nil {
			quiet = 0
		}
		if quiet > 20 && v.Hold != nil {
			e.tally.longest = max(e.tally.longest, look)
			return e.heldFor(w, v.Hold)
		}
	}
	// Where something is wrong that only a person can end, two rules may undo each
	// other, or one may try again and again.
	if !w.sound() && last != nil {
		e.hold(last)
		return ""
	}
	return fmt.Sprintf("liveness: no rest after %d looks: %+v %+v", patience, v.Hold, v.Step)
}

// proceed lets the next thing happen that happens on its own, and time go by:
// more of it when nothing else happens.
func (e *engine) proceed(w *world, quiet int) (moved bool, trouble string) {
	e.moves = w.moves(e.moves[:0])
	if len(e.moves) == 0 || e.moves[0].fault() {
		w.clock += 60
		if quiet > 5 {
			w.clock += 600
		}
		return false, ""
	}
	if e.moves[0].kind != stateIsSaved { // members do that side by side
		w.clock += 5
	}
	return true, w.apply(e.moves[0])
}

// heldFor wants a hold that does not end on its own to say what a person can do,
// and to hold for a reason.
func (e *engine) heldFor(w *world, h *decision.Hold) string {
	switch {
	case !tellsAPerson(h):
		return fmt.Sprintf("liveness: held for good, and nobody is told what to do: %s: %s", h.Rule, h)
	case w.sound():
		return fmt.Sprintf("liveness: held although nothing is wrong: %s: %s", h.Rule, h)
	}
	e.hold(h)
	return ""
}

// hold notes the last word about a world.
func (e *engine) hold(h *decision.Hold) {
	e.held = h
	e.tally.held[e.adviceOf(h)]++
}

// wayOut is a clause that begins with what a person can do.
var wayOut = regexp.MustCompile(`(^|[:;,] |\bor |\band )(bring|check|commit|compare|delete|find|fix|force-delete|keep|leave|name|put|raise|remove|rename|replace|restore|revert|set|stop|take|upgrade) `)

// tellsAPerson reports whether a hold names something that a person can do, and
// names whom it speaks of where it speaks of somebody named.
func tellsAPerson(h *decision.Hold) bool {
	speaksOf := strings.Contains(h.Do, "named here") || strings.Contains(h.Do, "listed here")
	return wayOut.MatchString(h.Do) && (!speaksOf || strings.Contains(h.Message, "orders-"))
}

// unsatisfied says in what the cluster is not what its file says, or "".
func (w *world) unsatisfied() string {
	want := w.ask
	switch want.state {
	case askAsleep:
		return w.awake()
	case askDeleted:
		return w.undeleted()
	case askRunning:
	}
	if w.set.replicas != want.replicas || memberCount(w) != want.replicas || w.record.joining.there || w.record.leaving.there {
		return "liveness: at rest with another number of members"
	}
	for i := range want.replicas {
		if !w.ready(i) || w.pods[i].template != want.variant || w.claims[i].behind {
			return fmt.Sprintf("liveness: at rest although member %d is not as Git says", i)
		}
		if c := &w.claims[i]; want.large && !c.grown || want.class.differs(c.fast) {
			return fmt.Sprintf("liveness: at rest although the volume of member %d is not as Git says", i)
		}
	}
	for i := want.replicas; i < most; i++ {
		if want.sweep && w.claims[i].there && w.record.retired[i] != 0 && w.own(i) {
			return fmt.Sprintf("liveness: at rest although the volume of the former member %d should go", i)
		}
	}
	switch {
	case want.large != w.set.large, want.class != classOpen && (w.set.open || want.class.differs(w.set.fast)):
		return "liveness: at rest although new members would get other volumes than Git says"
	case w.version != variants[want.variant].minor:
		return "liveness: at rest although the cluster version is another"
	case w.set.current != want.variant || w.set.partition != want.replicas:
		return "liveness: at rest although the roll has not been closed"
	case w.record.applied != want || !w.record.wasApplied || w.record.vague:
		return "liveness: at rest although nobody has written down what was applied"
	case w.closed:
		return "liveness: at rest although nobody else may stop a member"
	case w.missing != 0 || w.drifted != 0:
		return "liveness: at rest although a service is not as Git says"
	}
	return ""
}

// awake says what a cluster still has that sleeps, or "".
func (w *world) awake() string {
	if !w.record.hibernated || w.set.replicas != 0 {
		return "liveness: at rest although the members should sleep"
	}
	return w.anyPod()
}

// undeleted says what a cluster still has that is deleted, or "".
func (w *world) undeleted() string {
	if w.record.lost && !w.set.there {
		return "" // it is unknown what is quorate's
	}
	if w.set.there || w.missing != 7 && w.record.there {
		return "liveness: at rest although the cluster should be deleted"
	}
	for i := range w.claims {
		if w.claims[i].there && w.ask.wipe && w.record.there {
			return "liveness: at rest although the volumes should be deleted"
		}
	}
	return w.anyPod()
}

func (w *world) anyPod() string {
	for i := range w.pods {
		if w.pods[i].state != podAbsent {
			return fmt.Sprintf("liveness: at rest although pod %d is there", i)
		}
	}
	return ""
}

// sound reports whether nothing stands in the way of what Git says: a permanent hold
// would be a mistake then.
func (w *world) sound() bool {
	switch {
	case w.foreign, w.record.owner.who == 2, w.record.lost, w.olderRecord(), w.strayDowngrade(), w.alarm && !w.shrinkable(), w.corrupt, w.tampered, !w.sensible():
		return false
	case memberCount(w) < w.ask.replicas && !w.makes(w.set.fast):
		return false // nobody makes the volumes of members to come
	case w.outquoted():
		return false // a smaller quota would be reached at once
	case w.surges() && !starts(w.ask.variant):
		return false // the second member is tried again and again, and the first one serves
	case !w.set.there && w.record.vague && w.record.settings == 0:
		return false // its members are unknown
	case w.record.hibernated && !w.record.deleted && w.ask.state == askDeleted && w.ask.wipe:
		return false // a backup comes first, and members that sleep give none
	case !w.record.formed && w.elected:
		return false // its quorum was lost before its IDs were recorded
	case w.record.replacing > 0 && variants[w.set.current].minor < w.version && w.set.current != w.set.template:
		return false // its pod would be of an older release than the cluster's: a commit was too early
	case w.record.formed && memberCount(w) < w.ask.replicas && w.misshapen() && w.ask.variant != w.set.template:
		return false // its claim would be of the wrong class, and the StatefulSet is recreated between two rolls only
	case w.record.formed && !w.set.there && w.outgrown():
		return false // members came further than what Git asks for, and what knew of it is gone
	case w.losses() > 0 && !w.repairable():
		return false
	case w.record.formed && w.set.there && w.set.replicas == 0 && variants[w.set.template].minor != variants[w.record.applied.variant].minor:
		return false // scaled to 0 in the midst of a change of version: nobody is left to tell how far it came
	case (w.record.formed || w.record.vague) && !w.set.there && (w.ask.variant != w.record.applied.variant || !w.record.wasApplied || w.record.applied.state == askAsleep):
		// Members that all start at once start as what they were. One of which
		// nothing was applied yet cannot be brought back.
		return false
	}
	for i := range w.pods {
		if w.claims[i].there && w.claims[i].pending && !w.makes(w.claims[i].fast) && !w.replaceable(int8(i)) {
			return false // nobody makes its volume
		}
		if w.claims[i].there && !w.own(int8(i)) && w.unclear(int8(i)) {
			return false // only a person knows what is on it
		}
		if gone := w.record.members[i] != 0 && !w.claims[i].there; w.record.formed && !w.set.there && (gone || w.claims[i].terminating) {
			return false // with the StatefulSet a volume is gone, or was being deleted when Git took a deletion back
		}
		p := &w.pods[i]
		if p.cut || p.kept || w.goes(int8(i)) {
			return false // a person lets its peers hear it again, or the data go with its pod
		}
		if w.seats[i].learner && w.record.joining.id != w.seats[i].id {
			return false // nobody knows who has added it
		}
		if w.claims[i].unheard || w.claims[i].shut {
			return false // its node comes back, or goes; or a person lets pods come to it again
		}
		if w.barred(int8(i)) {
			return false // only a commit, or who has set the quota
		}
		if p.state != podAbsent && (!starts(p.template) || w.stranded(int8(i))) {
			return false
		}
		// A claim that a scaling by hand has left, or a learner whose pod has never
		// started.
		if w.claims[i].there && w.seats[i].id == 0 && w.record.retired[i] == 0 {
			return false
		}
	}
	return w.pathOpen()
}

// outquoted reports whether a database is larger than the quota that the file asks for instead of the member's.
func (w *world) outquoted() bool {
	for i := range w.claims {
		if w.claims[i].full && w.runs(int8(i)) && variants[w.pods[i].template].roomy && !variants[w.ask.variant].roomy {
			return true
		}
	}
	return false
}

// goes reports whether the data of a member goes with its pod.
func (w *world) goes(i int8) bool {
	return w.seats[i].id != 0 && w.pods[i].state != podAbsent && w.claims[i].data == w.seats[i].id && w.claims[i].terminating
}

// outgrown reports whether the members run, or ran, more than Git asks for.
func (w *world) outgrown() bool {
	to := variants[w.ask.variant].minor
	newer := slices.ContainsFunc(w.pods[:], func(p fakePod) bool { return p.state != podAbsent && variants[p.template].minor > to })
	return newer || w.record.downgrade != 0 || w.version > to
}

// unclear reports whether a volume on which no member was seen is in the way.
func (w *world) unclear(i int8) bool {
	switch f := &w.record.failed; {
	case w.ask.state == askDeleted:
		return w.ask.wipe
	case w.claims[i].data == strangers:
		return i < w.ask.replicas || w.pods[i].state != podAbsent // it may be the only copy
	default:
		return f.there && f.i == i && f.times >= 3
	}
}

// repairable reports whether exactly one member is lost and is to be replaced by
// itself.
func (w *world) repairable() bool {
	if w.record.leaving.there {
		return false // a removal that has begun keeps the repair of another from beginning
	}
	for i := range w.claims {
		// Whether it is the roll or the data that keeps a member down only a revert tells.
		told := w.pods[i].template == w.set.current || variants[w.set.current].minor < w.version
		if w.claims[i].data == strangers || w.claims[i].corrupt && w.pods[i].state != podAbsent && !told {
			return false
		}
	}
	return w.losses() == 1 && memberCount(w) > 2 && w.ask.repair != repairNever && w.record.formed && w.set.there
}

// shrinkable reports whether the databases get smaller when they are defragmented,
// and every member runs a release that may be.
func (w *world) shrinkable() bool {
	if w.heavy {
		return false
	}
	for i := range w.pods {
		if w.pods[i].state != podAbsent && variants[w.pods[i].template].minor == 4 {
			return false
		}
	}
	return true
}

// sensible reports whether the file asks for something that can be had.
func (w *world) sensible() bool {
	v := &variants[w.ask.variant]
	return !w.ask.broken && !w.ask.frozen && !v.unpulled && !v.dies && !v.refused && w.storable()
}

// pathOpen reports whether every member can go to the wanted version.
func (w *world) pathOpen() bool {
	to := variants[w.ask.variant].minor
	if w.version != 0 && to != w.version && to != w.version+1 && (!w.ask.stepwise || to <= w.version) {
		return false
	}
	oldest := int8(99)
	for i := range w.pods {
		if w.pods[i].state != podAbsent {
			oldest = min(oldest, variants[w.pods[i].template].minor)
		}
	}
	// Back to the minor that the cluster has, while somebody still runs it.
	return oldest == 99 || oldest == to || oldest == to-1 || (w.ask.stepwise && oldest < to)
}

// A member that the roll itself broke is fixed while the window is closed, and
// no other member is touched.
func TestAClosedWindowLetsABrokenMemberBeMended(t *testing.T) {
	e := newEngine(table())
	w := runningWorld(3, v35).asking(v36None)
	w.window = windowOpen
	for range 200 {
		if w.pods[2].template == v36None {
			w.ask.variant, w.window = v35, windowClosed // reverted at night's end
		}
		before := w
		if _, broken := e.pass(&w, plainly(&before), done); broken != "" {
			t.Fatal(broken)
		}
		if _, trouble := e.proceed(&w, 0); trouble != "" {
			t.Fatal(trouble)
		}
	}
	if w.pods[2].template != v35 || !w.allReady() || w.pods[0].uid != 1 || w.pods[1].uid != 2 {
		t.Errorf("%+v", w)
	}
}
