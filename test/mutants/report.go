package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// tally is what became of the mutants of one file.
type tally struct {
	file string
	// all there are, and which of these were caught by what.
	all, table, scenario, judge, run, histories, left int
	// alone are those that the judges of the simulation catch without any table.
	alone int
}

func (t *tally) add(o tally) {
	t.all, t.table, t.scenario, t.judge = t.all+o.all, t.table+o.table, t.scenario+o.scenario, t.judge+o.judge
	t.run, t.histories, t.left, t.alone = t.run+o.run, t.histories+o.histories, t.left+o.left, t.alone+o.alone
}

// tallies count the mutants by the file that they are in, which is a rule or what rules ask.
func (h *hunt) tallies(mutants []*mutant) []tally {
	byFile := map[string]*tally{}
	for _, m := range mutants {
		name := m.file()
		t := byFile[name]
		if t == nil {
			t = &tally{file: name}
			byFile[name] = t
		}
		one, r := tally{all: 1}, h.found[m.id]
		switch {
		case r.test == "" && r.broken == "":
			one.left = 1
		case r.test == "":
			one.judge = 1
		case h.kinds[r.test] == inTable:
			one.table = 1
		case h.kinds[r.test] == inScenario:
			one.scenario = 1
		case h.kinds[r.test] == inRun:
			one.run = 1
		default:
			one.histories = 1
		}
		if r.alone {
			one.alone = 1
		}
		t.add(one)
	}
	var all []tally
	for _, t := range byFile {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b tally) int {
		return cmp.Or(cmp.Compare(strings.Count(a.file, "/"), strings.Count(b.file, "/")), cmp.Compare(a.file, b.file))
	})
	return all
}

// summarize prints a line a file, as a table of Markdown.
func (h *hunt) summarize(w io.Writer, mutants []*mutant, judges bool) {
	head := "| rule, or what rules ask | mutants | table | scenario | judge | run | histories | redundant |"
	under := "|---|---:|---:|---:|---:|---:|---:|---:|"
	if judges {
		head, under = head+" judges alone |", under+"---:|"
	}
	fmt.Fprintln(w, head+"\n"+under)
	sum := tally{file: "together"}
	line := func(t tally) {
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %d |", t.file, t.all, t.table, t.scenario, t.judge, t.run, t.histories, t.left)
		if judges {
			fmt.Fprintf(w, " %d |", t.alone)
		}
		fmt.Fprintln(w)
	}
	for _, t := range h.tallies(mutants) {
		line(t)
		sum.add(t)
	}
	line(sum)
}

// write writes the page with the table.
func (h *hunt) write(path string, o options) error {
	var b strings.Builder
	fmt.Fprintf(&b, page, o.histories, enough)
	h.summarize(&b, h.mutants, o.judges)
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

const page = `# Mutants of the planner's clauses

Written by ` + "`make mutants`" + `. Each part of each condition in the planner's rules, and in the questions that they ask, is spoilt,
one at a time: left out, turned round, never so, always so, or with its limit included. The column counts what noticed it first, of
those that are tried in this order:

- *table*: a test that names its cases, such as a rule's table.
- *scenario*: a test that reads a scenario of ` + "`reconciler/plan/testdata`" + `.
- *judge*: an invariant of the simulation that is broken in one of %d histories, of those in which the clause makes a difference
  the first %d.
- *run*: a test that plays a whole run in a world, event by event as the test says.
- *histories*: a test that draws histories at random, such as those of certificates and their issuers.

The last column is what the judges of the simulation notice when there is no table and no scenario. What nothing can notice is
redundant, and named with the reason in [redundant.txt](../test/mutants/redundant.txt); that list is checked, too.

`
