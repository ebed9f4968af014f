package plan

import (
	"cmp"
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// The judge knows the world as it is and what quorate has seen of it, and holds
// every action against the invariants of doc.go. It shares no code with the
// rules: what they and it both need to know, it works out on its own.

// judge says which invariant an action would break in this world, or "". What
// Kubernetes says is judged as it is, since the executor reads it again; what
// the members say is judged by the looks, since nobody can see a member crash
// before it does.
func (e *engine) judge(w *world, s sight, a action.Action) string {
	e.tally.judged.note(judgedBy(w, s, a))
	if broken := cmp.Or(judgeWish(w, a), judgeBlind(w, s, a), judgeClaims(w, s, a), judgeAround(w, s, a)); broken != "" {
		return broken
	}
	if w.window == windowClosed && disturbs(w, s, a) {
		return "I26: outside the maintenance window: " + a.String()
	}
	switch a := a.(type) {
	case action.CreateRecord:
		return judgeBegin(w)
	case action.CreateSet:
		return judgeCreate(w)
	case action.RecordFormed:
		return judgeFormed(w, s, a)
	case action.StartRoll:
		return judgeStart(w, s, a)
	case action.MoveLeader:
		return judgeLeader(s, a)
	case action.RestartMember:
		return judgeRestart(w, s, a)
	case action.RecordApplied:
		return judgeApplied(w, s)
	case action.GrowVolume, action.ReleaseSet:
		return judgeStorage(w, s, a)
	}
	if broken := judgeOnce(w, a); broken != "" {
		return broken
	}
	if broken := judgeMembership(w, s, a); broken != "" {
		return broken
	}
	if broken := judgeUpkeep(w, s, a); broken != "" {
		return broken
	}
	return judgeLifecycle(w, a)
}

// judgeWish is about whether anything may be done at all.
func judgeWish(w *world, a action.Action) string {
	_, claims := a.(action.ClaimCluster)
	switch {
	case w.ask.broken:
		return "I12: acted on a file with errors: " + a.String()
	case w.ask.frozen && !claims && w.set.there && w.ask.state == askRunning && !w.record.deleted:
		return "I22: acted on a change that has no safe way: " + a.String()
	case w.foreign:
		return "I7: acted although somebody else's object is in the way: " + a.String()
	case w.set.there && w.record.lost:
		return "I12: acted on a live cluster whose record is lost: " + a.String()
	}
	return ""
}

// judgeBlind wants members that no look has reached to be left alone, unless their own
// kubelet says that they are down.
func judgeBlind(w *world, s sight, a action.Action) string {
	switch a := a.(type) {
	case action.RestartMember:
		if s.blind && w.record.formed && w.ready(int8(a.Ordinal)) {
			return "I17: restarted a member that was not seen and is ready: " + a.String()
		}
	case action.MoveLeader, action.RemoveMember, action.AddLearner, action.PromoteMember, action.BeginLeave, action.RecordFormed:
		if s.blind && w.record.formed {
			return "I17: acted on members that were not seen: " + a.String()
		}
	}
	return ""
}

// judgeClaims wants no member to be stopped whose volume goes with its pod.
func judgeClaims(w *world, s sight, a action.Action) string {
	if !w.record.formed || w.record.deleted {
		return ""
	}
	var stopped []int8
	switch a := a.(type) {
	case action.RestartMember:
		stopped = []int8{int8(a.Ordinal)}
	case action.DeletePod:
		stopped = []int8{ordinal8(a.Member)}
	case action.ResizeSet:
		for i := int8(a.To); i < int8(a.From); i++ {
			stopped = append(stopped, i)
		}
	}
	for _, i := range stopped {
		if w.goes(i) && s.caches.goes(i) && w.runs(i) && s.second.runs(i) {
			return fmt.Sprintf("I6: member %d is stopped, and its volume goes with its pod: %s", i, a)
		}
		if _, rolls := a.(action.RestartMember); rolls && w.claims[i].shut && s.caches.claims[i].shut && w.ready(i) && s.second.ready(i) {
			return fmt.Sprintf("I2: member %d is restarted, and its node takes no new pod: %s", i, a)
		}
	}
	return ""
}

// memberCount is how many voters etcd has.
func memberCount(w *world) int8 {
	voters, _ := w.votes()
	return voters
}

// disturbs reports whether an action disturbs clients of a cluster in which no
// member needs to be fixed by it.
func disturbs(w *world, s sight, a action.Action) bool {
	if !w.record.formed {
		return false
	}
	switch a := a.(type) {
	case action.MoveLeader:
		return !w.record.leaving.there && !w.alarm && !s.second.alarm // a removal that has begun is finished, a full cluster fixed
	case action.RestartMember:
		return w.pods[a.Ordinal].state == podUp && s.second.runs(int8(a.Ordinal))
	case action.StartRoll:
		return w.set.replicas > 0 && templates[w.set.template] != a.Template && w.allReady() && s.second.allReady()
	case action.BeginJoin:
		return w.surges() && ordinal8(a.Member) == 1 && w.misplaced(0) && !w.claims[0].shut && !s.caches.claims[0].shut && s.caches.misplaced(0)
	case action.BeginLeave:
		return a.Replace && (!w.surges() || w.record.members[1] == 0) && w.misplaced(ordinal8(a.Member)) && !w.lost(ordinal8(a.Member)) && !s.second.lost(ordinal8(a.Member))
	}
	return false
}

// judgeBegin wants nothing of an earlier cluster to be there where one begins.
func judgeBegin(w *world) string {
	for i := range w.claims {
		if w.claims[i].data != 0 || w.pods[i].state != podAbsent {
			return "I7: a new cluster begins beside what is left of another"
		}
	}
	return ""
}

func judgeCreate(w *world) string {
	if !w.record.there || !w.secrets || w.missing != 0 {
		return "I4: created members before what they need"
	}
	return ""
}

// judgeFormed wants what is recorded to be what the members said.
func judgeFormed(w *world, s sight, a action.RecordFormed) string {
	if voters, up := s.second.votes(); up < voters || voters != w.record.founders || s.second.leader < 0 {
		return "I4: recorded a cluster that has not formed"
	}
	for name, id := range a.Members {
		if i := ordinal8(name); w.seats[i].id == 0 || memberIDs[w.seats[i].id] != id {
			return "I20: recorded a member that is another"
		}
	}
	return ""
}

// judgeStart holds an upgrade to its backup and its path.
func judgeStart(w *world, s sight, a action.StartRoll) string {
	to := variantOf(a.Template)
	if !w.record.formed || w.set.template == to {
		return "" // only the partition goes back up
	}
	if !w.onTheWay(to) {
		return "I25: a roll to what is not on the way to what Git says"
	}
	if broken := judgeBackup(w, s, to); broken != "" {
		return broken
	}
	return judgePath(w, s, to)
}

// judgeBackup wants a backup of this cluster, taken for this target and not long
// ago, before another version is begun. Giving a roll up begins none; and what was begun
// goes on with other settings while there is no quorum: nothing is written, and no backup can
// be taken before there is one again.
func judgeBackup(w *world, s sight, to int8) string {
	if to == w.set.current || w.ask.skip || !changesVersion(w, to) {
		return ""
	}
	purpose := state.ForUpgrade(variants[to].version)
	if w.downgrading != 0 || s.second.downgrading != 0 { // one that has ended since is for the next pass: no pod was touched
		purpose = state.ForDowngrade(variants[to].version)
	}
	b := w.backupFor(purpose)
	switch {
	case w.begunWith(variants[to].version) && !w.hasQuorum() && !s.second.hasQuorum():
	case w.record.wasApplied && to == w.record.applied.variant && !w.hasQuorum() && !s.second.hasQuorum(): // given up, by the record
	case !b.there || b.foreign:
		return "I11: an upgrade began without a backup of its cluster"
	case state.Purpose(word(b.purpose)) != purpose:
		return "I11: an upgrade began with a backup for another target"
	case w.clock-b.at > 900 && w.downgrading == 0: // a downgrade has begun when etcd was told
		return "I11: an upgrade began with an old backup"
	}
	return ""
}

// begunWith reports whether a roll to a version has begun: the StatefulSet has it or, after a
// revert, a member's pod still does.
func (w *world) begunWith(version string) bool {
	for i := range w.pods {
		if w.pods[i].state != podAbsent && w.seats[i].id != 0 && variants[w.pods[i].template].version == version {
			return true
		}
	}
	return variants[w.set.template].version == version
}

// backupFor is the recorded backup for a purpose, else the last one for any.
func (w *world) backupFor(purpose state.Purpose) fakeBackup {
	if b := w.record.rollBackup; b.there && state.Purpose(word(b.purpose)) == purpose {
		return b
	}
	return w.record.backup
}

// changesVersion reports whether a member has another version than a roll brings. The pod of
// a place without a member has nothing to lose by it.
func changesVersion(w *world, to int8) bool {
	for i := range w.pods {
		if p := &w.pods[i]; p.state != podAbsent && w.seats[i].id != 0 && variants[p.template].version != variants[to].version {
			return true
		}
	}
	return false
}

// judgePath wants the running and the wanted minors to be at most one apart.
func judgePath(w *world, s sight, template int8) string {
	to := variants[template].minor
	if variants[template].refused && template != w.set.current {
		return "I14: a release that no cluster should run"
	}
	for i := range w.pods {
		if w.pods[i].state != podAbsent && w.seats[i].id != 0 && to-variants[w.pods[i].template].minor > 1 {
			return "I14: a minor was skipped"
		}
		if w.seats[i].id != 0 && to > 6 && w.claims[i].raw {
			return fmt.Sprintf("I14: a roll to 3.7, and the log of member %d has entries of 3.5", i)
		}
	}
	if s.second.version > to && (w.anyPod() != "" || s.second.version > variants[w.record.applied.variant].minor) {
		return "I14: an older binary in a cluster whose version has moved"
	}
	return ""
}

func judgeLeader(s sight, a action.MoveLeader) string {
	switch to := s.second.seated(a.ToID); {
	case to < 0 || !s.second.runs(to):
		return "I20: moved the leadership to a member that is down"
	case s.second.seats[to].learner:
		return "I19: moved the leadership to a learner"
	case s.second.claims[to].behind:
		return "I16: moved the leadership to a member that has not caught up"
	}
	return ""
}

// judgeRestart is the heart: nothing else may be down, behind, or leading.
func judgeRestart(w *world, s sight, a action.RestartMember) string {
	target := int8(a.Ordinal)
	if !w.record.formed {
		if s.second.leader >= 0 {
			return "I4: a member of a cluster that has a leader is taken for stillborn"
		}
		return ""
	}
	if podUID(w.pods[target].uid) != a.PodUID {
		return fmt.Sprintf("I3: the pod of member %d is not the one that the decision was made on", target)
	}
	if i := target; !a.ByDeletion && w.runs(i) && w.claims[i].full && s.second.claims[i].full && variants[w.pods[i].template].roomy && !variants[w.set.template].roomy && !w.alarm && !s.second.alarm {
		return fmt.Sprintf("I23: member %d is restarted with a smaller quota than its database has", i)
	}
	if !a.ByDeletion && w.runs(target) && w.unstorable() && s.caches.unstorable() {
		return fmt.Sprintf("I22: member %d is restarted while the file asks for what the volumes cannot become", target)
	}
	// Who does not run can only get better by it.
	if broken := judgeOthers(w, s, target); broken != "" && w.runs(target) {
		return broken
	}
	if s.second.alarm && s.first.alarm && s.second.leader >= 0 && w.runs(target) && !variants[w.set.template].roomy {
		return "I2: a member is restarted while an alarm is up"
	}
	if s.first.corrupt && s.second.corrupt && memberCount(w) > 1 && w.runs(target) && !w.comparedBefore() {
		return "I15: a member is restarted while the members' data differ"
	}
	if memberCount(w) > 1 && s.second.leader == target {
		return fmt.Sprintf("I20: member %d is restarted while it leads", target)
	}
	if a.ByDeletion {
		return ""
	}
	if !w.onTheWay(w.set.template) {
		return "I25: a member would restart with a template that Git does not ask for"
	}
	return judgeOrder(w, s, target)
}

// comparedBefore reports whether what a roll goes by is a comparison from before the data
// differed. What differs since is found by the next member that starts.
func (w *world) comparedBefore() bool { return w.corruptLate && w.comparedWithinTheHour() }

// comparedWithinTheHour reports whether a roll has a comparison to go by: from 3.6 on that
// of etcd itself in a member that was restarted.
func (w *world) comparedWithinTheHour() bool {
	for i := range w.pods {
		restarted := w.seats[i].id != 0 && w.pods[i].compared && w.pods[i].template == w.set.template
		ago := w.clock - w.pods[i].created
		if restarted && ago < 3600 && -ago < 3600 {
			return true
		}
	}
	return false
}

// judgeOthers wants everybody but the target well, in both looks.
func judgeOthers(w *world, s sight, target int8) string {
	for i := range w.set.replicas {
		p := &w.pods[i]
		fresh := p.template == w.set.template && p.template != w.set.current
		switch {
		case i == target || (w.seats[i].id == 0 && s.second.seats[i].id == 0):
		case p.state != podUp || !w.runs(i) || !s.second.runs(i) || !s.first.runs(i) || s.silent&(1<<i) != 0:
			return fmt.Sprintf("I2: member %d is restarted while %d is down", target, i)
		case s.second.claims[i].behind:
			return fmt.Sprintf("I16: member %d is restarted while %d has not caught up", target, i)
		case fresh && w.clock-w.readySince(p) < int32(w.ask.soak):
			return fmt.Sprintf("I16: member %d is restarted while %d soaks", target, i)
		}
	}
	return ""
}

// readySince is when a pod became ready. What lies ahead of the clock counts from when
// quorate noted it, and until then from now.
func (w *world) readySince(p *fakePod) int32 {
	const tolerance = 60
	switch noted := w.record.seenAt; {
	case p.readyAt <= w.clock+tolerance:
		return p.readyAt
	case noted != 0 && p.readyAt <= w.record.seenTo && noted <= w.clock+tolerance:
		return noted
	}
	return w.clock
}

// judgeOrder wants the highest ordinal first, and no more than one pod to go.
func judgeOrder(w *world, s sight, target int8) string {
	for i := w.set.replicas - 1; i > target; i-- {
		if w.seats[i].id != 0 && w.pods[i].state != podAbsent && w.pods[i].template != w.set.template {
			return fmt.Sprintf("I20: member %d is restarted before %d", target, i)
		}
	}
	return judgePath(w, s, w.set.template)
}

func judgeApplied(w *world, s sight) string {
	if w.record.wasApplied && !w.record.vague && w.record.applied == w.ask {
		return "I13: written down as applied once more"
	}
	switch w.ask.state {
	case askAsleep:
		if !w.record.hibernated {
			return "I13: recorded as asleep while it is awake"
		}
		return ""
	case askDeleted, askRunning:
	}
	if memberCount(w) != w.ask.replicas {
		return "I13: recorded as applied with another number of members"
	}
	for i := range w.set.replicas {
		if w.seats[i].id != 0 && (w.pods[i].template != w.ask.variant || w.pods[i].state != podUp) {
			return "I14: recorded as applied while a pod is not"
		}
	}
	if s.second.version != variants[w.ask.variant].minor {
		return "I14: recorded as applied before the cluster version moved"
	}
	return ""
}

// judgeOnce is about what happens once, or only when Git says so in words.
func judgeOnce(w *world, a action.Action) string {
	switch a := a.(type) {
	case action.TakeBackup:
		if b := w.record.backup; b.there && !b.foreign && state.Purpose(word(b.purpose)) == a.For && w.clock-b.at < 600 && w.clock >= b.at {
			return "I13: the same backup is taken again: " + string(a.For)
		}
	case action.BeginRestore, action.CreateVolume, action.EndRestore:
		return "I18: Git asks for no restore: " + a.String() // nor for one of these
	case action.BeginRecovery, action.RestoreVolume, action.AdoptRecovery, action.EndRecovery, action.RefuseRecovery:
		return "I18: Git asks for no recovery: " + a.String() // in this world it never does
	}
	return ""
}

// judgeAfter looks at what an action has done to the world.
func (e *engine) judgeAfter(before, w *world, a action.Action) string {
	if a, ok := a.(action.DeleteVolume); ok && before.claims != w.claims {
		return judgeVolume(before, a)
	}
	if !before.record.formed {
		return ""
	}
	if b := w.record.backup; b.there && b != before.record.backup && before.bucketBad {
		return "I9: recorded a backup that the store does not have"
	}
	loose := 0
	for i := w.set.partition; i < w.set.replicas; i++ {
		if w.seats[i].id != 0 && w.pods[i].state != podAbsent && w.pods[i].template != w.set.template {
			loose++
		}
	}
	// Without a quorum there is no availability to lose: see the rule remedy.
	if loose > 1 && before.leader >= 0 && w.set.partition < before.set.partition {
		return fmt.Sprintf("I2: %s lets %d members go at once", a, loose)
	}
	return ""
}
