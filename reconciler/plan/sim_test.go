package plan

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// history is one run of the simulation as numbers, so that it can be drawn,
// shrunk and run again: the world that it starts from, and an event each. A
// smaller number is a more ordinary event.
type history struct {
	start  uint64
	events []uint64
}

// drawn is a history that rapid draws, and shrinks when it fails.
func drawn(t *rapid.T) history {
	h := history{start: rapid.Uint64().Draw(t, "start")}
	// A slice of rapid is short unless it may not be, and then cannot be shrunk.
	for range 10 {
		h.events = append(h.events, rapid.SliceOfN(rapid.Uint64(), 0, 90).Draw(t, "events")...)
	}
	return h
}

// redraw makes it another history with as many events.
func (h *history) redraw(r *rand.Rand) {
	h.start = r.Uint64()
	for i := range h.events {
		h.events[i] = r.Uint64()
	}
}

// dice are the bits of a number, drawn one after the other. They are mixed, as
// rapid prefers small numbers; zero stays zero.
type dice uint64

func diceOf(x uint64) dice {
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return dice(x ^ x>>32)
}

// roll is a number below n.
func (d *dice) roll(n int) int {
	v := int(uint64(*d) % uint64(n))
	*d = dice(uint64(*d) / uint64(n))
	return v
}

// one says yes once in n times.
func (d *dice) one(n int) bool { return d.roll(n) == n-1 }

// startOf is the world that a history starts from.
func startOf(d dice) world {
	n := []int8{3, 1, 3, 5}[d.roll(4)]
	w := runningWorld(n, []int8{v35, v35, v34, v36, v37, v37Early}[d.roll(6)])
	w.grownUp(&d)
	if d.one(4) {
		w = newWorld(n)
		w.ask.variant = []int8{v35, v36}[d.roll(2)]
	}
	w.ask.soak = []int16{0, 30}[d.roll(2)]
	w.ask.skip, w.ask.wipe, w.ask.sweep, w.ask.stepwise = d.one(8), d.one(2), d.one(3), d.one(2)
	w.ask.repair = []repairMode{repairAutomatic, repairAutomatic, repairOneByOne, repairNever}[d.roll(4)]
	w.window = []windowState{noWindows, windowOpen, windowClosed}[d.roll(3)]
	w.around.shared, w.rigid = d.one(4), d.one(4)
	w.record.applied = w.ask
	if w.record.formed && d.one(10) {
		w.record.backup = fakeBackup{there: true, foreign: d.one(2), purpose: wordOf(variants[v36].version), at: w.clock}
	}
	if w.leader >= 0 {
		w.leader = int8(d.roll(int(n)))
	}
	w.barren[1] = d.one(3)
	return w
}

// grownUp says where a cluster comes from, and whether its record knows that: one
// that runs 3.6 may have run 3.5.
func (w *world) grownUp(d *dice) {
	born := variants[w.ask.variant].minor
	if born == 6 && d.one(2) {
		born = 5
		for i := range w.claims {
			w.claims[i].raw = w.claims[i].there
		}
	}
	if d.one(2) {
		w.record.bornOn = born
	}
}

// played is one history as it is played.
type played struct {
	e *engine
	w world
	// past are the last worlds, for eyes that are slow.
	past [8]world
	at   int
	// trace, where somebody wants it, is what has happened.
	trace *[]string
}

// play plays a history to its end and lets its world come to rest. It returns
// the invariant that it broke, or "".
func (e *engine) play(h history, from func(dice) world, trace *[]string) string {
	e.tally.runs++
	p := &played{e: e, w: from(diceOf(h.start)), trace: trace}
	e.calls = e.calls[:0]
	e.noteSettings(&p.w)
	for i := range p.past {
		p.past[i] = p.w
	}
	for _, x := range h.events {
		p.w.clock++
		p.at = (p.at + 1) % len(p.past)
		p.past[p.at] = p.w
		if broken := cmp.Or(p.arrivals(), p.event(diceOf(x))); broken != "" {
			return broken
		}
	}
	return p.rest()
}

// rest lets the world come to rest, where a person does what holds say.
func (p *played) rest() string {
	p.tell("the faults end, and people do what holds say")
	return p.e.endsWell(&p.w)
}

