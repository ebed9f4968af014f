package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
)

// 420: somebody restores the record from a backup of the Kubernetes API that is older than the
// last change of the members, at any time: no invariant is broken, and most ends in a hold
// that the record as it was last ends.
func TestARestoredRecord(t *testing.T) {
	e := newEngine(table())
	r := rand.New(rand.NewPCG(420, 1))
	h := history{events: make([]uint64, 60)}
	for range 400 {
		h.redraw(r)
		if broken := e.play(h, remembered, nil); broken != "" {
			t.Fatal(e.story(h, remembered))
		}
	}
	proven := 0
	for n, a := range e.advices {
		for _, x := range a.ways {
			if x.name == recordBack {
				proven += e.tally.proven[wayName{n, x.name}]
			}
		}
	}
	if proven < 50 {
		t.Errorf("the record as it was last has led to rest %d times", proven)
	}
}

// A downgrade that Git has taken back, under a record from before it was begun: quorate cannot know
// that it is its own, and a person may be in the middle of it. It is told, whatever else is
// wrong, and each way that the hold names leads to rest.
func TestADowngradeThatTheRecordForgot(t *testing.T) {
	for name, change := range map[string]func(*world){
		"nothing else":         func(*world) {},
		"the cluster slept":    func(w *world) { w.record.hibernated = true },
		"databases are full":   func(w *world) { w.fill(new(dice)) },
		"one storage is lower": func(w *world) { w.claims[0].low = true },
		"one member is lower":  func(w *world) { w.leader, w.pods[2].template, w.set.template, w.set.partition = 0, v35, v35, 2 },
	} {
		for n := range 2 {
			e := newEngine(table())
			w := runningWorld(3, v36)
			w.earlier = w.record
			w.descend(v36)
			w.restoreOlder()
			change(&w)
			if broken := e.settle(&w); broken != "" || e.held == nil || w.downgrading != 5 {
				t.Fatalf("%s: etcd goes down to minor %d, and the hold is %v: %s", name, w.downgrading, e.held, broken)
			}
			ways := e.ways(e.adviceOf(e.held))
			if len(ways) != 2 {
				t.Fatalf("%s: %d ways lead out of %s", name, len(ways), e.held)
			}
			ways[n].take(&w, e.held)
			if broken := e.settle(&w); broken != "" || e.held != nil || w.downgrading != 0 {
				t.Errorf("%s: %s: %s %v", name, ways[n].name, broken, e.held)
			}
		}
	}
}

// A record from before the cluster went down to 3.5, restored while it runs that, is corrected: before
// 3.7 each member saves its state beside its log, which 3.7 could not read.
func TestARecordFromBeforeTheLogsGotOlder(t *testing.T) {
	for name, was := range map[string]func(*fakeRecord){
		"born on 3.6": func(r *fakeRecord) { r.bornOn = 6 },
		"flushed":     func(r *fakeRecord) { r.bornOn, r.flushed = 5, r.members },
	} {
		for _, begun := range []bool{false, true} {
			e := newEngine(table())
			w := runningWorld(3, v35)
			w.record.bornOn = 5
			w.earlier = w.record
			w.earlier.applied.variant = v36
			was(&w.earlier)
			if begun {
				w.ask.variant, w.set.template, w.set.partition, w.pods[2].template = v36, v36, 2, v36
			}
			w.restoreOlder()
			for _, v := range []int8{v36, v37} {
				w.ask.variant = v
				if broken := e.settle(&w); broken != "" || e.held != nil {
					t.Fatalf("%s, begun: %t, to %s: %s %v", name, begun, variants[v].version, broken, e.held)
				}
			}
		}
	}
}

// recordBack is the way out of holds about an older record.
const recordBack = "restore the record as it was last"

// restoreOlder has somebody restore the record from an older backup of the Kubernetes API.
func (w *world) restoreOlder() string {
	if w.outdated {
		return "nothing"
	}
	w.record, w.earlier, w.outdated = w.earlier, w.record, true
	return "the record is restored from an older backup"
}

// restoreRecord puts the record back that was last.
func (w *world) restoreRecord(*decision.Hold) {
	if w.olderRecord() {
		w.record, w.outdated = w.earlier, false
	}
}

