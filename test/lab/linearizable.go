package lab

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkLimit bounds the search for an order. It takes well under a second where
// there is one.
const checkLimit = 3 * time.Minute

// errUndecided is a check that has come to no end within its time.
var errUndecided = errors.New("no order found within the time, and not shown that there is none")

// register is the state of one key: what it holds, since which revision.
type register struct {
	value    string
	revision int64
}

// linearizable reports whether the operations on each key could have taken effect
// one after the other, each between its call and its answer, with these answers.
// Keys are checked one at a time: a history is linearizable when that of each of
// its keys is.
func linearizable(ops []operation, limit time.Duration) error {
	until := time.Now().Add(limit)
	byKey := map[string][]operation{}
	for _, op := range settle(ops) {
		byKey[op.key] = append(byKey[op.key], op)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if err := linearizableKey(byKey[key], time.Until(until)); err != nil {
			return fmt.Errorf("%d operations on %s: %w", len(byKey[key]), key, err)
		}
	}
	return nil
}

func linearizableKey(ops []operation, limit time.Duration) error {
	if limit <= 0 {
		return errUndecided // to the checker, 0 is for ever
	}
	history := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		history[i] = porcupine.Operation{ClientId: op.client, Input: op, Call: int64(op.call), Return: int64(op.answer)}
	}
	switch porcupine.CheckOperationsTimeout(model(), history, limit) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return errUndecided
	}
	// Once more, with the memory that it takes to say why.
	_, info := porcupine.CheckOperationsVerbose(model(), history, limit)
	return fmt.Errorf("not linearizable: no order explains %s", misfit(ops, info))
}

// settle turns writes without an answer into what they turned out to be. One
// that some read has found took effect, at the revision found, and before the
// first such read was answered. One that no client has found is left out: as each
// refused swap reports what it found, the client after it either overwrote it
// blindly or did not come, and then it does not matter whether it was there.
// Reads without an answer say nothing.
func settle(ops []operation) []operation {
	first := map[string]operation{}
	for _, op := range ops {
		if op.outcome == missed || op.kind == read && op.outcome == done {
			if before, ok := first[op.seen]; !ok || op.answer < before.answer {
				first[op.seen] = op
			}
		}
	}
	var settled []operation
	for _, op := range ops {
		if op.outcome == unknown {
			finder, ok := first[op.value]
			if op.kind == read || !ok {
				continue
			}
			op.outcome, op.revision, op.answer = done, finder.revision, max(finder.answer, op.call)
		}
		settled = append(settled, op)
	}
	return settled
}

// model is what one key of etcd does.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, _ any) (bool, any) { return step(state.(register), input.(operation)) },
	}
}

// step reports whether an operation could have its answer in a state, and what
// the state is then. Revisions only rise.
func step(now register, op operation) (bool, any) {
	if op.kind == read || op.outcome == missed {
		asFound := now == register{op.seen, op.revision}
		return asFound && (op.kind == read || op.expect != now.revision), now
	}
	ok := op.revision > now.revision && (op.kind == put || op.expect == now.revision)
	return ok, register{op.value, op.revision}
}

// misfit is the first operation, by its answer, that is not part of the longest
// order that was found.
func misfit(ops []operation, info porcupine.LinearizationInfo) operation {
	var longest []int
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	var left []operation
	for i, op := range ops {
		if !slices.Contains(longest, i) {
			left = append(left, op)
		}
	}
	return slices.MinFunc(left, func(a, b operation) int { return cmp.Compare(a.answer, b.answer) })
}
