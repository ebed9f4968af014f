package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
)

// moveKind is a sort of thing that happens without quorate.
type moveKind int8

const (
	controllerNotices moveKind = iota
	podIsCreated
	podIsReplaced
	podIsGone
	rollIsClosed
	etcdIsUp
	etcdDies
	etcdComesBack
	memberCatchesUp
	versionMoves
	claimIsGone
	claimIsMade
	storageIsLowered
	downgradeEnds
	stateIsSaved
	volumeGrows
	volumeIsMade
	trialIsOver
	// What follows are faults.
	faults
	etcdCrashes
	podIsEvicted
	podIsKept
	podIsLetGo
	memberFallsBehind
	memberIsCutOff
	memberIsLinked
	leaderWanders
	partitionIsLowered
	serviceIsDeleted
	serviceIsEdited
	claimIsDeleted
	volumeIsLost
	volumeIsSpoilt
	volumeIsSwapped
	volumeIsOlder
	volumeIsNewer
	nodeIsLost
	nodeComesBack
	nodeIsUnheard
	nodeIsShut
	nodeIsOpened
	setIsScaled
	setIsDeleted
)

var moveTexts = map[moveKind]string{
	controllerNotices: "the StatefulSet controller notices", podIsCreated: "pod is created",
	podIsReplaced: "pod is replaced by the controller", podIsGone: "pod is gone", rollIsClosed: "the controller closes the roll",
	etcdIsUp: "etcd is up", etcdDies: "etcd dies at its start", etcdComesBack: "etcd comes back",
	memberCatchesUp: "member catches up", versionMoves: "the cluster version moves",
	etcdCrashes: "etcd crashes", podIsEvicted: "pod is evicted", memberFallsBehind: "member falls behind",
	memberIsCutOff: "member is cut off from its peers", memberIsLinked: "its peers hear the member again",
	podIsKept: "a finalizer keeps the pod", podIsLetGo: "who keeps the pod lets it go",
	claimIsDeleted: "somebody deletes the claim of a pod that is there",
	leaderWanders:  "the leadership moves by itself", partitionIsLowered: "somebody lowers the partition to 0",
	storageIsLowered: "member brings its storage down", downgradeEnds: "etcd ends the downgrade", stateIsSaved: "member saves its state beside its log",
	claimIsGone: "the volume claim is gone", claimIsMade: "the volume claim is made",
	volumeIsLost: "pod and volume are deleted", volumeIsSpoilt: "the volume gets corrupt", volumeIsSwapped: "the claim is bound to somebody else's volume", nodeIsLost: "the node and the volume on it are lost",
	volumeIsOlder: "the volume is put back to an older snapshot", volumeIsNewer: "the newer volume is put back",
	nodeComesBack: "the node comes back", nodeIsUnheard: "the node does not report any more", setIsScaled: "somebody scales the StatefulSet to", volumeGrows: "the volume grows",
	volumeIsMade: "a volume is made for the claim", trialIsOver: "the trial volume has been made",
	nodeIsShut: "somebody cordons the node that has the volume", nodeIsOpened: "somebody uncordons the node",
	setIsDeleted:     "somebody deletes the StatefulSet, and its pods stay",
	serviceIsDeleted: "somebody deletes a service", serviceIsEdited: "somebody edits a service",
}

// move is one thing that happens in the world without quorate, to an ordinal.
type move struct {
	kind moveKind
	i    int8
}

func (m move) fault() bool { return m.kind > faults }

func (m move) String() string { return fmt.Sprintf("%s (%d)", moveTexts[m.kind], m.i) }

// moves appends all things that can happen next, what happens on its own first.
func (w *world) moves(all []move) []move {
	if w.set.there && !w.set.settled {
		all = append(all, move{kind: controllerNotices})
	}
	if w.set.there && w.set.settled {
		all = w.controllerMoves(all)
	}
	for i := range int8(most) {
		all = w.podMoves(all, i)
	}
	if t := w.trial; t.there && !t.done && w.clock-t.since <= 900 && w.makes(t.fast) {
		all = append(all, move{kind: trialIsOver})
	}
	if w.downgrading > 0 {
		all = w.downgradeMoves(all)
	} else if v := w.nextVersion(); v > w.version {
		all = append(all, move{kind: versionMoves})
	}
	return w.handMoves(all)
}

