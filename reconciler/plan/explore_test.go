package plan

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
)

// A walk goes breadth first through every world that can be reached: each thing
// that can happen, happens, and after each quorate makes a pass, or makes it
// half, or does not, or sees it only at its second look, or only when it has
// decided.
type walk struct {
	e *engine
	// asks are what a commit may ask for.
	asks []ask
	// most is how many worlds it goes through; 0 is all of them.
	most int

	seed  maphash.Seed
	seen  map[uint64]bool
	ways  []way
	queue []node
	// rests reports whether some of the worlds are let come to rest, too.
	rests bool
	// waits reports whether hours may go by.
	waits bool
}

// node is a world, what may still go wrong in it, and its number.
type node struct {
	w               world
	commits, faults int8
	at              int32
}

// way is how a world was reached: from which one, and by what.
type way struct {
	from int32
	did  deed
	m    move
}

// deed is a sort of step from one world to the next.
type deed int8

const (
	begins deed = iota
	happens
	commits
	turns
	waits
	passes1
	passesHalf
	happensBetweenLooks
	happensAfterDeciding
)

func newWalk(rules []rule, start world, commits, faults int8) *walk {
	w := &walk{
		e: newEngine(rules), seed: maphash.MakeSeed(), seen: map[uint64]bool{},
	}
	for _, v := range []int8{v34, v35, v36, v36None, v35Old} {
		w.asks = append(w.asks, start.asking(v).ask)
	}
	w.e.noteSettings(&start)
	w.add(node{w: start, commits: commits, faults: faults}, way{})
	return w
}

// add puts a world into the queue that has not been seen. What does not matter
// for the future is forgotten, so that equal worlds are one.
func (k *walk) add(n node, how way) {
	n.w.normalise()
	n.at = 0
	sum := maphash.Comparable(k.seed, n)
	if k.seen[sum] {
		return
	}
	k.seen[sum] = true
	n.at = int32(len(k.ways))
	k.ways = append(k.ways, how)
	k.queue = append(k.queue, n)
}

// normalise forgets what does not matter for the future.
func (w *world) normalise() {
	w.uids = 0
	for i := range w.pods {
		if p := &w.pods[i]; p.state != podAbsent {
			w.uids++
			p.uid, p.readyAt, p.created = w.uids, 0, 0
		}
	}
	r := &w.record
	for _, at := range []*int32{&r.backup.at, &r.joining.since, &r.leaving.since, &r.failed.at, &r.downgradeSince, &r.nudged.since, &r.nudged.last, &r.compactedAt} {
		w.age(at)
	}
	for i := range w.claims {
		if c := &w.claims[i]; c.there {
			w.uids++
			c.uid = w.uids
		}
		w.age(&w.claims[i].created)
		w.age(&w.claims[i].since)
	}
	w.around.meddled = 0
	w.clock, w.record.seenAt, w.record.seenTo = 0, 0, 0
	w.renumber()
}

// renumber gives the members' IDs new numbers, in the order in which they appear.
func (w *world) renumber() {
	var known [128]int8
	w.ids = 0
	number := func(id *int8) {
		if *id != 0 && known[*id] == 0 {
			w.ids++
			known[*id] = w.ids
		}
		*id = known[*id]
	}
	for i := range w.seats {
		number(&w.seats[i].id)
		number(&w.record.members[i])
		number(&w.record.retired[i])
		number(&w.record.flushed[i])
		if c := &w.claims[i]; c.data != strangers {
			number(&c.data)
		}
		if c := &w.claims[i]; c.held != strangers {
			number(&c.held)
		}
	}
	number(&w.record.joining.id)
	number(&w.record.leaving.id)
}

// long is more than anything is awaited in seconds.
const long = 9000

// age forgets when something was, but for whether that is long ago.
func (w *world) age(at *int32) {
	if w.clock-*at >= long {
		*at = -long
	} else {
		*at = 0
	}
}

// explore walks until every world was seen, and returns the first invariant that
// is broken, with the way there, or "".
func (k *walk) explore() string {
	for done := 0; len(k.queue) > 0 && (k.most == 0 || done < k.most); done++ {
		n := k.queue[0]
		k.queue = k.queue[1:]
		if broken := k.successors(n); broken != "" {
			return broken
		}
		if k.rests && done%8 == 0 {
			w := n.w
			if broken := k.e.endsWell(&w); broken != "" {
				return k.story(n, way{}, broken)
			}
		}
	}
	return ""
}

func (k *walk) successors(n node) string {
	s := plainly(&n.w)
	d := k.e.decide(&n.w, s, n.w.clock)
	if broken := k.act(n, way{from: n.at, did: passes1}, s, d, done); broken != "" {
		return broken
	}
	if broken := k.act(n, way{from: n.at, did: passesHalf}, s, d, half); broken != "" {
		return broken
	}
	for _, m := range n.w.moves(nil) {
		if m.fault() && n.faults == 0 {
			continue
		}
		if broken := k.move(n, m, d); broken != "" {
			return broken
		}
	}
	k.people(n)
	return ""
}

// act makes the rest of a pass in a world, for a decision that was made by what s
// shows. A pass with nothing to do makes no other world.
func (k *walk) act(n node, how way, s sight, d ruling, f fate) string {
	next := n
	broken := k.e.act(&next.w, s, d, f)
	if broken != "" {
		again := n.w
		k.e.telling = true
		_ = k.e.act(&again, s, d, f)
		return k.story(n, how, broken) + "\n\n" + k.e.told
	}
	if d.Step != nil {
		k.add(next, how)
	}
	return ""
}

