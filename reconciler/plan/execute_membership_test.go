package plan

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// executeMembership does what changes who is a member, as the executor does it:
// the record is changed where it still says what the action rests on, etcd's list
// is looked at before and after, and a volume goes only when nobody needs it. It
// reports whether it knows the action.
func (e *engine) executeMembership(w *world, a action.Action, f fate) bool {
	r := &w.record
	switch a := a.(type) {
	case action.BeginJoin:
		if i := ordinal8(a.Member); !r.joining.there && !r.leaving.there && r.members[i] == 0 {
			r.joining, r.replacing = fakeJoining{there: true, i: i, replace: a.Replace, since: w.clock}, 0
		}
	case action.AddLearner:
		w.addLearner(ordinal8(a.Member), f)
	case action.PromoteMember:
		w.promote(ordinal8(a.Member), idOf(a.ID), f)
	case action.EndJoin:
		if i := ordinal8(a.Member); r.joining.there && r.joining.i == i {
			r.members[i], r.retired[i], r.joining, r.failed = idOf(a.ID), 0, fakeJoining{}, fakeFailed{}
		}
	case action.DropLearner:
		w.dropLearner(a, f)
	case action.BeginLeave:
		if i := ordinal8(a.Member); !r.joining.there && !r.leaving.there && r.members[i] == idOf(a.ID) {
			r.leaving = fakeLeaving{there: true, i: i, id: idOf(a.ID), replace: a.Replace, serving: a.Serving, asked: a.Asked, since: w.clock}
		}
	case action.CancelLeave:
		if i := w.seated(a.ID); w.leader >= 0 && i >= 0 {
			r.leaving = fakeLeaving{}
		}
	case action.RemoveMember:
		e.removeMember(w, a)
	case action.EndLeave:
		w.endLeave(a)
	case action.EndReplace:
		r.replacing = 0
	case action.ResizeSet:
		w.resize(a)
	case action.DeletePod:
		e.deletePod(w, a)
	case action.DeleteVolume:
		e.deleteVolume(w, a, f)
	case action.RecordHoldings:
		e.recordHoldings(w, a, f)
	default:
		return false
	}
	return true
}

// executeLifecycle does what puts a cluster to sleep, wakes, deletes or revives
// it. It reports whether it knows the action.
func (e *engine) executeLifecycle(w *world, a action.Action) bool {
	switch a := a.(type) {
	case action.Hibernate:
		w.record.hibernated = true
	case action.Wake:
		w.record.hibernated = false
	case action.BeginDeletion:
		w.beginDeletion(a)
	case action.Revive:
		w.record.deleted = false
	case action.DeleteObject:
		w.deleteObject(a)
	case action.ForgetCluster:
		w.record = fakeRecord{}
		w.seats, w.leader, w.elected, w.version, w.downgrading = [most]seat{}, -1, false, 0, 0
	default:
		return false
	}
	return true
}

// beginDeletion writes down what the members are, as far as that is known.
func (w *world) beginDeletion(a action.BeginDeletion) {
	r := &w.record
	if r.deleted = true; a.Version != "" {
		r.applied.variant, r.wasApplied, r.vague, r.settings, r.release = w.set.current, true, true, wordOf(a.Settings), 0
	}
}

func (w *world) addLearner(i int8, f fate) {
	j := &w.record.joining
	if !j.there || j.i != i || j.id != 0 || w.leader < 0 {
		return
	}
	if w.seats[i].id == 0 {
		for _, s := range w.seats {
			if s.learner {
				return // etcd has one already
			}
		}
		if w.ids > 100 {
			w.renumber() // the names of a world are finite
		}
		w.ids++
		w.seats[i] = seat{id: w.ids, learner: true}
	} else if !w.seats[i].learner {
		return // the address is that of a voter
	}
	if f != half {
		j.id = w.seats[i].id
	}
}

// promote writes down that the learner may be a voter, and asks etcd, which wants
// it to run.
func (w *world) promote(i, id int8, f fate) {
	j := &w.record.joining
	if !j.there || j.id != id {
		return
	}
	j.promoting = true
	if s := &w.seats[i]; f != half && s.id == id && w.leader >= 0 && w.runs(i) {
		s.learner = false
	}
}

// dropLearner removes a learner and never a voter.
func (w *world) dropLearner(a action.DropLearner, f fate) {
	i, r := ordinal8(a.Member), &w.record
	if !r.joining.there || r.joining.i != i || w.leader < 0 {
		return
	}
	// One of another ID is none of its business: a call given up has added it later.
	if s := &w.seats[i]; s.id != 0 && (a.ID == "" || s.id == idOf(a.ID)) {
		if !s.learner {
			return
		}
		w.unseat(i)
	}
	if f == half {
		return
	}
	times := int8(1)
	if r.failed.there && r.failed.i == i {
		times = min(r.failed.times+1, 3)
	}
	r.joining, r.failed = fakeJoining{}, fakeFailed{there: true, i: i, times: times, at: w.clock}
	if a.Retire {
		r.retired[i] = idOf(a.ID)
	}
	if a.Replace {
		r.replacing = i + 1
	}
}

// unseat takes a member off etcd's list: its process ends.
func (w *world) unseat(i int8) {
	w.seats[i] = seat{}
	if p := &w.pods[i]; p.state == podUp {
		p.state, p.saved, p.pending = podDown, 0, false
	}
	w.elect()
}

// removeMember removes a member when those who stay are a quorum by what they
// say now.
func (e *engine) removeMember(w *world, a action.RemoveMember) {
	i := w.seated(a.ID)
	l := &w.record.leaving
	if !l.there || l.id != idOf(a.ID) || i < 0 || w.leader < 0 {
		return
	}
	if voters, well := w.votesWithout(i); well < voters/2+1 && !e.hand.careless {
		return
	}
	if i < w.ask.replicas && !l.serving && w.runs(i) && !e.hand.careless {
		return
	}
	w.unseat(i)
}