// downgradeMoves are those of etcd while a downgrade is enabled: members bring
// their storage down, and when all run the older minor it ends.
func (w *world) downgradeMoves(all []move) []move {
	if w.nextVersion() == w.downgrading && w.oldest() {
		return append(all, move{kind: downgradeEnds})
	}
	// A leader of etcd 3.5 takes the cluster version for what the members run.
	if w.leader >= 0 && variants[w.pods[w.leader].template].minor == 5 && w.downgrading == 5 {
		all = append(all, move{kind: downgradeEnds})
	}
	for i := range int8(most) {
		if w.runs(i) && !w.claims[i].low && variants[w.pods[i].template].minor > w.downgrading {
			all = append(all, move{storageIsLowered, i})
		}
	}
	return all
}

// oldest reports whether every member runs the minor that a downgrade goes to.
func (w *world) oldest() bool {
	for i := range w.seats {
		if w.seats[i].id != 0 && variants[w.pods[i].template].minor != w.downgrading {
			return false
		}
	}
	return true
}

// controllerMoves is the StatefulSet controller: it creates absent pods, and
// replaces one outdated pod at or above the partition at a time.
func (w *world) controllerMoves(all []move) []move {
	for i := range w.set.replicas {
		switch {
		case w.pods[i].state != podAbsent:
		case w.barred(i):
			return all // it tries again, and does nothing else
		default:
			return append(all, move{podIsCreated, i})
		}
	}
	for i := w.set.replicas; i < most; i++ {
		if s := w.pods[i].state; s != podAbsent && s != podStopping {
			return append(all, move{podIsReplaced, i})
		}
	}
	for i := w.set.replicas - 1; i >= w.set.partition; i-- {
		p := &w.pods[i]
		if p.template != w.set.template && p.state != podStopping {
			return append(all, move{podIsReplaced, i})
		}
		if !w.ready(i) {
			return all
		}
	}
	if w.set.current != w.set.template && w.allUpdated() {
		all = append(all, move{kind: rollIsClosed})
	}
	return all
}

// allUpdated reports whether every pod has the set's template and is ready.
func (w *world) allUpdated() bool {
	for i := range w.set.replicas {
		if w.pods[i].template != w.set.template || !w.ready(i) {
			return false
		}
	}
	return true
}

func (w *world) podMoves(all []move, i int8) []move {
	c := &w.claims[i]
	p := &w.pods[i]
	if c.terminating && (p.state == podAbsent || p.state == podStarting) {
		all = append(all, move{claimIsGone, i})
	}
	if c.there && c.pending && w.makes(c.fast) {
		all = append(all, move{volumeIsMade, i})
	}
	if c.there && c.large && !c.grown {
		all = append(all, move{volumeGrows, i})
	}
	switch p.state {
	case podStarting:
		switch {
		case !c.there && !w.set.there: // who makes claims is gone
		case !c.there:
			all = append(all, move{claimIsMade, i})
		case !w.startable(i):
		case variants[p.template].dies:
			all = append(all, move{etcdDies, i})
		default:
			all = append(all, move{etcdIsUp, i})
		}
	case podDown:
		if !variants[p.template].dies && c.data == w.seats[i].id && !c.corrupt {
			all = append(all, move{etcdComesBack, i})
		}
	case podStopping:
		if !p.kept {
			all = append(all, move{podIsGone, i})
		}
	case podUp:
		if c.behind && w.leader >= 0 && w.runs(i) {
			all = append(all, move{memberCatchesUp, i})
		}
		if p.pending {
			all = append(all, move{stateIsSaved, i})
		}
	case podAbsent:
	}
	return all
}

