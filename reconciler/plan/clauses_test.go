//go:build mutants

package plan

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/mutants/toggle"
)

// What test/mutants compiles: the tests of this package, run as it asks, with all mutants
// of the clauses in the planner and at most one of them on.
func init() { runTests = answerMutants } //nolint:gochecknoinits // TestMain knows nothing of it

// mutantQuestion is what test/mutants asks.
type mutantQuestion struct {
	// Mutant that is on; -1 for none, and then what each would have changed is noted.
	Mutant int
	// Tests to run, one after the other, until one fails, and Histories to play after them.
	Tests []string
	// Short runs the tests with -short, in which those that draw histories draw a few.
	Short     bool
	Histories []int
}

// mutantAnswer is what came of a test or a history. The last one has Done.
type mutantAnswer struct {
	Test    string `json:",omitempty"`
	Failed  bool   `json:",omitempty"`
	History int
	Broken  string `json:",omitempty"`
	Seen    []int  `json:",omitempty"`
	Done    bool   `json:",omitempty"`
}

// answerMutants answers questions until there are no more. What the tests print is for
// nobody.
func answerMutants(m *testing.M) int {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.NewFile(3, "answers"))
	os.Stdout, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	os.Stderr = os.Stdout
	_ = flag.Set("rapid.seed", "161")
	_ = flag.Set("rapid.nofailfile", "true")
	_ = flag.Set("rapid.shrinktime", "0s")
	for {
		var q mutantQuestion
		if in.Decode(&q) != nil {
			return 0
		}
		tryMutant(m, q, func(a mutantAnswer) { _ = out.Encode(a) })
		toggle.Off()
		_ = out.Encode(mutantAnswer{Done: true})
	}
}

func tryMutant(m *testing.M, q mutantQuestion, tell func(mutantAnswer)) {
	begin := func() {
		if q.Mutant < 0 {
			toggle.Watch()
		} else {
			toggle.Turn(q.Mutant)
		}
	}
	_ = flag.Set("test.short", strconv.FormatBool(q.Short))
	for _, name := range q.Tests {
		begin()
		tell(mutantAnswer{Test: name}) // it may not come back
		_ = flag.Set("test.run", "^"+name+"$")
		failed := m.Run() != 0
		tell(mutantAnswer{Test: name, Failed: failed, Seen: toggle.Seen()})
		if failed && q.Mutant >= 0 {
			return
		}
	}
	e := newEngine(table())
	for _, i := range q.Histories {
		begin()
		broken := e.tried(numbered(i), beginnings[i%len(beginnings)])
		if seen := toggle.Seen(); len(seen) > 0 || broken != "" {
			tell(mutantAnswer{History: i, Broken: firstLine(broken), Seen: seen})
		}
		if broken != "" && q.Mutant >= 0 {
			return
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// numbered is the history with a number, the same one each time.
func numbered(i int) history {
	r := rand.New(rand.NewPCG(161, uint64(i)))
	h := history{events: make([]uint64, 50)}
	h.redraw(r)
	return h
}
