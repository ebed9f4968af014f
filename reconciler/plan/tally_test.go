package plan

import (
	"flag"
	"fmt"
	"maps"
	"runtime/debug"
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
	// ended are those of them whose world came to rest as Git says once people had mended
	// what only they can.
	ended map[string]int
	// ways are what people were told to do, and longest is how many looks a world
	// took to come to rest, of the patience that there is.
	ways    map[string]bool
	longest int
	// judged is how often something was held against each invariant.
	judged judgments
}

// add takes another one's counts over.
func (t *tally) add(other *tally) {
	t.runs, t.passes, t.actions, t.rests = t.runs+other.runs, t.passes+other.passes, t.actions+other.actions, t.rests+other.rests
	for name, n := range other.holds {
		t.holds[name] += n
	}
	for name, n := range other.ended {
		t.ended[name] += n
	}
	maps.Copy(t.ways, other.ways)
	t.longest = max(t.longest, other.longest)
	t.judged.add(other.judged)
}

// results are what the simulation has to tell when all of it is over.
var results resultsOfAll

type resultsOfAll struct {
	sync.Mutex
	random []string
	walks  []string
	states int
	walked time.Duration
	judged judgments
	// caught and missed count the mutants by what they break.
	caught, missed map[string]int
}

// runTests is what TestMain does; test/mutants has something else in its place.
var runTests = func(m *testing.M) { m.Run() }

// TestMain prints the table of the simulation where that was asked for.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small and many
	runTests(m)
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
	r.tellInvariants(&b)
	return b.String()
}

// tellInvariants prints a line an invariant: how often something was held against
// it, and how many of the mutants that break it were caught.
func (r *resultsOfAll) tellInvariants(b *strings.Builder) {
	texts, caught, all := invariantTexts(), 0, 0
	line := func(name string, judged any, text string) {
		of := r.caught[name] + r.missed[name]
		caught, all = caught+r.caught[name], all+of
		fmt.Fprintf(b, "  %-9s %10v  %3d of %-3d %s\n", name, judged, r.caught[name], of, text)
	}
	fmt.Fprintln(b, "invariants       judged   mutants")
	for _, n := range slices.Sorted(maps.Keys(texts)) {
		if why, other := elsewhere[n]; other {
			fmt.Fprintf(b, "  %-9s %10s  %9s %s\n", fmt.Sprintf("I%d", n), "–", "", why)
			continue
		}
		line(fmt.Sprintf("I%d", n), r.judged[n], texts[n])
	}
	line("liveness", "", "each world comes to rest as Git says, or a hold says what a person can do")
	line("crash", "", "no rule relies on what none above it has made sure of")
	fmt.Fprintf(b, "  %-9s %10s  %3d of %-3d\n", "together", "", caught, all)
}

// tellRandom notes what the random histories came to.
func (t *tally) tellRandom(took time.Duration) {
	results.Lock()
	defer results.Unlock()
	results.judged.add(t.judged)
	held := 0
	for _, n := range t.holds {
		held += n
	}
	per := func(n int) string { return fmt.Sprintf("%d %%", 100*n/max(1, t.rests+held)) }
	results.random = append(results.random,
		fmt.Sprintf("%d histories in %s, %.0f a second; %d passes, %d actions", t.runs, took.Round(100*time.Millisecond), float64(t.runs)/took.Seconds(), t.passes, t.actions),
		fmt.Sprintf("%s of the worlds came to rest as Git says, in %s a hold told a person what to do, in %d ways", per(t.rests), per(held), len(t.ways)),
		fmt.Sprintf("no world took more than %d looks to come to rest; %d are the bound", t.longest, patience),
	)
	for _, rule := range slices.SortedFunc(maps.Keys(t.holds), func(a, b string) int { return t.holds[b] - t.holds[a] }) {
		results.random = append(results.random, fmt.Sprintf("  held by %-26s %8d, of which %8d rest as Git says when people have mended what only they can", rule, t.holds[rule], t.ended[rule]))
	}
}

// tellWalk notes how many states a walk has seen.
func tellWalk(name string, states int, took time.Duration, judged judgments) {
	results.Lock()
	defer results.Unlock()
	results.judged.add(judged)
	line := fmt.Sprintf("%-60s %9d states  %8s", name, states, took.Round(10*time.Millisecond))
	if *deep {
		fmt.Println("walked through", line) // the table comes when all is over
	}
	results.walks = append(results.walks, line)
	results.states, results.walked = results.states+states, results.walked+took
}

// tellMutant notes that a mutant was caught, or not.
func tellMutant(breaks string, caught bool) {
	results.Lock()
	defer results.Unlock()
	if results.caught == nil {
		results.caught, results.missed = map[string]int{}, map[string]int{}
	}
	if caught {
		results.caught[breaks]++
	} else {
		results.missed[breaks]++
	}
}

// stopwatch says how long it has been running.
func stopwatch() func() time.Duration {
	began := time.Now()                                      //nolint:forbidigo // how long a test takes is no input of the plan
	return func() time.Duration { return time.Since(began) } //nolint:forbidigo // the same
}
