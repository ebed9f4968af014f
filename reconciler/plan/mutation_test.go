package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// mutant is a quorate with one thing spoilt: a rule taken out or moved, a guard
// made blind, an action changed, or the executor's own care left out. Each must
// be caught by the invariant that it breaks, or the check of that is worth
// nothing.
type mutant struct {
	// name says what is spoilt.
	name string
	// breaks is the invariant that must be seen broken.
	breaks string
	table  func([]rule) []rule
	hand   hand
	// from is where its histories start; nil is anywhere.
	from func(dice) world
	// seed is that of its histories, where those of the others' are too few: a mutant that few
	// histories catch.
	seed uint64
}

// without is the table with one rule taken out.
func without(name string) []rule { return lacking(name)(table()) }

// lacking takes a rule out.
func lacking(name string) func([]rule) []rule {
	return func(rules []rule) []rule {
		return slices.DeleteFunc(rules, func(r rule) bool { return r.name == name })
	}
}

// below moves a rule to just below another one.
func below(name, other string) func([]rule) []rule {
	return func(rules []rule) []rule {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
		moved := rules[i]
		rules = slices.Delete(rules, i, i+1)
		j := slices.IndexFunc(rules, func(r rule) bool { return r.name == other })
		return slices.Insert(rules, j+1, moved)
	}
}

// blind lets rules, named in one word each, see a doctored situation: a guard
// whose input always looks good guards nothing.
func blind(names string, doctor func(*situation.Situation)) func([]rule) []rule {
	return func(rules []rule) []rule {
		for i, r := range rules {
			if slices.Contains(strings.Fields(names), r.name) {
				rules[i].eval = func(s *situation.Situation) verdict.Verdict {
					c := outlook.Clone(s)
					doctor(c)
					return r.eval(c)
				}
			}
		}
		return rules
	}
}

// everyMember changes what each member said, in every look.
func everyMember(change func(*state.Member)) func(*situation.Situation) {
	return func(s *situation.Situation) {
		for i := range s.Observed.Rounds {
			s.Observed.Rounds[i].Members = slices.Clone(s.Observed.Rounds[i].Members)
			for j := range s.Observed.Rounds[i].Members {
				change(&s.Observed.Rounds[i].Members[j])
			}
		}
	}
}

// everyRound changes each look.
func everyRound(change func(*situation.Situation, *state.Round)) func(*situation.Situation) {
	return func(s *situation.Situation) {
		for i := range s.Observed.Rounds {
			change(s, &s.Observed.Rounds[i])
		}
	}
}

// changed is an executor that changes one kind of action.
func changed[A action.Action](change func(*world, *A)) hand {
	return hand{alter: func(w *world, a action.Action) action.Action {
		if it, ok := a.(A); ok {
			change(w, &it)
			return it
		}
		return a
	}}
}

// mutants are all of them, by the part of quorate that they spoil.
func mutants() []mutant {
	return slices.Concat(rulesTakenOut(), rulesMoved(), guardsBlinded(), actionsChanged(), handsSpoilt(), upgradeMutants(), spaceMutants(), aroundMutants(), membersSpoilt(), storageMutants())
}

func rulesTakenOut() []mutant {
	var all []mutant
	for _, c := range [][2]string{
		{"readable", "I12"},
		{"ownership", "I7"},
		{"record", "I12"},
		{"immutable", "I22"},
		{"certificates", "I4"},
		{"bootstrap", "crash"},
		{"drift", "liveness"},
		{"path", "I14"},
		{"settled", "I14"},
		{"health", "I2"},
		{"window", "I26"},
		{"confirm", "I16"},
		{"backup", "I11"},
		{"start", "I25"},
		{"soak", "I16"},
		{"leader", "I20"},
		{"compare", "I15"},
		{"restart", "liveness"},
		{"end", "I14"},
		{"applied", "liveness"},
		{"deletion", "liveness"},
		{"hibernated", "liveness"},
		{"hibernate", "liveness"},
		{"membership", "liveness"},
		{"repair", "liveness"},
		{"remove", "liveness"},
		{"resize", "liveness"},
		{"shrink", "liveness"},
		{"grow", "liveness"},
		{"alarms", "liveness"},
		{"downgrade", "I14"},
		{"claims", "I6"},
		{"storage", "I22"},
	} {
		m := mutant{name: "without the rule " + c[0], breaks: c[1], table: lacking(c[0])}
		switch c[0] {
		case "restart":
			m.from = mixed
		case "claims":
			m.from = going
		case "storage":
			m.from = storageStart
		case "settled":
			m.from = halfRolled
		}
		all = append(all, m)
	}
	return all
}

