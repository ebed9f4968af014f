package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// enough is how many histories in which a clause would have been decided otherwise a
	// mutant may get away with.
	enough = 150
	// perQuestion is how many histories a worker plays before it is asked again.
	perQuestion = 250
)

// leftOut are tests that are about the simulation itself, or that go through more worlds
// than can be gone through for each mutant.
var leftOut = regexp.MustCompile(
	`^Test(Simulation|Fresh\w*|EveryReachableState\w*|EveryMutant\w*|EveryInvariantHasAMutant|` +
		`AMutantIsCaught\w*|Memoized\w*|Verifier\w*)$`)

// hunt is what is known about the mutants.
type hunt struct {
	root, binary string
	workers      int
	// sampled says that some of the mutants are tried only.
	sampled bool
	mutants []*mutant
	kinds   map[string]kind
	// redundant are the names of mutants that nothing can notice, and why.
	redundant map[string]string
	// reach are the tests that a mutant would change something in, and played the
	// histories, by the mutant's number.
	reach  map[int][]string
	played map[int][]int
	// took is how long each test takes.
	took  map[string]time.Duration
	found []result
	// broken are histories that break an invariant without any mutant, and are left out.
	broken []string
	// tried is told of each mutant.
	tried func(*mutant, result)
}

// result is what became of a mutant.
type result struct {
	// test that failed, or how a history ended; "" for none.
	test, broken string
	// alone says that a history notices it without any table, too.
	alone bool
	// tests and histories are how many it would have changed something in.
	tests, histories int
}

func (r result) caught() bool { return r.test != "" || r.broken != "" }

// prepare reads everything, and compiles.
func (h *hunt) prepare(dir string) error {
	root, err := filepath.Abs(h.root)
	if err != nil {
		return err
	}
	h.root = root
	overlay := map[string]string(nil)
	if overlay, h.mutants, err = mutateAll(h.root, dir); err != nil {
		return err
	}
	if h.kinds, err = tests(h.root); err != nil {
		return err
	}
	if h.redundant, err = readRedundant(filepath.Join(h.root, listPath)); err != nil {
		return err
	}
	if unknown := unknownOf(h.mutants, slices.Sorted(maps.Keys(h.redundant))); len(unknown) > 0 {
		return fmt.Errorf("%s names what is no clause: %s", listPath, strings.Join(unknown, "; "))
	}
	h.found = make([]result, len(h.mutants))
	h.binary, err = compile(h.root, dir, overlay)
	return err
}

// unknownOf are the names that no mutant has.
func unknownOf(mutants []*mutant, names []string) []string {
	known := map[string]bool{}
	for _, m := range mutants {
		known[m.name()] = true
	}
	return slices.DeleteFunc(names, func(name string) bool { return known[name] })
}

// chosen are the mutants that are asked for. A sample is the same each time.
func (h *hunt) chosen(o options) ([]*mutant, error) {
	bugs, err := readBugs(filepath.Join(h.root, bugsPath))
	if err != nil {
		return nil, err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	back := map[string]bool{}
	for _, b := range bugs {
		back[b.mutant] = true
	}
	return slices.DeleteFunc(slices.Clone(h.mutants), func(m *mutant) bool {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(m.name()))
		return !only.MatchString(m.name()) || (hash.Sum32()%uint32(o.sample) != 0 && !back[m.name()])
	}), nil
}

// wrong are the mutants that survive and are not in the list, and those that are in it
// and do not.
func (h *hunt) wrong(mutants []*mutant) []string {
	var all []string
	for _, m := range mutants {
		r, listed := h.found[m.id], h.redundant[m.name()] != ""
		switch {
		case !r.caught() && !listed:
			all = append(all, h.line(m, r))
		case r.caught() && listed:
			all = append(all, h.line(m, r)+", so it is not redundant")
		}
	}
	return all
}

// each calls with every item, on all workers, tells each minute how many have begun, and
// returns the first error.
func each[T any](h *hunt, what string, items []T, do func(*worker, T) error) error {
	work := make(chan T)
	errs := make([]error, h.workers)
	var all sync.WaitGroup
	for i := range h.workers {
		all.Go(func() {
			w := &worker{root: h.root, binary: h.binary}
			defer w.stop()
			for item := range work {
				if errs[i] == nil {
					errs[i] = do(w, item)
				}
			}
		})
	}
	said := time.Now()
	for i, item := range items {
		if time.Since(said) > time.Minute {
			fmt.Fprintf(os.Stderr, "%s: %d of %d\n", what, i, len(items))
			said = time.Now()
		}
		work <- item
	}
	close(work)
	all.Wait()
	return cmp.Or(errs...)
}