// votesWithout counts the voters but one, and those of them that run.
func (w *world) votesWithout(i int8) (voters, up int8) {
	voters, up = w.votes()
	if w.seats[i].id != 0 && !w.seats[i].learner {
		voters--
		if w.runs(i) {
			up--
		}
	}
	return voters, up
}

func (w *world) endLeave(a action.EndLeave) {
	i, r := ordinal8(a.Member), &w.record
	if w.leader < 0 || w.seated(a.ID) >= 0 || !r.leaving.there || r.leaving.id != idOf(a.ID) {
		return
	}
	r.members[i], r.retired[i], r.leaving = 0, idOf(a.ID), fakeLeaving{}
	if a.Replace {
		r.replacing = i + 1
	}
}

func (w *world) resize(a action.ResizeSet) {
	if n := int32(w.set.replicas); n != a.From && n != a.To {
		return
	}
	after := w.set
	after.replicas, after.partition, after.byHand = int8(a.To), int8(a.Partition), false
	if after != w.set {
		after.settled = false
	}
	w.set = after
}

// deletePod deletes exactly the pod that the decision was made on, when it is
// nobody's.
func (e *engine) deletePod(w *world, a action.DeletePod) {
	i := ordinal8(a.Member)
	if w.record.members[i] == 0 || w.record.deleted {
		e.stop(w, i, a.PodUID)
	}
}

// deleteVolume deletes exactly the claim that the decision was made on, when
// neither the record nor etcd's list needs it.
func (e *engine) deleteVolume(w *world, a action.DeleteVolume, f fate) {
	i, r := ordinal8(a.Member), &w.record
	c := &w.claims[i]
	joins := r.joining.there && r.joining.i == i && r.joining.id != 0
	if (!r.deleted || w.set.there) && !e.hand.careless {
		if r.members[i] != 0 || joins || w.leader < 0 || (r.retired[i] != 0 && w.seats[i].id == r.retired[i]) {
			return
		}
	}
	if w.guard(i) == guardForeign && w.pods[i].state != podAbsent && !e.hand.careless {
		return
	}
	if c.there && !c.terminating {
		if (podUID(c.uid) != a.UID || r.formed && !w.own(i) && !c.pending) && !e.hand.careless {
			return
		}
		c.terminating = true
		if w.pods[i].state == podAbsent {
			*c = fakeClaim{}
		}
	}
	if f != half {
		r.retired[i] = 0
	}
}

// recordHoldings writes on the claims that the decision was made on what their
// pods, which must be those that it was made on, said.
func (e *engine) recordHoldings(w *world, a action.RecordHoldings, f fate) {
	for n, h := range a.Volumes {
		i := ordinal8(h.Member)
		c, p := &w.claims[i], &w.pods[i]
		same := c.there && !c.terminating && podUID(c.uid) == h.UID && p.state != podAbsent && podUID(p.uid) == h.PodUID
		switch foreign := w.guard(i) == guardForeign; {
		case f == half && n > 0:
			return
		case !same && !e.hand.careless:
		case h.Holds == state.HoldsForeign:
			c.held = strangers
		case !foreign || e.hand.careless:
			c.held = idOf(h.Holds)
		}
	}
}

func (w *world) deleteObject(a action.DeleteObject) {
	switch a.ObjectKind {
	case "StatefulSet":
		w.set = fakeSet{}
	case "Secret":
		w.secrets = false
	case budget:
		w.closed = false
	default:
		bit := uint8(1) << (a.Name[len(a.Name)-1] - '0')
		w.missing, w.drifted = w.missing|bit, w.drifted&^bit
	}
}

// ordinal8 is the ordinal of a member.
func ordinal8(name string) int8 { return int8(name[len(name)-1] - '0') }

// executeUpkeep does what frees space, and what etcd is told before an older minor
// comes. It reports whether it knows the action.
func (e *engine) executeUpkeep(w *world, a action.Action, f fate) bool {
	switch a := a.(type) {
	case action.EnableDowngrade:
		w.enableDowngrade(a, f)
	case action.CancelDowngrade:
		if w.leader >= 0 {
			w.cancelDowngrade(nil)
			if f != half {
				w.record.downgrade = 0 // the record forgets it last
			}
		}
	case action.Defragment:
		w.defragment(w.seated(a.ID))
	case action.Disarm:
		w.disarm()
	case action.Compact:
		w.compact(a, f)
	case action.ForceSnapshot:
		w.nudge(a, f)
	case action.RecordFlushed:
		w.recordFlushed(a)
	case action.ClaimCluster:
		w.claim(a)
	case action.GrowVolume:
		e.growVolume(w, a)
	case action.ReleaseSet:
		e.releaseSet(w, a)
	case action.TryClass:
		w.trial = fakeTrial{there: true, fast: a.Class == classes[true], since: w.clock}
	default:
		return false
	}
	return true
}

// enableDowngrade writes down that the cluster goes down, and tells it.
func (w *world) enableDowngrade(a action.EnableDowngrade, f fate) {
	to := int8(slices.Index(lineText, a.To))
	r := &w.record
	r.downgrade, r.downgradeSince = to, w.clock
	born, flushed := action.LogsAfter(lineText[r.bornOn], map[string]string{}, a.From, a.To)
	r.bornOn = int8(slices.Index(lineText, born))
	if r.flushed = r.members; flushed == nil {
		r.flushed = [most]int8{}
	}
	if f == half || w.leader < 0 || to != w.version-1 {
		return
	}
	w.downgrading, w.version = to, to
	w.raiseStorage()
}
