package plan

import (
	"cmp"
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// judgeMembership holds what changes the members, and what is taken from them,
// against the invariants.
func judgeMembership(w *world, s sight, a action.Action) string {
	switch a := a.(type) {
	case action.BeginJoin:
		return judgeBeginJoin(w, s, a)
	case action.AddLearner:
		return judgeAdd(w, s)
	case action.PromoteMember:
		return judgePromote(s, a)
	case action.EndJoin:
		if i := s.second.seated(a.ID); i != ordinal8(a.Member) || s.second.seats[i].learner {
			return "I19: recorded a member that has no vote"
		}
	case action.BeginLeave:
		return judgeVictim(w, s, ordinal8(a.Member), a.ID)
	case action.RemoveMember:
		return judgeRemove(w, s, a)
	case action.EndLeave:
		if w.seated(a.ID) >= 0 && s.second.seated(a.ID) >= 0 {
			return "I24: recorded as gone a member that etcd still lists"
		}
	case action.ResizeSet:
		return judgeResize(w, a)
	case action.RecordHoldings:
		for _, h := range a.Volumes {
			if w.claims[ordinal8(h.Member)].data == strangers && podUID(w.claims[ordinal8(h.Member)].uid) == h.UID && h.Holds != state.HoldsForeign {
				return fmt.Sprintf("I7: somebody else's data is said to be that of %s", h.Member)
			}
		}
	case action.DeletePod:
		return judgePod(w, ordinal8(a.Member))
	}
	return ""
}

// judgeBeginJoin wants one change at a time, room in the list, and nobody's data
// on the volume.
func judgeBeginJoin(w *world, s sight, a action.BeginJoin) string {
	switch i := ordinal8(a.Member); {
	case w.record.joining.there || w.record.leaving.there:
		return "I2: a second change of the members begins"
	case w.seats[i].id != 0 && s.second.seats[i].id != 0 && (!w.seats[i].learner || w.seats[i].named): // else it is the learner that an earlier try has added
		return "I24: a member is to be added that etcd lists already"
	case w.claims[i].data != 0 && !w.claims[i].terminating && (w.claims[i].held != 0 || w.record.retired[i] == 0):
		// What was never seen the guard looks at.
		return fmt.Sprintf("I5: member %d is to join on a volume that is not empty", i)
	case i >= w.ask.replicas && (i != 1 || !w.surges()):
		return "I25: a member is to join that Git does not want"
	case a.Replace:
		return "" // a place that is empty does not wait until all is well
	default:
		return judgeAllWell(w, s, i)
	}
}

// judgeAllWell wants every member but one to run, in both looks, before the
// members change.
func judgeAllWell(w *world, s sight, but int8) string {
	for i := range w.seats {
		j := int8(i)
		if j == but || w.seats[i].id == 0 || s.second.seats[i].id == 0 || s.second.lost(j) {
			continue
		}
		if !s.second.runs(j) || s.silent&(1<<i) != 0 {
			return fmt.Sprintf("I2: the members change while member %d is down", i)
		}
	}
	return ""
}

func judgeAdd(w *world, s sight) string {
	for i := range s.second.seats {
		if s.second.seats[i].learner && int8(i) != w.record.joining.i {
			return "I19: a second learner is added"
		}
	}
	if !w.record.joining.there {
		return "I24: a learner is added that no record speaks of"
	}
	return ""
}

// judgePromote wants a learner that runs and has what the others had.
func judgePromote(s sight, a action.PromoteMember) string {
	i := s.second.seated(a.ID)
	switch {
	case i < 0 || i != ordinal8(a.Member):
		return "I20: promotes a learner that is another"
	case !s.second.runs(i) || s.silent&(1<<i) != 0:
		return "I19: promotes a learner that does not run"
	case s.second.claims[i].behind:
		return "I19: promotes a learner that has not caught up"
	}
	// It counts as a voter from now on: the others must be able to do that.
	if voters, up := s.second.votes(); up+1 < (voters+1)/2+1 {
		return "I1: promotes without a quorum"
	}
	return ""
}

// judgeVictim wants the right member to go: one whose data is lost, or one that
// Git does not want, of these the lost one first, else the highest.
func judgeVictim(w *world, s sight, i int8, id string) string {
	if w.seats[i].id == 0 && memberIDs[w.record.members[i]] == id {
		return "" // etcd has let it go already
	}
	if memberIDs[w.seats[i].id] != id {
		return fmt.Sprintf("I20: member %d is to go under an ID that is not its own", i)
	}
	switch wanted := i < w.ask.replicas; {
	case i == 0 && w.surges() && w.record.members[1] != 0 && !w.lost(i):
		return cmp.Or(judgeAllWell(w, s, most), judgeSecond(w, s))
	case w.misplaced(i) && wanted && !w.lost(i):
		if t := w.trial; !w.has(w.ask.class.fast()) && (!t.done || t.fast != w.ask.class.fast()) {
			return fmt.Sprintf("I6: member %d is to go for a volume of a class that nobody has seen make any", i)
		}
		return judgeAllWell(w, s, most)
	case wanted && !w.lost(i) && !s.second.lost(i) && !s.second.away(i):
		return fmt.Sprintf("I17: member %d is to go, whose data is there", i)
	case wanted || w.lost(i) || s.second.away(i):
		return ""
	}
	for j := range int8(most) {
		switch {
		case j > i && w.seats[j].id != 0 && !w.seats[j].learner:
			return fmt.Sprintf("I20: member %d is to go before %d", i, j)
		case j >= w.ask.replicas && w.lost(j) && s.second.lost(j) && s.second.guardSaid(j):
			return fmt.Sprintf("I20: member %d is to go before %d, whose data is lost", i, j)
		}
	}
	return judgeAllWell(w, s, i)
}

// away reports whether the node of a member does not report, and the member does not run.
func (w *world) away(i int8) bool { return w.claims[i].unheard && !w.answers(i) }

// guardSaid reports whether the loss of a member has been seen: its pod has tried.
func (w *world) guardSaid(i int8) bool { return w.pods[i].state == podStarting }

// judgeRemove is about quorum: that of the members before, and of those after.
// The executor lists the members once more, so this is judged as it is.
func judgeRemove(w *world, s sight, a action.RemoveMember) string {
	i := s.second.seated(a.ID)
	switch {
	case w.seated(a.ID) < 0:
		return "" // somebody was faster
	case i < 0 || i != ordinal8(a.Member):
		return "I20: removes a member that is another"
	case !w.record.leaving.there || memberIDs[w.record.leaving.id] != a.ID:
		return "I24: removes a member that no record speaks of"
	}
	for _, then := range []*world{s.first, s.second} {
		if voters, up := then.votesWithout(i); voters < 1 {
			return "I1: removes the last voter"
		} else if up < voters/2+1 {
			return "I1: those who stay are no quorum"
		}
		for j := range then.seats {
			if then.seats[j].learner && int8(j) != i {
				return "I2: removes a member while a learner is there"
			}
		}
	}
	// Only who holds other data, or whose volume Git wants changed, goes although it runs.
	if i < w.ask.replicas && !w.record.leaving.serving && w.pods[i].state == podUp && s.second.answers(i) && s.first.answers(i) && s.silent&(1<<i) == 0 {
		return fmt.Sprintf("I17: removes member %d, which runs and is wanted", i)
	}
	if w.leader == i && s.second.leader == i {
		return fmt.Sprintf("I20: removes member %d while it leads", i)
	}
	return ""
}

// judgeResize wants no member to lose its pod, but where all are to.
func judgeResize(w *world, a action.ResizeSet) string {
	if w.record.hibernated || w.record.deleted {
		return ""
	}
	for i := int8(a.To); i < w.set.replicas; i++ { // what somebody has scaled away is not taken
		// Without a member list, only its volume tells that a voter missing from an older record is one.
		unknown := w.olderRecord() && w.claims[i].data != w.seats[i].id
		if w.seats[i].id != 0 && !w.seats[i].learner && !unknown {
			return fmt.Sprintf("I1: takes the pod of member %d, which etcd still lists", i)
		}
	}
	return ""
}

// judgePod wants only pods without a member to be deleted.
func judgePod(w *world, i int8) string {
	if w.record.deleted {
		return ""
	}
	if w.seats[i].id != 0 && w.runs(i) {
		return fmt.Sprintf("I2: deletes the pod of member %d", i)
	}
	return ""
}

// judgeVolume wants only volumes to go that hold nobody's data, and of those only
// the ones that Git has a use for or wants to go.
func judgeVolume(w *world, a action.DeleteVolume) string {
	i := ordinal8(a.Member)
	c := &w.claims[i]
	switch {
	case !c.there || c.terminating:
		return ""
	case c.data == strangers:
		return fmt.Sprintf("I7: deletes the volume of member %d, which holds somebody else's data", i)
	case w.record.deleted && !w.set.there:
		if !w.ask.wipe || w.ask.state != askDeleted {
			return "I12: deletes a volume although Git says nothing of the kind"
		}
		return ""
	case podUID(c.uid) != a.UID:
		return fmt.Sprintf("I3: the volume of member %d is not the one that the decision was made on", i)
	case w.seats[i].id != 0 && c.data == w.seats[i].id:
		return fmt.Sprintf("I6: deletes the volume of member %d", i)
	case w.record.members[i] != 0 || w.seats[i].id != 0:
		return fmt.Sprintf("I6: deletes the volume of member %d before it has left", i)
	case w.record.retired[i] == 0:
		return fmt.Sprintf("I7: deletes a volume of member %d that is unknown", i)
	case i >= w.ask.replicas && !w.ask.sweep && (i != 1 || !w.surges()):
		return fmt.Sprintf("I6: deletes the volume of member %d, which is to be kept", i)
	}
	return ""
}

// judgeLifecycle holds what puts a cluster to sleep or away against the
// invariants.
func judgeLifecycle(w *world, a action.Action) string {
	switch a.(type) {
	case action.Hibernate:
		return judgeSleep(w)
	case action.Wake:
		if w.ask.state == askAsleep {
			return "I25: wakes a cluster that is to sleep"
		}
	case action.BeginDeletion:
		return judgeDeletion(w)
	case action.DeleteObject, action.ForgetCluster:
		if !w.record.deleted || w.ask.state != askDeleted {
			return "I12: deletes what Git does not want deleted: " + a.String()
		}
	}
	return ""
}

// judgeSleep wants a backup, and members that all wake as the same.
func judgeSleep(w *world) string {
	if w.ask.state != askAsleep {
		return "I12: puts a cluster to sleep that Git wants to run"
	}
	for i := range w.seats {
		if w.seats[i].id != 0 && w.pods[i].template != w.set.template {
			return "I14: sleeps in the midst of a roll"
		}
	}
	return judgeBackupFor(w, "hibernation", w.ask.skip)
}

func judgeDeletion(w *world) string {
	switch {
	case w.ask.state != askDeleted:
		return "I12: deletes a cluster that Git does not want deleted"
	case !w.record.formed || w.record.hibernated || !w.set.there:
		return ""
	}
	return judgeBackupFor(w, "deletion", false)
}

// judgeBackupFor wants a backup of this cluster for a purpose.
func judgeBackupFor(w *world, purpose state.Purpose, skip bool) string {
	b := w.backupFor(purpose)
	switch {
	case skip:
		return ""
	case !b.there || b.foreign || state.Purpose(word(b.purpose)) != purpose:
		return "I11: goes without a backup for " + string(purpose)
	case w.clock-b.at > 900 && w.set.template != w.ask.variant || w.clock-b.at > 900 && w.ask.state != askRunning: // the template may be there from an earlier try
		return "I11: goes with an old backup for " + string(purpose)
	}
	return ""
}

// judgeUpkeep holds what frees space and what goes down against the invariants.
func judgeUpkeep(w *world, s sight, a action.Action) string {
	switch a := a.(type) {
	case action.Defragment:
		return judgeDefragment(w, s, a)
	case action.Disarm:
		for i := range s.second.claims {
			if s.second.full(int8(i)) && w.full(int8(i)) {
				return "I23: disarms while a database is at its quota"
			}
		}
	case action.EnableDowngrade:
		switch to := variants[w.ask.variant].minor; {
		case w.anyRuns(v37Early):
			return "I14: enables a downgrade of a release that has no safe one"
		case lineText[to] != a.To || to != s.second.version-1:
			return "I14: enables a downgrade to another minor than the one below that Git asks for"
		default:
			return judgeBackupFor(w, state.ForDowngrade(variants[w.ask.variant].version), w.ask.skip)
		}
	case action.RecordFlushed:
		return judgeFlushed(w, a)
	case action.Compact:
		return judgeCompact(w, s)
	case action.CancelDowngrade:
		if w.downgrading != 0 && variants[w.ask.variant].minor == w.downgrading {
			return "I25: cancels the downgrade that Git asks for"
		}
	}
	return ""
}

// judgeDefragment wants one at a time, and no release that may lose data in it.
func judgeDefragment(w *world, s sight, a action.Defragment) string {
	i := s.second.seated(a.ID)
	switch {
	case i < 0 || i != ordinal8(a.Member):
		return "I20: defragments a member that is another"
	case variants[w.pods[i].template].minor == 4:
		return "I23: defragments a release that may lose data in that"
	case s.second.leader == i && memberCount(s.second) > 1:
		return "I23: defragments the leader"
	}
	for j := range s.second.seats {
		if k := int8(j); k != i && s.second.seats[j].id != 0 && (!s.second.runs(k) || !s.first.runs(k)) {
			return fmt.Sprintf("I23: defragments member %d while %d is down", i, j)
		}
	}
	return ""
}

// judgeIdentity wants an etcd that starts to be who it says it is: one that had
// started before has its own log, and only one that joins has none. The guard knows
// that from the record: an older one that was restored may call a voter a joining member, or a
// removed member a voter, so that the guard is wrong as well. It is not judged then.
func judgeIdentity(w *world, i int8) string {
	c, s := &w.claims[i], &w.seats[i]
	switch {
	case !w.record.formed, w.olderRecord() && (w.record.members[i] != w.earlier.members[i] || c.older):
	case c.data == 0 && s.named && !s.learner:
		return fmt.Sprintf("I5: member %d starts on an empty volume under an ID that has voted", i)
	case c.data != 0 && c.data != w.record.members[i] && c.data != w.record.joining.id:
		return fmt.Sprintf("I5: member %d starts on data that is not its own", i)
	case c.older:
		return fmt.Sprintf("I5: member %d starts on a volume from before what it has promised", i)
	}
	return ""
}