// handMoves are faults, and what people do out of band.
func (w *world) handMoves(all []move) []move {
	for i := range int8(most) {
		switch w.pods[i].state {
		case podUp:
			all = append(all, move{etcdCrashes, i}, move{podIsEvicted, i})
			if w.pods[i].cut {
				all = append(all, move{memberIsLinked, i})
			} else if w.runs(i) && memberCount(w) > 1 {
				all = append(all, move{memberIsCutOff, i})
			}
			if w.leader >= 0 && w.leader != i && !w.claims[i].behind && w.runs(i) {
				all = append(all, move{memberFallsBehind, i})
				if !w.seats[i].learner {
					all = append(all, move{leaderWanders, i})
				}
			}
		case podStarting, podDown:
			all = append(all, move{podIsEvicted, i})
		case podStopping:
			keep := move{podIsKept, i}
			if w.pods[i].kept {
				keep.kind = podIsLetGo
			}
			all = append(all, keep)
		case podAbsent:
		}
		all = w.volumeMoves(all, i)
	}
	if w.set.there && w.set.template != w.set.current && w.set.partition > 0 {
		all = append(all, move{kind: partitionIsLowered})
	}
	if w.record.formed && w.missing == 0 && w.drifted == 0 {
		all = append(all, move{kind: serviceIsDeleted}, move{kind: serviceIsEdited})
	}
	if w.record.formed && w.set.there {
		all = append(all, move{kind: setIsDeleted})
		for _, n := range []int8{0, 1, 3, 5} {
			if n != w.set.replicas {
				all = append(all, move{setIsScaled, n})
			}
		}
	}
	return all
}

// nextVersion is the minor that the cluster can agree on: the lowest that its
// members run, once all are up.
func (w *world) nextVersion() int8 {
	low := int8(0)
	for i := range w.seats {
		if w.seats[i].id == 0 {
			continue
		}
		if w.leader < 0 || !w.runs(int8(i)) {
			return 0
		}
		if m := variants[w.pods[i].template].minor; low == 0 || m < low {
			low = m
		}
	}
	return low
}

// apply lets a move happen, and returns what it breaks of etcd, or "".
func (w *world) apply(m move) string {
	i := m.i
	p := &w.pods[i%most] // a number of pods is no ordinal
	switch m.kind {
	case controllerNotices:
		w.set.settled = true
	case podIsCreated:
		w.createPod(i)
	case podIsReplaced, podIsEvicted:
		p.served, p.state = p.state == podUp, podStopping
	case podIsGone:
		*p = fakePod{}
		if w.claims[i].terminating {
			w.claims[i] = fakeClaim{}
		}
		return w.vote()
	case rollIsClosed:
		w.set.current = w.set.template
	case trialIsOver:
		w.trial.done = true
	case etcdIsUp, etcdComesBack:
		return w.startEtcd(i)
	case etcdDies:
		p.state, p.ran = podDown, true
	case memberCatchesUp:
		return w.catchUp(i)
	case stateIsSaved:
		p.saved, p.pending, w.claims[i].raw = p.saved+1, false, false
	case versionMoves:
		w.version = w.nextVersion()
	case storageIsLowered:
		w.claims[i].low = true
	case downgradeEnds:
		w.downgrading = 0
		w.raiseStorage()
	case etcdCrashes:
		p.state, p.saved, p.pending = podDown, 0, false
		return w.vote()
	case podIsKept, podIsLetGo:
		p.kept, p.served, p.readyAt = m.kind == podIsKept, false, w.clock
		return w.vote()
	case memberFallsBehind:
		w.claims[i].behind = true
	case memberIsCutOff, memberIsLinked:
		p.cut = m.kind == memberIsCutOff
		return w.vote()
	case leaderWanders:
		w.leader = i
	case partitionIsLowered:
		w.set.partition, w.tampered = 0, true
	case serviceIsDeleted:
		w.missing |= 2
	case serviceIsEdited:
		w.drifted |= 2
	case setIsDeleted:
		w.set = fakeSet{}
	case setIsScaled:
		w.set.replicas, w.set.byHand, w.set.settled = m.i, true, false
	default:
		return w.applyToVolume(m)
	}
	return ""
}

