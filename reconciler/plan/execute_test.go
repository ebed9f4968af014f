package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

func seconds(n int32) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// fate is what becomes of an action's calls.
type fate int8

const (
	// done: all of them took effect. Quorate may not get to know, since it is
	// killed or the answer is lost: it remembers nothing, so that is the same.
	done fate = iota
	// lost: none took effect.
	lost
	// half: the first did, where an action makes several.
	half
	// late: they are on their way, and take effect when quorate has long looked again.
	late
)

// hand is how the executor of the simulation works. Its zero value is what the
// real one does; a test spoils it to show that it must.
type hand struct {
	// trusting: it does not decide again on fresh data.
	trusting bool
	// careless: it does not compare UIDs.
	careless bool
	// alter changes an action before it is applied.
	alter func(w *world, a action.Action) action.Action
	// hasty records a backup before the store has it.
	hasty bool
	// unversioned: what it writes does not depend on what it has read.
	unversioned bool
}

// pass is one pass of quorate: look, look again, plan, do the first step. It
// returns what was decided, and the invariant that was broken, or "".
func (e *engine) pass(w *world, s sight, f fate) (verdict.Verdict, string) {
	d := e.decide(s.caches, s, w.clock)
	return d.Verdict, e.act(w, s, d, f)
}

// act is the rest of a pass that has decided.
func (e *engine) act(w *world, s sight, d ruling, f fate) string {
	broken := e.take(w, s, d, f)
	if d.handed.from >= 0 && w.leader == d.handed.from && w.mayLead(d.handed.to) {
		w.leader = d.handed.to
	}
	return broken
}

// take does the step that was decided, where it is decided on fresh data as well.
func (e *engine) take(w *world, s sight, d ruling, f fate) string {
	e.tally.passes++
	e.tally.judged.note(w.tempts())
	if d.Step == nil {
		return ""
	}
	if e.telling {
		d, o := e.desired(s.caches), e.observed(s.caches, s)
		s.caches.lookAtBudget(d, &o, w.now())
		e.told = printed("I0: what the simulation has found", d, o, w.now())
	}
	action := d.Step.Action
	if *s.caches != *w && !e.hand.trusting {
		again := e.decide(w, s, w.clock)
		if again.Step == nil || !sameAction(again.Step.Action, action) {
			return "" // the cluster changed: look again
		}
		d, action = again, again.Step.Action
	}
	if e.hand.alter != nil {
		action = e.hand.alter(w, action)
	}
	e.due, e.exclusive = d.due, d.exclusive
	w.evict(s.evicts-1, action)
	return e.carryOut(w, s, action, f)
}

// ruling is what the rules say, and the template that is due then, and whether nobody else may
// stop a member.
type ruling struct {
	verdict.Verdict
	due       string
	exclusive bool
	handed    handover
}

// handover is what a comparison has done to the leadership; from is -1 for nothing.
type handover struct{ from, to int8 }

// compared compares the data of members that need a while for it: the leader hands over
// to the first of the others, but not to one that is about to stop, and both rounds tell so.
func (w *world) compared(o *state.Observed, stops string) handover {
	o.Rounds[0].Deep = true
	for i := range int8(most) {
		if w.leader < 0 || i == w.leader || !w.mayLead(i) || stops != "" && i == ordinal8(stops) {
			continue
		}
		for _, r := range o.Rounds {
			for m := range r.Members {
				if r.Members[m].Leader != "" {
					r.Members[m].Leader = memberIDs[w.seats[i].id]
				}
			}
		}
		return handover{w.leader, i}
	}
	return handover{-1, -1}
}

// mayLead reports whether a member can be handed the leadership.
func (w *world) mayLead(i int8) bool {
	return w.runs(i) && !w.seats[i].learner && !w.claims[i].short
}