func (p *played) tell(what any) {
	if p.trace != nil {
		*p.trace = append(*p.trace, fmt.Sprint(what))
	}
}

// event is one thing that happens, and mostly a pass of quorate after it.
func (p *played) event(d dice) string {
	broken := ""
	switch k := d.roll(64); {
	case k < 46:
		broken = p.ordinary(&d)
	case k < 50:
		broken = p.fault(&d)
	default:
		p.unusual(k, &d)
	}
	if broken != "" || d.one(4) {
		return broken
	}
	return p.look(&d)
}

// ordinary lets something happen that happens on its own.
func (p *played) ordinary(d *dice) string {
	p.e.moves = p.w.moves(p.e.moves[:0])
	n := 0
	for n < len(p.e.moves) && !p.e.moves[n].fault() {
		n++
	}
	if n == 0 {
		p.w.clock += int32(d.roll(20))
		return ""
	}
	m := p.e.moves[d.roll(n)]
	p.tell(m)
	return p.w.apply(m)
}

// fault lets something happen that should not.
func (p *played) fault(d *dice) string {
	p.e.moves = p.w.moves(p.e.moves[:0])
	n := 0
	for n < len(p.e.moves) && !p.e.moves[n].fault() {
		n++
	}
	if n == len(p.e.moves) {
		return ""
	}
	m := p.e.moves[n+d.roll(len(p.e.moves)-n)]
	if many := p.w.losses()+1 > memberCount(&p.w)/2; m.loses() && many && !d.one(6) {
		return "" // a lost majority only ends in a word to a person
	}
	p.tell(m)
	return p.w.apply(m)
}

// unusual is a commit, or what people and the store do.
func (p *played) unusual(k int, d *dice) {
	w := &p.w
	what := ""
	switch k {
	case 50, 51, 52:
		w.ask.variant, w.ask.stepwise = int8(d.roll(askable)), d.one(2)
		what = "a commit asks for " + templates[w.ask.variant] + " (" + variants[w.ask.variant].version + ")"
	case 53:
		if w.record.wasApplied && !w.record.vague {
			w.ask, what = w.record.applied, "the last commit is reverted"
		}
	case 54:
		w.bucketBad, what = !w.bucketBad, "the store turns bad or good"
	case 55:
		w.window, what = []windowState{noWindows, windowClosed, windowOpen}[w.window], "the window turns"
	case 56:
		w.clock += []int32{1200, 60, 90000, -300}[d.roll(4)]
		what = "the clock jumps"
	case 57:
		what = w.fill(d)
	case 58:
		w.corrupt, w.corruptLate, what = memberCount(w) > 1 && !w.corrupt, w.comparedWithinTheHour(), "a member's data differs, or does no more"
	case 59:
		w.ask.broken, what = !w.ask.broken, "the file gets errors, or is mended"
	case 60:
		w.ask.replicas, what = []int8{1, 3, 5}[d.roll(3)], "a commit asks for another number of members"
	case 61:
		switch d.roll(10) {
		case 5, 6, 7:
			p.tell(w.happen(d))
			return
		case 8, 9:
			p.tell(w.askForVolumes(d))
			return
		case 3, 4:
			w.ask.frozen, what = !w.ask.frozen, "a commit changes what has no safe way, or no more"
			p.tell(what)
			return
		}
		w.ask.state, what = askedState(d.roll(3)), "a commit asks for another state"
	case 62:
		w.foreign, what = !w.foreign, "somebody else's object is in the way, or no more"
	case 63:
		if w.earlier.there {
			p.tell(w.restoreOlder())
			return
		}
		w.record.lost, what = w.record.formed && !w.record.lost, "the record is lost, or restored"
	}
	p.tell(what)
}

// fill lets the databases reach their quota, or be emptied by their users.
func (w *world) fill(d *dice) string {
	w.alarm = !w.alarm && w.record.formed
	laden := d.one(2)
	w.heavy = w.alarm && laden && d.one(4)
	for i := range w.claims {
		c := &w.claims[i]
		c.full = w.alarm && c.data != 0
		c.laden = c.full && laden
	}
	w.write()
	return "the databases are full, or no more"
}