// watch finds out, without any mutant, which of them each test and each history can tell
// from the product at all: all others need not be tried there.
func (h *hunt) watch(histories int) error {
	var questions []question
	for _, name := range slices.Sorted(maps.Keys(h.kinds)) {
		if !leftOut.MatchString(name) {
			questions = append(questions, question{Mutant: -1, Tests: []string{name}})
		}
	}
	for from := 0; from < histories; from += perQuestion {
		q := question{Mutant: -1}
		for i := from; i < min(from+perQuestion, histories); i++ {
			q.Histories = append(q.Histories, i)
		}
		questions = append(questions, q)
	}
	var mu sync.Mutex
	h.reach, h.played, h.took = map[int][]string{}, map[int][]int{}, map[string]time.Duration{}
	err := each(h, "tests and histories without any mutant", questions, func(w *worker, q question) error {
		failed, begun := "", time.Now()
		crashed, err := w.ask(q, func(a answer) {
			mu.Lock()
			defer mu.Unlock()
			if a.Test != "" {
				h.took[a.Test] = time.Since(begun)
			}
			if a.Failed {
				failed = a.Test
			}
			h.note(a)
		})
		switch {
		case err != nil:
			return err
		case crashed || failed != "":
			return fmt.Errorf("the tests of the plan fail without any mutant: %s", strings.Join(q.Tests, " "))
		}
		return nil
	})
	for m := range h.reach { // of each kind the quick ones first
		slices.SortFunc(h.reach[m], func(a, b string) int {
			return cmp.Or(cmp.Compare(h.kinds[a], h.kinds[b]), cmp.Compare(h.took[a], h.took[b]))
		})
	}
	for m := range h.played {
		slices.Sort(h.played[m])
	}
	return err
}

// note takes note of what a test or a history could tell.
func (h *hunt) note(a answer) {
	if a.Broken != "" {
		h.broken = append(h.broken, fmt.Sprintf("history %d: %s", a.History, a.Broken))
		return
	}
	for _, m := range a.Seen {
		if a.Test != "" {
			h.reach[m] = append(h.reach[m], a.Test)
		} else {
			h.played[m] = append(h.played[m], a.History)
		}
	}
}

// try lets each mutant be caught by tables, scenarios, histories of the simulation, runs, and tests that draw histories
// themselves, in this order: of the last a few histories first, and all where nothing else has noticed it.
func (h *hunt) try(mutants []*mutant, judges bool) error {
	return each(h, "mutants", mutants, func(w *worker, m *mutant) error {
		r, err := h.firstNotice(w, m)
		if err != nil {
			return err
		}
		if r.broken != "" {
			r.alone = true
		} else if judges {
			alone, err := w.try(question{Mutant: m.id, Histories: h.playedFor(m)})
			if err != nil {
				return err
			}
			r.alone = alone.caught()
		}
		r.tests, r.histories = len(h.reach[m.id]), len(h.playedFor(m))
		h.found[m.id] = r
		h.tried(m, r)
		return nil
	})
}

// firstNotice is what notices a mutant first. In a sample one that is known to be redundant is not tried by all
// histories of the tests that draw them.
func (h *hunt) firstNotice(w *worker, m *mutant) (r result, err error) {
	questions := []question{
		{Mutant: m.id, Tests: h.reaching(m, inTable, inScenario), Histories: h.playedFor(m)},
		{Mutant: m.id, Tests: h.reaching(m, inRun)},
		{Mutant: m.id, Tests: h.reaching(m, inHistories), Short: true},
		{Mutant: m.id, Tests: h.reaching(m, inHistories)},
	}
	if h.sampled && h.redundant[m.name()] != "" {
		questions = questions[:3]
	}
	for _, q := range questions {
		if r, err = w.try(q); err != nil || r.caught() {
			break
		}
	}
	return r, err
}

// reaching are the tests of some kinds that a mutant would change something in.
func (h *hunt) reaching(m *mutant, kinds ...kind) (names []string) {
	for _, name := range h.reach[m.id] {
		if slices.Contains(kinds, h.kinds[name]) {
			names = append(names, name)
		}
	}
	return names
}

// playedFor are the histories of the simulation that a mutant is tried with.
func (h *hunt) playedFor(m *mutant) []int {
	played := h.played[m.id]
	return played[:min(len(played), enough)]
}

// try asks one question about a mutant.
func (w *worker) try(q question) (r result, err error) {
	if len(q.Tests)+len(q.Histories) == 0 {
		return r, nil
	}
	running := ""
	crashed, err := w.ask(q, func(a answer) {
		if a.Test == running { // each test answers when it begins and when it ends
			running = ""
		} else {
			running = a.Test
		}
		if a.Failed {
			r.test = a.Test
		}
		r.broken = a.Broken
	})
	switch {
	case crashed && running != "":
		r.test = running
	case crashed:
		r.broken = "crash: the process ended"
	}
	return r, err
}
