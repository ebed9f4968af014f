package plan

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// deep lets the simulation go through more worlds than the tests have time for.
var deep = flag.Bool("deep", false, "go through more and larger worlds in the simulation, and print a table")

// tally counts what an engine has done.
type tally struct {
	runs, passes, actions int
	// rests are the worlds that came to rest as Git says, and holds are the rules
	// whose hold was the last word about a world.
	rests int
	holds map[string]int
}

// results are what the simulation has to tell when all of it is over.
var results struct {
	sync.Mutex
	random []string
	walks  []string
	states int
	walked time.Duration
	// caught counts the mutants by the invariant that caught them.
	caught  map[string]int
	mutants int
}

// TestMain prints the table of the simulation where that was asked for.
func TestMain(m *testing.M) {
	m.Run()
	if *deep {
		fmt.Print(tableOfResults())
	}
}

// tableOfResults is what `make sim` prints.
func tableOfResults() string {
	r := &results
	r.Lock()
	defer r.Unlock()
	var b strings.Builder
	fmt.Fprintln(&b, "\nrandom histories")
	for _, l := range r.random {
		fmt.Fprintln(&b, "  "+l)
	}
	fmt.Fprintln(&b, "every reachable state of")
	slices.Sort(r.walks)
	for _, l := range r.walks {
		fmt.Fprintln(&b, "  "+l)
	}
	fmt.Fprintf(&b, "  %-60s %9d states  %8s\n", "together", r.states, r.walked.Round(100*time.Millisecond))
	fmt.Fprintln(&b, "mutants caught, by the invariant that they break")
	total := 0
	for _, name := range slices.SortedFunc(maps.Keys(r.caught), byNumber) {
		total += r.caught[name]
		fmt.Fprintf(&b, "  %-10s %3d\n", name, r.caught[name])
	}
	fmt.Fprintf(&b, "  %-10s %3d of %d\n", "together", total, r.mutants)
	return b.String()
}

// byNumber orders the names of invariants: I2 before I11, words last.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// tellRandom notes what the random histories came to.
func (t *tally) tellRandom(took time.Duration) {
	results.Lock()
	defer results.Unlock()
	held := 0
	for _, n := range t.holds {
		held += n
	}
	per := func(n int) string { return fmt.Sprintf("%d %%", 100*n/max(1, t.rests+held)) }
	results.random = append(results.random,
		fmt.Sprintf("%d histories in %s, %.0f a second; %d passes, %d actions", t.runs, took.Round(100*time.Millisecond), float64(t.runs)/took.Seconds(), t.passes, t.actions),
		fmt.Sprintf("%s of the worlds came to rest as Git says, in %s a hold told a person what to do", per(t.rests), per(held)),
	)
	for _, rule := range slices.SortedFunc(maps.Keys(t.holds), func(a, b string) int { return t.holds[b] - t.holds[a] }) {
		results.random = append(results.random, fmt.Sprintf("  held by %-14s %8d", rule, t.holds[rule]))
	}
}

// tellWalk notes how many states a walk has seen.
func tellWalk(name string, states int, took time.Duration) {
	results.Lock()
	defer results.Unlock()
	results.walks = append(results.walks, fmt.Sprintf("%-60s %9d states  %8s", name, states, took.Round(10*time.Millisecond)))
	results.states, results.walked = results.states+states, results.walked+took
}

// tellMutant notes that a mutant was caught, or not.
func tellMutant(breaks string, caught bool) {
	results.Lock()
	defer results.Unlock()
	if results.caught == nil {
		results.caught = map[string]int{}
	}
	results.mutants++
	if caught {
		results.caught[breaks]++
	}
}

// stopwatch says how long it has been running.
func stopwatch() func() time.Duration {
	began := time.Now()                                      //nolint:forbidigo // how long a test takes is no input of the plan
	return func() time.Duration { return time.Since(began) } //nolint:forbidigo // the same
}