func (e *engine) decide(live *world, s sight, clock int32) ruling {
	e.daemon = s.daemon
	d, o, now := e.desired(live), e.observed(live, s), noonPlus(clock)
	exclusive := live.lookAtBudget(d, &o, now)
	live.seen(&o, now)
	if e.witness != nil {
		e.witness(d, o, now)
	}
	for i := range o.Rounds {
		o.Rounds[i].Deep = false
	}
	it := situation.Of(d, o, now)
	v, handed := first(e.rules, it), handover{-1, -1}
	if v.Hold != nil && v.Hold.Compare {
		handed = live.compared(&o, v.Hold.Stops)
		it = situation.Of(d, o, now)
		v = first(e.rules, it)
	}
	return ruling{v, it.Desired.Template, exclusive, handed}
}

// sameAction compares two actions by what they do.
func sameAction(a, b action.Action) bool { return reflect.DeepEqual(a, b) }

// carryOut does to the world what the executor would, preconditions included,
// and returns the invariant that it broke, or "".
func (e *engine) carryOut(w *world, s sight, a action.Action, f fate) string {
	e.tally.actions++
	before := *w
	if broken := e.judge(w, s, a); broken != "" {
		return broken
	}
	switch f {
	case lost:
	case late:
		e.calls = append(e.calls, call{action: a, then: before, due: e.due, exclusive: e.exclusive, left: 10})
		if _, promotes := a.(action.PromoteMember); promotes {
			e.execute(w, a, half) // that it may vote is written down before etcd is asked
		}
	default:
		e.execute(w, a, f)
	}
	return e.judgeAfter(&before, w, a)
}

// carryOut is what a quorate does that has just looked.
func (w *world) carryOut(a action.Action) string {
	before := *w
	e := newEngine(nil)
	e.due = templates[w.ask.variant]
	o := w.observed(&before)
	e.exclusive = w.lookAtBudget(w.desired(), &o, w.now())
	return e.carryOut(w, plainly(&before), a, done)
}

func (e *engine) execute(w *world, a action.Action, f fate) {
	switch a := a.(type) {
	case action.CreateRecord:
		w.createRecord(a)
	case action.IssueCertificates:
		w.secrets = f != half
	case action.ApplyObject:
		e.applyObject(w, a)
	case action.CreateSet:
		n, v := int8(a.Replicas), variantOf(e.due)
		w.goneWay(v)
		w.set = fakeSet{
			there: true, replicas: n, partition: n, template: v, current: v, large: w.ask.large, fast: w.ask.class.fast(), open: w.ask.class == classOpen, made: w.clock,
		}
	case action.RecordFormed:
		e.recordFormed(w, a)
	case action.TakeBackup:
		e.takeBackup(w, a, f)
	case action.StartRoll:
		w.goneWay(variantOf(e.due))
		e.applySet(w, int8(a.Partition))
	case action.MoveLeader:
		e.moveLeader(w, a)
	case action.RestartMember:
		e.restart(w, a)
	case action.EndRoll:
		w.setPartition(int8(a.Replicas))
	case action.RecordApplied:
		w.recordApplied(a)
	case action.NoteTimes:
		w.noteTimes(a)
	default:
		if !e.executeMembership(w, a, f) && !e.executeLifecycle(w, a) && !e.executeUpkeep(w, a, f) {
			panic(fmt.Sprintf("the simulation does not know %T", a))
		}
	}
}

// goneWay is about members that come back as what they were before a roll which
// nobody has recorded: with the last pod, and with the StatefulSet or its replicas, all is gone that
// knew of it. Etcd itself refuses to start then, and leaves the data alone.
func (w *world) goneWay(template int8) {
	alone := !slices.ContainsFunc(w.pods[:], func(p fakePod) bool { return p.state != podAbsent })
	w.tampered = w.tampered || w.record.formed && alone && variants[template].minor < w.version
}

// createRecord begins a cluster, and never overwrites a record.
func (w *world) createRecord(a action.CreateRecord) {
	if w.record.there && !w.record.lost {
		return
	}
	w.record = fakeRecord{there: true, founders: int8(a.Founders), owner: ownerNamed(a.Owner)}
	w.seats, w.leader, w.elected, w.version, w.downgrading = [most]seat{}, -1, false, 0, 0
}

