package plan

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/schema"
)

// pass is one pass of quorate: look, look again, plan, do the first step.
func (w *world) pass(rules []rule, before *world) (verdict, string) {
	v := first(rules, newSituation(w.desired(), w.observed(before), w.now()))
	if v.step == nil {
		return v, ""
	}
	return v, w.carryOut(v.step.Action)
}

// 161: random faults and commits never break an invariant, and a cluster that
// is left in peace becomes what Git says.
func TestSimulationNeverBreaksAnInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { simulate(t, table()) })
}

// simulate runs one random history.
func simulate(t *rapid.T, rules []rule) {
	n := rapid.SampledFrom([]int8{1, 3}).Draw(t, "members")
	w := newWorld(n)
	if rapid.Bool().Draw(t, "running") {
		w = runningWorld(n, 1)
		w.leader = rapid.Int8Range(0, n-1).Draw(t, "leader")
	}
	w.soak = rapid.SampledFrom([]int32{0, 3}).Draw(t, "soak")
	w.window = rapid.SampledFrom([]windowState{noWindows, windowOpen, windowClosed}).Draw(t, "window")
	before := w
	for range rapid.IntRange(10, 120).Draw(t, "length") {
		w.clock++
		last := w
		happen(t, &w)
		if rapid.IntRange(0, 2).Draw(t, "quorate") > 0 {
			if _, broken := w.pass(rules, &before); broken != "" {
				t.Fatalf("%s\nworld: %+v", broken, w)
			}
		}
		before = last
	}
	comeToRest(t, &w, rules)
}

// happen lets the world move, with a fault or a commit now and then.
func happen(t *rapid.T, w *world) {
	switch rapid.IntRange(0, 19).Draw(t, "happening") {
	case 0:
		w.git = rapid.Int8Range(0, int8(len(variants)-1)).Draw(t, "commit")
		return
	case 1:
		w.bucketBad = !w.bucketBad
		return
	case 2:
		if w.set && w.template != w.current {
			w.partition, w.tampered = 0, true
		}
		return
	case 3:
		w.turn()
		return
	}
	var moves []move
	for _, m := range w.moves() {
		if !m.fault || rapid.IntRange(0, 9).Draw(t, "fault") == 0 {
			moves = append(moves, m)
		}
	}
	if len(moves) > 0 {
		rapid.SampledFrom(moves).Draw(t, "move").apply(w)
	}
}

// comeToRest lets the world come to rest, and wants progress: with a file that
// can be carried out, quorate ends with nothing left to do.
func comeToRest(t *rapid.T, w *world, rules []rule) {
	w.bucketBad = false
	if w.window == windowClosed {
		w.turn()
	}
	var v verdict
	for range 400 {
		w.clock++
		for _, m := range w.moves() {
			if !m.fault {
				m.apply(w)
				break
			}
		}
		var broken string
		before := *w
		if v, broken = w.pass(rules, &before); broken != "" {
			t.Fatalf("%s\nworld: %+v", broken, *w)
		}
		if v.silent() {
			return
		}
	}
	if v.hold != nil && (v.hold.Kind == HoldRefused || variants[w.git].broken || w.ambiguous() || w.spoilt()) {
		return
	}
	t.Fatalf("no progress: %+v %+v\nworld: %+v", v.hold, v.step, *w)
}

// spoilt says whether somebody's hand has let a broken template loose on a
// member: that may need a hand to mend, too (84).
func (w *world) spoilt() bool {
	for i := range w.n {
		if w.tampered && variants[w.pods[i].template].broken {
			return true
		}
	}
	return false
}

// ambiguous says whether the cluster lost its quorum before its IDs could be
// written down: nobody can tell it from one that never formed.
func (w *world) ambiguous() bool { return !w.formed && !w.hasQuorum() }