func rulesMoved() []mutant {
	var all []mutant
	for _, c := range [][3]string{
		{"backup", "start", "I11"},
		{"path", "start", "I14"},
		{"window", "start", "I26"},
		{"health", "restart", "I2"},
		{"confirm", "restart", "I16"},
		{"soak", "restart", "I16"},
		{"leader", "restart", "I20"},
		{"compare", "restart", "I15"},
		{"end", "applied", "I14"},
		{"readable", "drift", "I12"},
		{"ownership", "bootstrap", "I7"},
	} {
		all = append(all, mutant{name: c[0] + " below " + c[1], breaks: c[2], table: below(c[0], c[1])})
	}
	return all
}

func guardsBlinded() []mutant {
	return []mutant{
		{name: "health does not see alarms", breaks: "I2", table: blind("alarms health confirm", everyRound(func(_ *situation.Situation, r *state.Round) { r.Alarms = nil }))},
		{name: "health does not see hashes", breaks: "I15", table: blind("health", everyMember(func(m *state.Member) { m.Hash = 0 }))},
		{name: "any member of the new template was compared a moment ago", breaks: "I15", table: blind("compare", func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Created = s.Now
			}
		}), from: differing},
		{name: "health does not ask the pods", breaks: "I2", table: blind("health", func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Ready, s.Observed.Pods[i].Terminating = true, false
			}
		}), from: mixed},
		{name: "health does not ask the members", breaks: "I2", table: blind("member health confirm", wellSpoken), from: mixed},
		{name: "one look is enough", breaks: "I2", table: blind("confirm compare", func(s *situation.Situation) {
			if len(s.Observed.Rounds) > 1 {
				s.Observed.Rounds[0].Members, s.Observed.Rounds[0].Problem = s.Observed.Rounds[1].Members, s.Observed.Rounds[1].Problem
			}
		}), from: mixed},
		{name: "nobody waits for those who are behind", breaks: "I16", table: blind("confirm", everyMember(func(m *state.Member) { m.AppliedIndex = m.CommitIndex }))},
		{name: "path takes every way back for open", breaks: "I14", table: blind("path", everyRound(func(s *situation.Situation, r *state.Round) {
			r.ClusterVersion = s.Desired.Spec.Version
			if r.Members = slices.Clone(r.Members); len(r.Members) > 1 {
				r.Members[1].Version = s.Desired.Spec.Version
			}
		}))},
		{name: "path takes every version for the wanted one", breaks: "I14", table: blind("path", func(s *situation.Situation) {
			everyMember(func(m *state.Member) { m.Version = s.Desired.Spec.Version })(s)
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Version = s.Desired.Spec.Version
			}
		})},
		{name: "a backup of another cluster counts", breaks: "I11", table: blind("backup", ofBackup(func(s *situation.Situation, b *state.Backup) { b.ClusterID = s.Observed.Record.ClusterID }))},
		{name: "a backup for another target counts", breaks: "I11", table: blind("backup", ofBackup(func(s *situation.Situation, b *state.Backup) { b.For = state.ForUpgrade(s.Desired.Spec.Version) }))},
		{name: "an old backup counts", breaks: "I11", table: blind("backup", ofBackup(func(s *situation.Situation, b *state.Backup) { b.Time = s.Now }))},
		{name: "a cluster counts as formed before all have joined", breaks: "I4", table: blind("bootstrap", everyMember(func(m *state.Member) { m.Problem = "" })), from: newborn},
		{name: "a pod whose etcd ran may be stillborn", breaks: "I4", table: blind("bootstrap", func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Ran = false
			}
		}), from: newborn},
		{name: "the end does not wait for the cluster version", breaks: "I14", table: blind("end", everyRound(func(s *situation.Situation, r *state.Round) { r.ClusterVersion = s.Desired.Spec.Version }))},
		{name: "holds do not say what a person can do", breaks: "liveness", table: speechless},
		{name: "a member that answers without its peers counts as silent", breaks: "I17", table: blind("repair membership", everyMember(func(m *state.Member) {
			if m.Problem != "" {
				m.Version = ""
			}
		})), from: unheard},
		{name: "evictions may take a member in a roll", breaks: "I2", table: blind("drift fight", func(s *situation.Situation) {
			s.Observed.Objects = slices.DeleteFunc(slices.Clone(s.Observed.Objects), func(o state.Object) bool { return o.Kind == budget })
		}), from: mixed},
		{name: "every window is open", breaks: "I26", table: blind("window", func(s *situation.Situation) { s.Desired.Spec.Maintenance = nil })},
	}
}