// applySet applies the StatefulSet of the stop that is due, with a partition.
func (e *engine) applySet(w *world, partition int8) { w.changeSet(variantOf(e.due), partition) }

// NewRecordApplied notes that the spec is applied. A release that has read every
// log to be started has found it clean.
func (w *world) recordApplied(a action.RecordApplied) {
	r := &w.record
	r.applied, r.wasApplied, r.settings, r.vague = w.ask, true, wordOf(a.Settings), false
	r.downgrade, r.nudged = 0, fakeNudged{}
	if r.release = 0; a.Version != variants[w.ask.variant].version {
		r.release = wordOf(a.Version)
	}
	if action.ReadsLogs(a.Version) {
		r.flushed = r.members
	}
}

// setPartition moves the partition, and keeps the template that the StatefulSet has.
func (w *world) setPartition(partition int8) { w.changeSet(w.set.template, partition) }

func (w *world) changeSet(template, partition int8) {
	after := w.set
	after.template, after.partition = template, partition
	if after != w.set {
		after.settled = false
	}
	w.set = after
}

// applyObject makes an object what was wanted of it when that was decided.
func (e *engine) applyObject(w *world, a action.ApplyObject) {
	switch a.ObjectKind {
	case budget:
		w.closed = e.exclusive
		return
	case "StatefulSet":
		return // the number of pods is changed by none but CreateSet and ResizeSet
	}
	bit := uint8(1) << (a.Name[len(a.Name)-1] - '0')
	w.missing &^= bit
	w.drifted &^= bit
	if bit == 2 {
		w.around.meddled = 0
	}
}

func (e *engine) recordFormed(w *world, a action.RecordFormed) {
	if w.set.template != w.set.current {
		// It was started over while it came up, and nothing of anybody's is in its logs.
		for i := range w.claims {
			w.claims[i].raw = false
		}
	}
	w.record.formed, w.record.bornOn = true, int8(max(0, slices.Index(lineText, a.BornOn)))
	for name, id := range a.Members {
		w.record.members[ordinal8(name)] = idOf(id)
	}
}

func (e *engine) takeBackup(w *world, a action.TakeBackup, f fate) {
	if (w.bucketBad || f == half || w.leader < 0) && !e.hand.hasty {
		return
	}
	r := &w.record
	switch isRoll := func(b fakeBackup) bool { return b.there && state.Purpose(word(b.purpose)).IsRoll() }; {
	case a.For.IsRoll():
		r.rollBackup = fakeBackup{}
	case isRoll(r.backup):
		r.rollBackup = r.backup
	}
	r.backup = fakeBackup{there: true, purpose: wordOf(string(a.For)), at: w.clock}
}

// moveLeader asks the member that leads, and etcd refuses when it does not.
func (e *engine) moveLeader(w *world, a action.MoveLeader) {
	from, to := w.seated(a.FromID), w.seated(a.ToID)
	if from >= 0 && w.leader == from && to >= 0 && w.mayLead(to) {
		w.leader = to
	}
}

// restart lowers the partition, or deletes exactly the pod that the decision was
// made on.
func (e *engine) restart(w *world, a action.RestartMember) {
	if !a.ByDeletion {
		e.applySet(w, int8(a.Partition))
		return
	}
	e.stop(w, int8(a.Ordinal), a.PodUID)
}

// seated is the ordinal of the member with an ID, or -1.
func (w *world) seated(id string) int8 {
	for i := range w.seats {
		if w.seats[i].id != 0 && memberIDs[w.seats[i].id] == id {
			return int8(i)
		}
	}
	return -1
}

// idOf reads the name of a member's ID.
func idOf(text string) int8 {
	n, err := strconv.ParseInt(text[1:], 10, 8)
	if err != nil {
		panic(err)
	}
	return int8(n) + 1
}
