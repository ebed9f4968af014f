// Command mutants asks whether every clause of the planner is held by something. It takes
// out, turns round and widens each part of each condition in the rules and in the
// questions that they ask, one at a time, and lets the tables, the scenarios and the
// simulation of reconciler/plan notice. What nothing notices is either a test that is
// missing, or named in redundant.txt with the reason why nothing can.
//
// All mutants are compiled into one binary, and one of them at a time is switched on. A
// first pass without any finds out which tests and which histories ask a clause where it
// would have been decided otherwise: only these can notice, and only these are run.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	var o options
	flag.IntVar(&o.histories, "histories", 6000, "how many histories the simulation plays")
	flag.IntVar(&o.sample, "sample", 1, "try one of so many mutants, and those that brought bugs back")
	flag.StringVar(&o.only, "only", "", "try the mutants whose names match")
	flag.BoolVar(&o.judges, "judges", false, "count what the judges of the simulation notice without tables and scenarios, too")
	flag.BoolVar(&o.verbose, "v", false, "print a line a mutant")
	flag.StringVar(&o.page, "write", "", "file that gets the table")
	flag.Parse()
	if err := run(".", o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	histories, sample int
	only, page        string
	judges, verbose   bool
}

// run tries the mutants that are asked for, and returns what is wrong with the tests or the
// list.
func run(root string, o options) error {
	h, done, err := newHunt(root)
	if err != nil {
		return err
	}
	defer done()
	chosen, err := h.chosen(o)
	if err != nil {
		return err
	}
	if h.sampled = len(chosen) < len(h.mutants); h.sampled && o.page != "" {
		return fmt.Errorf("-write %s needs all mutants: leave -sample and -only out", o.page)
	}
	if err := h.watch(o.histories); err != nil {
		return err
	}
	if o.verbose {
		h.tried = func(m *mutant, r result) { fmt.Println(h.line(m, r)) }
	}
	if err := h.try(chosen, o.judges); err != nil {
		return err
	}
	for _, broken := range h.broken {
		fmt.Println("left out, because it breaks an invariant without any mutant:", broken)
	}
	h.summarize(os.Stdout, chosen, o.judges)
	if wrong := h.wrong(chosen); len(wrong) > 0 {
		return fmt.Errorf("%d clauses are held by nothing, or are in %s and should not:\n  %s", len(wrong), listPath, strings.Join(wrong, "\n  "))
	}
	if o.page != "" {
		return h.write(o.page, o)
	}
	return nil
}

// newHunt compiles everything; done removes what that has left.
func newHunt(root string) (h *hunt, done func(), err error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	h = &hunt{root: root, workers: runtime.NumCPU(), tried: func(*mutant, result) {}}
	if err := h.prepare(dir); err != nil {
		done()
		return nil, nil, err
	}
	return h, done, nil
}

func (h *hunt) line(m *mutant, r result) string {
	by := fmt.Sprintf("SURVIVES %d tests and %d histories that could notice", r.tests, r.histories)
	switch {
	case r.test != "":
		by = h.kinds[r.test].String() + " " + r.test
	case r.broken != "":
		by = "judge " + r.broken
	}
	return fmt.Sprintf("%s:%d\t%s\t%s", m.file(), m.line, m.name(), by)
}