// wellSpoken lets every member say that it is well.
func wellSpoken(s *situation.Situation) {
	everyRound(func(s *situation.Situation, r *state.Round) {
		leader := r.Leader()
		r.Members = slices.Clone(r.Members)
		for i := range r.Members {
			m := &r.Members[i]
			if p := s.Observed.Pod(m.Name); p != nil && leader != nil && m.Problem != "" {
				m.Problem, m.Leader, m.Version = "", leader.ID, p.Version
			}
		}
	})(s)
}

// ofBackup changes the backup that is recorded.
func ofBackup(change func(*situation.Situation, *state.Backup)) func(*situation.Situation) {
	return func(s *situation.Situation) {
		if s.Observed.Record != nil && s.Observed.Record.Backup != nil {
			b := *s.Observed.Record.Backup
			change(s, &b)
			s.Observed.Record.Backup = &b
		}
	}
}

func actionsChanged() []mutant {
	return []mutant{
		{name: "two members restart at once", breaks: "I2", hand: changed(func(_ *world, a *action.RestartMember) { a.Partition = max(0, a.Partition-1) })},
		{name: "the lowest ordinal restarts first", breaks: "I20", hand: changed(func(w *world, a *action.RestartMember) {
			if !a.ByDeletion {
				a.Ordinal, a.Member, a.Partition, a.PodUID = 0, podNames[0], 0, podUID(w.pods[0].uid)
			}
		})},
		{name: "a roll starts with its partition at 0", breaks: "I2", hand: changed(func(_ *world, a *action.StartRoll) { a.Partition = 0 })},
		{name: "the leader is asked to hand over to itself", breaks: "liveness", hand: changed(func(_ *world, a *action.MoveLeader) { a.ToID = a.FromID }), from: mixed},
		{name: "the IDs of two members are recorded the wrong way round", breaks: "I20", hand: changed(func(_ *world, a *action.RecordFormed) {
			a.Members = map[string]string{podNames[0]: memberIDs[2], podNames[1]: memberIDs[1]}
		}), from: newborn},
		{name: "a roll is ended by hand before it has reached everybody", breaks: "liveness", hand: changed(func(_ *world, a *action.EndRoll) { a.Replicas = 0 })},
	}
}

// speechless lets every hold say what somebody waits for, and not what to do.
func speechless(rules []rule) []rule {
	for i, r := range rules {
		rules[i].eval = func(s *situation.Situation) verdict.Verdict {
			v := r.eval(s)
			if v.Hold != nil && v.Hold.Do != "" {
				v.Hold.Do = "nothing is done until then"
			}
			return v
		}
	}
	return rules
}

func handsSpoilt() []mutant {
	return []mutant{
		{name: "the executor trusts caches", breaks: "I2", hand: hand{trusting: true}, from: mixed},
		{name: "the executor deletes a pod by its name alone", breaks: "I3", hand: hand{trusting: true, careless: true}, from: mixed},
		{name: "a backup is recorded before the store has it", breaks: "I9", hand: hand{hasty: true}},
		{name: "what is written late overwrites what came after", breaks: "I2", hand: hand{unversioned: true}, from: halfRolled},
	}
}

// newborn is where histories of new clusters start.
func newborn(d dice) world {
	w := newWorld([]int8{1, 3}[d.roll(2)])
	w.ask.variant = []int8{v35, v36None, v36Dies}[d.roll(3)]
	return w
}