// olderRecord reports whether the record is older than the cluster: what was last is not, as
// long as the members have not changed since.
func (w *world) olderRecord() bool {
	older := w.record.members != w.voters() || w.strayDowngrade() && w.earlier.downgrade == w.downgrading
	return w.outdated && older && w.earlier.members == w.voters()
}

// strayDowngrade reports whether etcd goes down to what neither Git nor the record speaks of: nobody
// knows who has begun that.
func (w *world) strayDowngrade() bool {
	to := variants[w.ask.variant].minor
	asked := to == w.downgrading || w.ask.stepwise && to < w.downgrading
	return w.downgrading != 0 && w.record.downgrade != w.downgrading && !asked
}

// cancelDowngrade is `etcdctl downgrade cancel`.
func (w *world) cancelDowngrade(*decision.Hold) {
	w.downgrading = 0
	w.raiseStorage()
}

// voters are the IDs of those that vote.
func (w *world) voters() (ids [most]int8) {
	for i, s := range w.seats {
		if !s.learner {
			ids[i] = s.id
		}
	}
	return ids
}

// remembered is where histories start in which somebody may restore the record as it was
// before the members changed.
func remembered(d dice) world {
	w := runningWorld([]int8{3, 5}[d.roll(2)], []int8{v35, v36}[d.roll(2)])
	n := w.set.replicas
	w.leader = int8(d.roll(int(n)))
	w.earlier = w.record
	was := &w.earlier
	was.applied.variant = []int8{w.ask.variant, v34}[d.roll(2)]
	switch i := int8(d.roll(int(n))); d.roll(5) {
	case 0: // it has been replaced since, with the record in its midst or before
		was.members[i] = w.nextID()
		if was.replacing = []int8{0, i + 1}[d.roll(2)]; was.replacing != 0 && d.one(2) {
			was.leaving = fakeLeaving{there: true, i: i, id: was.members[i], replace: true, since: -9000}
		}
	case 1: // it has joined since
		was.members[n-1] = 0
		if was.founders = min(was.founders, n-1); d.one(2) {
			was.joining = fakeJoining{there: true, i: n - 1, id: []int8{0, w.seats[n-1].id}[d.roll(2)], since: -9000, promoting: d.one(2)}
		}
		was.applied.replicas = n - 1
	case 2: // it was about to be removed, which was taken back
		was.members[n-1], was.retired[n-1] = w.nextID(), 0
		was.leaving = fakeLeaving{there: true, i: n - 1, id: was.members[n-1], since: -9000}
		was.applied.replicas = n - 1
	case 3: // it was removed, and another one joined in its place
		was.members[n-1], was.retired[n-1] = 0, w.nextID()
		was.applied.replicas = n - 1
	case 4: // the cluster slept, or was to be deleted
		was.hibernated = d.one(2)
		was.deleted = !was.hibernated
	}
	w.ask.sweep, w.ask.wipe = d.one(2), d.one(2)
	w.ask.repair = []repairMode{repairAutomatic, repairOneByOne}[d.roll(2)]
	w.record.applied = w.ask
	if w.version == 6 && d.one(3) {
		w.descend([]int8{v35, v36}[d.roll(2)])
	}
	if w.version == 5 && d.one(3) { // it has gone down to 3.5 since, which is to be seen as long as a member runs that
		if was.bornOn = 6; d.one(2) {
			was.bornOn, was.flushed = 5, was.members
		}
		w.record.bornOn = 5
		w.restoreOlder()
	} else if d.one(2) {
		w.restoreOlder()
	}
	return w
}

// descend lets etcd be told of a downgrade to 3.5, and Git ask for a variant since.
func (w *world) descend(asks int8) {
	w.record.downgrade, w.record.backup = 5, fakeBackup{there: true, purpose: wordOf(string(state.ForDowngrade(variants[v35].version)))}
	w.downgrading, w.version, w.ask.variant = 5, 5, asks
}

// nextID is the ID of a member that there was before.
func (w *world) nextID() int8 {
	w.ids++
	return w.ids
}
