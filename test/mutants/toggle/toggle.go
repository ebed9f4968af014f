// Package toggle is what the clauses of a mutated planner ask: one binary has all mutants
// in it, and at most one of them is on. Only what test/mutants compiles imports it.
package toggle

import "fmt"

// Mutated is one mutated clause of the product.
type Mutated = int

// none is no mutant: the product as it is.
const none Mutated = -1

// evaluations is how often clauses may be asked by one test or history before it counts as
// endless: the longest asks a tenth of it.
const evaluations = 1_000_000_000

// current is what is in effect: one binary has one product in it, whose clauses know of
// nothing else that they could ask.
var current = effect{on: none} //nolint:gochecknoglobals // see there

type effect struct {
	on Mutated
	// seen are the mutants that would have decided a clause otherwise, where that is noted.
	seen map[Mutated]bool
	// asked is how often clauses were asked.
	asked int
}

// Turn lets one mutant be in effect, and forgets those before.
func Turn(m Mutated) { current = effect{on: m} }

// Off lets the product be as it is.
func Off() { Turn(none) }

// Watch lets the product be as it is, and notes which mutants would have decided a clause
// otherwise.
func Watch() { current = effect{on: none, seen: map[Mutated]bool{}} }

// Seen are the mutants that would have decided a clause otherwise since Watch or Seen.
func Seen() []Mutated {
	var all []Mutated
	for m := range current.seen {
		all = append(all, m)
	}
	clear(current.seen)
	return all
}

// True is a clause that is true where the mutant is on.
func True(m Mutated, clause bool) bool { return choose(m, clause, true) }

// False is a clause that is false where the mutant is on.
func False(m Mutated, clause bool) bool { return choose(m, clause, false) }

// Not is a clause that is the opposite where the mutant is on.
func Not(m Mutated, clause bool) bool { return choose(m, clause, !clause) }

// Either is a comparison, or another one where the mutant is on.
func Either(m Mutated, clause, mutated bool) bool { return choose(m, clause, mutated) }

func choose(m Mutated, clause, mutated bool) bool {
	if current.asked++; current.asked > evaluations && current.on != none {
		panic(fmt.Sprintf("mutant %d does not come to an end", current.on))
	}
	switch {
	case current.on == m:
		return mutated
	case current.seen != nil && clause != mutated:
		current.seen[m] = true
	}
	return clause
}
