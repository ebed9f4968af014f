package plan

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
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
	// rests are the worlds that came to rest as Git says, and held are those about which a
	// hold was the last word, by the number of its advice.
	rests int
	held  map[int]int
	// proven is how often a way out of a hold was taken, and led to rest.
	proven map[wayName]int
	// stuck is how often no way out of a hold did, by the number of its advice.
	stuck map[int]int
	// longest is how many looks a world took to come to rest, of the patience that there
	// is.
	longest int
	// judged is how often something was held against each invariant.
	judged judgments
}

// add takes another one's counts over.
func (t *tally) add(other *tally) {
	t.runs, t.passes, t.actions, t.rests = t.runs+other.runs, t.passes+other.passes, t.actions+other.actions, t.rests+other.rests
	for name, n := range other.held {
		t.held[name] += n
	}
	for name, n := range other.proven {
		t.proven[name] += n
	}
	for name, n := range other.stuck {
		t.stuck[name] += n
	}
	t.longest = max(t.longest, other.longest)
	t.judged.add(other.judged)
}

// results are what the simulation has to tell when all of it is over.
var results = resultsOfAll{histories: *newEngine(nil).tally, explored: *newEngine(nil).tally}

type resultsOfAll struct {
	sync.Mutex
	// histories and explored are the tallies of random histories and of walks.
	histories, explored tally
	played, walked      time.Duration
	walks               []string
	states              int
	caught, missed      map[string]int
}

// runTests is what TestMain does; test/mutants has something else in its place.
var runTests = func(m *testing.M) int { return m.Run() }

// write is the page that the table of the simulation is written to.
var write = flag.String("write", "", "write what the simulation has to tell to this page")

// TestMain prints the table of the simulation where that was asked for, and writes the page
// when nothing has failed.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small and many
	failed := runTests(m)
	if *deep || *write != "" {
		fmt.Print(results.page())
	}
	if *write != "" && failed == 0 {
		if err := os.WriteFile(*write, []byte(results.page()), 0o644); err != nil {
			panic(err)
		}
	}
}

// page is what `make sim` prints and writes.
func (r *resultsOfAll) page() string {
	r.Lock()
	defer r.Unlock()
	var b strings.Builder
	r.tellRuns(&b)
	r.tellWays(&b)
	tellOutside(&b)
	r.tellInvariants(&b)
	tellWorld(&b)
	return b.String()
}

// tellRuns tells what was played and explored.
func (r *resultsOfAll) tellRuns(b *strings.Builder) {
	h := &r.histories
	fmt.Fprintf(b, pageHead, map[bool]string{true: "`make sim`", false: "a short run of `make sim`, without `-deep`"}[*deep], runtime.GOMAXPROCS(0))
	fmt.Fprintf(b, "| | states, or histories | passes | actions | time |\n|---|---:|---:|---:|---:|\n")
	fmt.Fprintf(b, "| random histories | %d | %d | %d | %s |\n", h.runs, h.passes, h.actions, r.played.Round(time.Second))
	slices.Sort(r.walks)
	for _, l := range r.walks {
		fmt.Fprintln(b, l)
	}
	fmt.Fprintf(b, "| all states of these worlds | %d | %d | %d | %s |\n", r.states, r.explored.passes, r.explored.actions, r.walked.Round(time.Second))
}

// tellWays tells how worlds come to rest, by what holds tell people.
func (r *resultsOfAll) tellWays(b *strings.Builder) {
	all := newEngine(nil).tally
	all.add(&r.histories)
	all.add(&r.explored)
	held := 0
	for _, n := range all.held {
		held += n
	}
	fmt.Fprintf(b, pageRest, all.rests, held, all.longest, patience)
	fmt.Fprintf(b, "| rule | what the hold says to do | held | stuck | the way out | led to rest |\n|---|---|---:|---:|---|---:|\n")
	for n, a := range advices() {
		for i, x := range a.ways {
			first := []string{strings.ReplaceAll(a.rules, " ", ", "), "…" + a.says + "…", strconv.Itoa(all.held[n]), strconv.Itoa(all.stuck[n])}
			if i > 0 {
				first = []string{"", "", "", ""}
			}
			name := x.name
			if x.loses {
				name += " (gives up data: only where nothing else leads out)"
			}
			fmt.Fprintf(b, "| %s | %s | %d |\n", strings.Join(first, " | "), name, all.proven[wayName{n, x.name}])
		}
	}
}

// tellOutside lists what holds say whose ways out are not taken here.
func tellOutside(b *strings.Builder) {
	all := outside()
	fmt.Fprint(b, pageOutside)
	for _, says := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(says, "`", "'"), all[says])
	}
}

// tellInvariants tells how often something was held against each, and how many of the
// mutants that break it were caught.
func (r *resultsOfAll) tellInvariants(b *strings.Builder) {
	texts, caught, all := invariantTexts(), 0, 0
	judged := r.histories.judged
	judged.add(r.explored.judged)
	line := func(name string, times any, text string) {
		of := r.caught[name] + r.missed[name]
		caught, all = caught+r.caught[name], all+of
		fmt.Fprintf(b, "| %s | %v | %d of %d | %s |\n", name, times, r.caught[name], of, text)
	}
	fmt.Fprint(b, pageInvariants)
	for _, n := range slices.Sorted(maps.Keys(texts)) {
		if why, other := elsewhere[n]; other {
			fmt.Fprintf(b, "| I%d | – | – | %s |\n", n, why)
			continue
		}
		line(fmt.Sprintf("I%d", n), judged[n], texts[n])
	}
	line("liveness", "", "each world comes to rest as Git says, or a hold says what a person can do, and that leads there")
	line("crash", "", "no rule relies on what none above it has made sure of")
	fmt.Fprintf(b, "| together | | %d of %d | |\n", caught, all)
}

// tellWorld lists what can happen in the worlds.
func tellWorld(b *strings.Builder) {
	fmt.Fprint(b, pageWorld)
	for _, k := range slices.Sorted(maps.Keys(moveTexts)) {
		what := "happens"
		if k > faults {
			what = "a fault"
		}
		fmt.Fprintf(b, "| %s | %s |\n", what, moveTexts[k])
	}
}

// tellRandom notes what the random histories came to.
func (t *tally) tellRandom(took time.Duration) {
	results.Lock()
	defer results.Unlock()
	results.histories.add(t)
	results.played += took
}

// tellWalk notes how many states a walk has seen.
func tellWalk(name string, states int, took time.Duration, t *tally) {
	results.Lock()
	defer results.Unlock()
	results.explored.add(t)
	line := fmt.Sprintf("| all states of: %s | %d | %d | %d | %s |", name, states, t.passes, t.actions, took.Round(10*time.Millisecond))
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