// look is a pass of quorate, whose eyes and hands may be slow. A second daemon,
// or the same after a crash, is no other: it remembers nothing.
func (p *played) look(d *dice) string {
	now := p.w
	s, f := plainly(&now), done
	if d.roll(5) > 2 {
		s = sight{first: p.ago(d), second: p.ago(d), caches: p.ago(d)}
		if s.first.clock > s.second.clock {
			s.first, s.second = s.second, s.first
		}
	}
	if d.one(8) {
		f = []fate{lost, half}[d.roll(2)]
	}
	if d.one(12) {
		s.silent = uint8(d.roll(8))
	}
	s.blind = d.one(20)
	if f == done && d.one(10) {
		f = late
	}
	if p.w.around.shared && d.one(8) {
		s.daemon = 1
	}
	s.evicts = int8(d.roll(most + 1))
	v, broken := p.e.pass(&p.w, s, f)
	if p.trace != nil {
		p.tellOf(v, s, f)
	}
	if v.Step != nil {
		p.begins(v.Step.Action)
	}
	return broken
}

// begins forgets what was before a cluster began: looks at members are of this pass,
// and so of no member of an earlier cluster.
func (p *played) begins(a action.Action) {
	if _, begins := a.(action.CreateRecord); begins {
		for i := range p.past {
			p.past[i] = p.w
		}
	}
}

// ago is the world now or a few events ago.
func (p *played) ago(d *dice) *world {
	n := len(p.past)
	return &p.past[(p.at+n-d.roll(4))%n]
}

func (p *played) tellOf(v verdict.Verdict, s sight, f fate) {
	text := []string{"quorate: ", "another quorate: "}[s.daemon]
	switch {
	case v.Step != nil:
		text += v.Step.Action.String()
	case v.Hold != nil:
		text += "holds: " + v.Hold.Message
	default:
		text += "nothing to do"
	}
	if f != done {
		text += []string{"", " (lost)", " (half done)", " (on its way)"}[f]
	}
	if *s.caches != p.w {
		text += fmt.Sprintf(" (caches of %ds ago)", p.w.clock-s.caches.clock)
	}
	p.tell(text)
}

// 161: random faults and commits never break an invariant, and a cluster that
// is left in peace becomes what Git says, or quorate says what a person can do.
func TestSimulation(t *testing.T) {
	if *deep {
		defer set("rapid.checks", "20000")()
	} else {
		// The same histories each time: a test that fails says that something has
		// changed. make sim looks for what was never seen.
		defer set("rapid.checks", strconv.Itoa(histories(2000, 300)))()
		defer set("rapid.seed", "161")()
	}
	workers := 1
	if *deep && flag.Lookup("rapid.seed").Value.String() == "0" {
		workers = runtime.GOMAXPROCS(0) // each has a seed of its own
	}
	took, tallies := stopwatch(), make([]*tally, workers)
	t.Run("histories", func(t *testing.T) {
		for i := range tallies {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				e := newEngine(table())
				tallies[i], e.strict = e.tally, !*deep
				rapid.Check(t, func(t *rapid.T) { playDrawn(t, e) })
			})
		}
	})
	sum := newEngine(nil).tally
	for _, t := range tallies {
		sum.add(t)
	}
	sum.tellRandom(took())
	if !testing.Short() { // a few histories do not come to all of it
		sum.judged.sawAll(t, ofWorlds())
		sum.provesWays(t)
	}
}

// histories is how many histories a test plays: all of them, or a few with -short.
func histories(all, few int) int {
	if testing.Short() {
		return few
	}
	return all
}

func playDrawn(t *rapid.T, e *engine) {
	h := drawn(t)
	if broken := e.play(h, startOf, nil); broken != "" {
		t.Fatal(e.story(h, startOf))
	}
}

// set gives a flag a value, unless somebody has given it another one than its
// default, and returns what takes that back.
func set(name, value string) (back func()) {
	f := flag.Lookup(name)
	was := f.Value.String()
	if was == f.DefValue {
		_ = f.Value.Set(value)
	}
	return func() { _ = f.Value.Set(was) }
}

// story is a history that failed, in words, and its last decision as a scenario
// that can be kept in testdata/scenarios.
func (e *engine) story(h history, from func(dice) world) string {
	var trace []string
	e.telling = true
	broken := e.play(h, from, &trace)
	return broken + "\n\t" + strings.Join(trace, "\n\t") + "\n\n" + e.told
}
