package plan

// The page that `make sim` writes, docs/simulation.md, between its tables.
const (
	pageHead = `# The simulation of the planner

Written by %s, on %d processors. The rules run against worlds: a Kubernetes, an etcd and a Git small enough to be values. Random histories
of 0 to 900 events are played with eyes and hands that are slow, look into the past, lose answers and die half way; and every state is visited that
small worlds can reach by what happens, by faults, by commits and by passes of quorate that are whole, half, late or overtaken. Each action is held
against the [invariants](../reconciler/plan/doc.go) before it is done, and against what it has done.

`
	pageRest = `
## It always comes to rest

When the faults of a history end, its world is left alone with quorate until it rests: as Git says, or held by something that only a person can
end. Then a person does what the hold says, in its words, as a change of the world or of Git, again and again until the world rests as Git
says then: of %d rests, %d were holds. No world took more than %d looks to rest; %d are the bound. In the walks this is asked of every eighth state. A hold of
which no way leads to rest is counted as *stuck*; in the histories and walks that are always the same it fails the tests.

A way that gives up data is tried after those that do not. *Led to rest* counts the holds that ended in rest by that way, others after it included.

`
	pageOutside = `
What holds say of things that no world has, by its source, and why; a [test](../reconciler/plan/ways_told_test.go) fails when a hold is neither here nor above:

| | |
|---|---|
`
	pageInvariants = `
## The invariants

How often each was held against something, and how many mutants of quorate that break it were caught.

| | judged | mutants caught | |
|---|---:|---:|---|
`
	pageWorld = `
## What happens in the worlds

Beside commits, windows, backups, the store, the clock, other clusters, another daemon and another writer:

| | |
|---|---|
`
)