// mixed is where histories start in the midst of an upgrade.
func mixed(d dice) world {
	w := runningWorld(3, v35).asking([]int8{v36, v36None, v36Dies, v36Tuned}[d.roll(4)])
	w.leader = int8(d.roll(3))
	w.record.backup = fakeBackup{there: true, purpose: wordOf(variants[v36].version), at: w.clock}
	return w
}

// letGo is where histories start with members that the StatefulSet is about to replace.
func letGo(d dice) world {
	w := mixed(d)
	w.set.template, w.set.partition = w.ask.variant, int8(1+d.roll(2))
	return w
}

// halfRolled is where histories start with one member that has what the roll gives it.
func halfRolled(d dice) world {
	w := mixed(d)
	w.set.template, w.set.partition = w.ask.variant, 2
	if w.pods[2].template = w.ask.variant; !starts(w.ask.variant) {
		w.pods[2] = fakePod{state: podStarting, template: w.ask.variant, uid: w.pods[2].uid, created: w.clock}
	}
	w.leader = int8(d.roll(2))
	return w
}

// going is where histories start before a roll, and somebody has deleted a claim.
func going(d dice) world {
	w := mixed(d)
	w.claims[d.roll(3)].terminating = true
	return w
}

// unheard is where histories start with a member that neither its peers nor its kubelet's node
// tell of, and that answers.
func unheard(d dice) world {
	w := runningWorld(3, v36)
	i := d.roll(3)
	w.pods[i].cut, w.claims[i].unheard, w.claims[i].since = true, true, -9000
	w.vote()
	return w
}

// differing is where histories start in the midst of a roll that began hours ago, in which a
// member holds other data than the others since.
func differing(d dice) world {
	w := runningWorld(3, v36).asking(v36Tuned)
	w.leader, w.corrupt = int8(d.roll(3)), true
	w.set.template, w.set.partition, w.pods[2].template = v36Tuned, 2, v36Tuned
	return w
}

// bound is how many histories a mutant may get away with.
const bound = 20_000

// tried plays a history. Rules rest on those above them, so that a mutant may
// crash.
func (e *engine) tried(h history, from func(dice) world) (broken string) {
	defer func() {
		if reason := recover(); reason != nil {
			broken = fmt.Sprintf("crash: %v", reason)
		}
	}()
	return e.play(h, from, nil)
}

// caught plays histories until the mutant breaks its invariant, and returns the number of the one that did it; or what
// else it broke. It begins a little before the history that is noted, 0 for none.
func (m mutant) caught(note int) (history int, instead string) {
	for _, part := range searchOrder(note, bound) {
		if history, instead = m.caughtIn(part); history > 0 {
			return history, ""
		}
	}
	return 0, "not caught; " + instead
}

// caughtIn plays the histories of a part, and returns the number of the one that breaks its invariant, 0 for none.
func (m mutant) caughtIn(part [2]int) (found int, instead string) {
	rules := table()
	if m.table != nil {
		rules = m.table(rules)
	}
	e := newEngine(rules)
	e.hand = m.hand
	from := m.from
	if from == nil {
		from = startOf
	}
	r := rand.New(rand.NewPCG(cmp.Or(m.seed, 7), 1))
	h := history{events: make([]uint64, 50)}
	for n := 1; n <= part[1]; n++ {
		h.redraw(r)
		if n < part[0] {
			continue
		}
		broken := e.tried(h, from)
		if strings.HasPrefix(broken, m.breaks+":") {
			return n, ""
		}
		if broken != "" {
			instead = broken
		}
	}
	return 0, instead
}

// 161: whatever is spoilt is caught: by the invariant that it breaks, within a
// bound. What is not caught is not checked. With -deep no note of an earlier run is relied on.
func TestEveryMutantIsCaught(t *testing.T) {
	notes, found := readNotes(t), noted{}
	var mu sync.Mutex
	t.Cleanup(func() { notes.compare(t, found) })
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			note := notes[m.name]
			if *deep {
				note = 0
			}
			history, failure := m.caught(note)
			tellMutant(m.breaks, failure == "")
			if failure != "" {
				t.Fatalf("%s should break %s: %s", m.name, m.breaks, failure)
			}
			mu.Lock()
			defer mu.Unlock()
			found[m.name] = history
			t.Logf("%-10s history %6d  %s", m.breaks, history, m.name)
		})
	}
}