// 161: every state that a small cluster can reach in an upgrade, with up to
// three commits and one crash, keeps the invariants.
func TestEveryReachableStateKeepsTheInvariants(t *testing.T) {
	for _, n := range []int8{1, 3} {
		t.Run(fmt.Sprintf("%d members", n), func(t *testing.T) {
			states, broken := explore(table(), runningWorld(n, 1), 3, 1)
			if broken != "" {
				t.Fatal(broken)
			}
			t.Logf("%d states", states)
		})
	}
}

// 161: the same with a maintenance window that may open and close at any time,
// for a cluster whose members fail and are mended meanwhile.
func TestEveryReachableStateKeepsToTheWindow(t *testing.T) {
	for _, c := range []struct{ members, faults int8 }{{1, 2}, {3, 1}} {
		w := runningWorld(c.members, 1)
		w.window = windowClosed
		states, broken := explore(table(), w, 2, c.faults)
		if broken != "" {
			t.Fatal(broken)
		}
		t.Logf("%d members: %d states", c.members, states)
	}
}

// A member that the roll itself broke is mended while the window is closed, and
// no other member is touched.
func TestAClosedWindowLetsABrokenMemberBeMended(t *testing.T) {
	w := runningWorld(3, 1)
	w.git, w.window = 3, windowOpen // a release whose image cannot be had
	for turn := range 200 {
		w.clock++
		if w.pods[2].template == 3 {
			w.git, w.window = 1, windowClosed // reverted at night's end
		}
		for _, m := range w.moves() {
			if !m.fault {
				m.apply(&w)
				break
			}
		}
		before := w
		if _, broken := w.pass(table(), &before); broken != "" {
			t.Fatalf("turn %d: %s", turn, broken)
		}
	}
	if w.pods[2].state != podUp || w.pods[2].template != 1 || w.pods[0].uid != 1 || w.pods[1].uid != 2 {
		t.Errorf("%+v", w)
	}
}

// node is a world and what may still go wrong in it.
type node struct {
	w               world
	commits, faults int8
}

// explore walks every reachable state, breadth first, and returns how many
// there are and the first broken invariant.
func explore(rules []rule, start world, commits, faults int8) (int, string) {
	seen := map[node]bool{}
	queue := []node{{start, commits, faults}}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if seen[n] {
			continue
		}
		seen[n] = true
		next, broken := n.successors(rules)
		if broken != "" {
			return len(seen), fmt.Sprintf("%s\nworld: %+v", broken, n.w)
		}
		for _, s := range next {
			s.w.normalise()
			if !seen[s] {
				queue = append(queue, s)
			}
		}
	}
	return len(seen), ""
}

// normalise forgets what does not matter for the future, so that equal states
// are one.
func (w *world) normalise() {
	w.uids = 0
	for i := range w.pods {
		w.uids++
		w.pods[i].uid, w.pods[i].readyAt = w.uids, 0
	}
}

// successors are the states one move, one commit or one pass away.
func (n node) successors(rules []rule) ([]node, string) {
	var next []node
	for _, m := range n.w.moves() {
		if m.fault && n.faults == 0 {
			continue
		}
		s := n
		m.apply(&s.w)
		if m.fault {
			s.faults--
		}
		next = append(next, s)
		between := s
		if _, broken := between.w.pass(rules, &n.w); broken != "" {
			return nil, fmt.Sprintf("%s (%s between the two looks)", broken, m.name)
		}
		next = append(next, between)
	}
	if n.commits > 0 {
		for v := range variants {
			s := n
			s.w.git, s.commits = int8(v), s.commits-1
			next = append(next, s)
		}
	}
	if n.w.window != noWindows {
		s := n
		s.w.turn()
		next = append(next, s)
	}
	s := n
	before := n.w
	_, broken := s.w.pass(rules, &before)
	return append(next, s), broken
}