// evict stops a pod right before another one restarts, where the API server grants that: all are
// ready, there are more than two, and the budget is not closed.
func (w *world) evict(i int8, before action.Action) {
	r, restarts := before.(action.RestartMember)
	if restarts && i >= 0 && i < w.set.replicas && i != int8(r.Ordinal) && memberCount(w) > 2 && !w.closed && w.allReady() {
		w.pods[i].served, w.pods[i].state = true, podStopping
	}
}

// templateFor is the template that the controller makes a pod from.
func (w *world) templateFor(i int8) int8 {
	if i < w.set.partition {
		return w.set.current
	}
	return w.set.template
}

// barred reports whether Kubernetes refuses a pod that is missing.
func (w *world) barred(i int8) bool {
	return w.set.there && i < w.set.replicas && w.pods[i].state == podAbsent && variants[w.templateFor(i)].barred && !w.admits
}

func (w *world) createPod(i int8) {
	w.uids++
	w.pods[i] = fakePod{state: podStarting, template: w.templateFor(i), uid: w.uids, created: w.clock}
	if c := &w.claims[i]; !c.there {
		w.makeClaim(i)
	} else if w.guard(i) != guardStarts {
		c.since = w.clock
	}
}

// raiseStorage lets every storage be that of the release that runs on it.
func (w *world) raiseStorage() {
	for i := range w.claims {
		w.claims[i].low = false
	}
}

// vote lets the members elect a leader where they can.
func (w *world) vote() string {
	if w.elect() {
		return "I5: a quorum of members came up of which none has what was committed"
	}
	w.commit()
	return ""
}

// startEtcd starts the member of a pod, on the volume that the pod has.
func (w *world) startEtcd(i int8) string {
	p, c := &w.pods[i], &w.claims[i]
	if broken := w.wrongBinary(i); broken != "" {
		return broken
	}
	if broken := judgeIdentity(w, i); broken != "" {
		return broken
	}
	p.compared = c.data != 0 && w.version >= 6 && variants[p.template].minor >= 6 && w.othersRun(i)
	if c.data == 0 {
		w.join(i)
	}
	if m := variants[p.template].minor; c.ran > m && w.downgrading == m && !c.low && !w.tampered {
		return fmt.Sprintf("I14: member %d gets the older minor before its storage is brought down", i)
	}
	if c.raw && variants[p.template].minor > 6 && !w.reformed() {
		return fmt.Sprintf("I14: member %d starts etcd 3.7 on a log with entries of 3.5", i)
	}
	c.ran = variants[p.template].minor
	p.state, p.ran, p.heard, p.readyAt = podUp, true, false, w.clock
	if w.seats[i].id == c.data {
		w.seats[i].named = true
	}
	return w.vote()
}

// othersRun reports whether all members but one run: etcd compares its data with no other.
func (w *world) othersRun(but int8) bool {
	for j := range int8(most) {
		if j != but && w.seats[j].id != 0 && !w.runs(j) {
			return false
		}
	}
	return true
}

// join starts a member on an empty volume: one that founds the cluster begins
// with the same list as all the others, a learner with what etcd tells it.
func (w *world) join(i int8) {
	if !w.record.formed {
		for j := range w.record.founders {
			if w.seats[j].id == 0 {
				w.ids++
				w.seats[j].id = w.ids
			}
		}
	}
	if i == 0 && w.record.formed {
		w.corrupt = false // it gets what the others have
	}
	w.claims[i].data = w.seats[i].id
	w.claims[i].behind, w.claims[i].short = w.record.formed, w.record.formed
}

// wrongBinary is what etcd itself refuses or panics at: a binary older than the
// cluster version, or more than one minor newer than it.
func (w *world) wrongBinary(i int8) string {
	if w.version == 0 || w.tampered {
		return ""
	}
	switch m := variants[w.pods[i].template].minor; {
	case m < w.version:
		return fmt.Sprintf("I14: member %d starts with etcd 3.%d in a cluster of version 3.%d", i, m, w.version)
	case m > w.version+1:
		return fmt.Sprintf("I14: member %d starts with etcd 3.%d in a cluster of version 3.%d", i, m, w.version)
	}
	return ""
}