// move lets something happen: alone, between two looks, and between the decision
// for the world as it was and its deed. The clock stands still meanwhile.
func (k *walk) move(n node, m move, before ruling) string {
	next := n
	if m.fault() {
		next.faults--
	}
	how := way{from: n.at, did: happens, m: m}
	if broken := next.w.apply(m); broken != "" {
		return k.story(n, how, broken)
	}
	k.add(next, how)
	how.did = happensBetweenLooks
	between := sight{first: &n.w, second: &next.w, caches: &next.w}
	if broken := k.act(next, how, between, k.e.decide(&next.w, between, next.w.clock), done); broken != "" {
		return broken
	}
	how.did = happensAfterDeciding
	return k.act(next, how, plainly(&n.w), before, done)
}

// people make commits, and windows open and close.
func (k *walk) people(n node) {
	if n.commits > 0 {
		for i, a := range k.asks {
			next := n
			next.w.ask, next.commits = a, n.commits-1
			k.add(next, way{from: n.at, did: commits, m: move{i: int8(i)}})
		}
	}
	if n.w.window != noWindows {
		next := n
		next.w.window = windowOpen + windowClosed - n.w.window
		k.add(next, way{from: n.at, did: turns})
	}
	if k.waits {
		next := n
		next.w.clock += long
		k.add(next, way{from: n.at, did: waits})
	}
}

// story is the way to a broken invariant.
func (k *walk) story(n node, last way, broken string) string {
	lines := []string{last.String()}
	for at := n.at; at > 0; at = k.ways[at].from {
		lines = append(lines, k.ways[at].String())
	}
	slices.Reverse(lines)
	return broken + "\n\t" + strings.Join(lines, "\n\t")
}

func (w way) String() string {
	switch w.did {
	case happens:
		return w.m.String()
	case commits:
		return fmt.Sprintf("a commit asks for wish %d", w.m.i)
	case waits:
		return "hours go by"
	case turns:
		return "the window turns"
	case passes1:
		return "quorate makes a pass"
	case passesHalf:
		return "quorate makes a pass, and is killed in its midst"
	case happensBetweenLooks:
		return w.m.String() + ", between the two looks of a pass"
	case happensAfterDeciding:
		return w.m.String() + ", after quorate has decided and before it acts"
	case begins:
	}
	return "comes to rest"
}

// scaling is a walk whose commits ask for other numbers of members and states,
// with hours that may go by.
func scaling(start world, commits, faults int8) *walk {
	w := newWalk(table(), start, commits, faults)
	w.waits, w.asks = true, nil
	for _, n := range []int8{1, 3} {
		for _, state := range []askedState{askRunning, askAsleep, askDeleted} {
			a := start.ask
			a.replicas, a.state = n, state
			w.asks = append(w.asks, a)
		}
	}
	return w
}

// storing is a walk whose commits ask for other volumes, and for a roll.
func storing(start world, commits, faults int8) *walk {
	w := newWalk(table(), start, commits, faults)
	w.asks = []ask{start.asking(v35Old).ask}
	for _, large := range []bool{false, true} {
		for class := range classesAsked {
			a := start.ask
			a.large, a.class = large, class
			w.asks = append(w.asks, a)
		}
	}
	return w
}

// small are the worlds that are walked through to their end.
func small(deep bool) map[string]*walk {
	in := func(w world, s windowState) world { w.window = s; return w }
	walks := map[string]*walk{
		"1 member, 1 commit, 1 fault":   newWalk(table(), runningWorld(1, v35), 1, 1),
		"1 member, windows, 1 commit":   newWalk(table(), in(runningWorld(1, v35), windowClosed), 1, 0),
		"1 member, new, 1 commit":       newWalk(table(), newWorld(1), 1, 0),
		"3 members, 1 commit, no fault": newWalk(table(), runningWorld(3, v35), 1, 0),
	}
	walks["3 members to 1, to sleep, or away"] = scaling(runningWorld(3, v35), 1, 0)
	walks["1 member to 3, to sleep, or away"] = scaling(runningWorld(1, v35), 1, 0)
	walks["3 members, larger volumes of another class"] = storing(runningWorld(3, v35), 1, 0)
	if deep {
		walks["3 members, larger volumes of another class, 1 fault"] = storing(runningWorld(3, v35), 1, 1)
		walks["3 members to 1, to sleep, or away, 1 fault"] = scaling(runningWorld(3, v35), 1, 1)
		walks["1 member to 3, to sleep, or away, 2 commits"] = scaling(runningWorld(1, v35), 2, 0)
		walks["1 member, 2 commits, 2 faults"] = newWalk(table(), runningWorld(1, v35), 2, 2)
		walks["1 member, windows, 1 commit, 2 faults"] = newWalk(table(), in(runningWorld(1, v35), windowClosed), 1, 2)
		walks["3 members, 1 commit, 1 fault"] = newWalk(table(), runningWorld(3, v35), 1, 1)
		walks["3 members, 2 commits, 1 fault"] = newWalk(table(), runningWorld(3, v35), 2, 1)
		walks["3 members, windows, 1 commit, 1 fault"] = newWalk(table(), in(runningWorld(3, v35), windowClosed), 1, 1)
		walks["3 members, 1 commit, 2 faults"] = newWalk(table(), runningWorld(3, v35), 1, 2)
	}
	return walks
}

// 161: every state that a small cluster can reach keeps the invariants.
func TestEveryReachableState(t *testing.T) {
	for name, k := range small(*deep) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := stopwatch()
			k.rests, k.e.strict = true, !*deep
			if broken := k.explore(); broken != "" {
				t.Fatal(broken)
			}
			tellWalk(name, len(k.ways), took(), k.e.tally)
		})
	}
}