// Taking a rule out of the table must break an invariant: a rule that nothing
// misses protects nothing. Soak and settled have tests of their own below; drift
// and member change no more than what is said while quorate waits.
func TestEveryRuleIsNeeded(t *testing.T) {
	upgrade := func(w *world) { w.git = 2 }
	cases := []struct {
		rule, breaks string
		world        func() world
	}{
		{"readable", "I12", func() world { w := runningWorld(3, 1); w.git, w.fileBroken = 2, true; return w }},
		{"ownership", "I7", func() world { w := newWorld(3); w.foreign = true; return w }},
		{"record", "I12", func() world { w := runningWorld(3, 1); w.recordLost = true; upgrade(&w); return w }},
		{"immutable", "I5", func() world { w := runningWorld(3, 1); w.scaled = true; upgrade(&w); return w }},
		{"certificates", "I4", func() world { return newWorld(3) }},
		{"path", "I14", func() world { w := runningWorld(3, 0); w.git = 2; return w }},
		{"unsupported", "I25", func() world { w := newWorld(3); w.asleep = true; return w }},
		{"window", "I26", func() world { w := runningWorld(3, 1); w.window = windowClosed; upgrade(&w); return w }},
		{"health", "I2", func() world { w := runningWorld(3, 1); upgrade(&w); return w }},
		{"confirm", "I16", func() world { w := runningWorld(3, 1); upgrade(&w); return w }},
		{"backup", "I11", func() world { w := runningWorld(3, 1); upgrade(&w); return w }},
		{"downgrade", "I14", func() world { w := runningWorld(3, 2); w.git, w.policy = 1, schema.BackupSkip; return w }},
		{"leader", "I20", func() world { w := runningWorld(3, 1); upgrade(&w); return w }},
		{"end", "I14", func() world { w := runningWorld(3, 1); upgrade(&w); return w }},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			if _, broken := explore(table(), c.world(), 0, 1); broken != "" {
				t.Fatalf("with the whole table: %s", broken)
			}
			_, broken := explore(without(c.rule), c.world(), 0, 1)
			if !strings.HasPrefix(broken, c.breaks) {
				t.Fatalf("without %s: want %s broken, have %q", c.rule, c.breaks, broken)
			}
		})
	}
}

// without is the table with one rule taken out.
func without(name string) []rule {
	var rest []rule
	for _, r := range table() {
		if r.name != name {
			rest = append(rest, r)
		}
	}
	return rest
}

// The soak is about time, which the exhaustive walk leaves out.
func TestWithoutTheSoakRuleAMemberIsNotGivenTime(t *testing.T) {
	run := func(rules []rule) string {
		w := runningWorld(3, 1)
		w.git, w.soak = 2, 30
		for range 300 {
			w.clock++
			for _, m := range w.moves() {
				if !m.fault {
					m.apply(&w)
					break
				}
			}
			before := w
			if _, broken := w.pass(rules, &before); broken != "" {
				return broken
			}
		}
		return ""
	}
	if broken := run(table()); broken != "" {
		t.Fatal(broken)
	}
	if broken := run(without("soak")); !strings.HasPrefix(broken, "I16") {
		t.Fatalf("want I16 broken, have %q", broken)
	}
}

// A roll that somebody has let loose, by lowering the partition by hand, is
// caught before a second member goes.
func TestWithoutTheSettledRuleALooseRollGoesOn(t *testing.T) {
	w := runningWorld(3, 1)
	w.git, w.template, w.backup, w.partition = 2, 2, 2, 0
	firstAction := func(rules []rule) Action {
		p := makeWith(rules, w.desired(), w.observed(&w), w.now())
		if len(p.Steps) == 0 {
			return nil
		}
		return p.Steps[0].Action
	}
	if a, ok := firstAction(table()).(StartRoll); !ok {
		t.Fatalf("want the partition back above all members, have %v", a)
	}
	if a, ok := firstAction(without("settled")).(StartRoll); ok {
		t.Fatalf("without the rule nothing should stop the roll, have %v", a)
	}
}
