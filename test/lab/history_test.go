package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// The operations of the tables: one key, times in seconds.

func at(op operation, call, answer int) operation {
	op.key = "k"
	op.call, op.answer = time.Duration(call)*time.Second, time.Duration(answer)*time.Second
	return op
}

func reads(value string, revision int64) operation {
	return operation{kind: read, outcome: done, seen: value, revision: revision}
}

func puts(value string, revision int64) operation {
	return operation{kind: put, outcome: done, value: value, revision: revision}
}

func swaps(expect int64, value string, revision int64) operation {
	return operation{kind: swap, outcome: done, expect: expect, value: value, revision: revision}
}

func misses(expect int64, value string, revision int64) operation {
	return operation{kind: swap, outcome: missed, expect: expect, seen: value, revision: revision}
}

func unanswered(op operation) operation {
	op.outcome, op.revision = unknown, 0
	return op
}

func TestLinearizable(t *testing.T) {
	for _, tc := range []struct {
		name string
		ops  []operation
		// misfit is part of the error; empty where an order exists.
		misfit string
	}{
		{"one after the other", []operation{
			at(reads("", 0), 0, 1), at(puts("a", 2), 2, 3), at(swaps(2, "b", 3), 4, 5), at(misses(2, "b", 3), 6, 7), at(reads("b", 3), 8, 9),
		}, ""},
		{"a read concurrent with a write sees either", []operation{
			at(puts("a", 2), 0, 9), at(reads("", 0), 1, 2), at(reads("a", 2), 3, 4),
		}, ""},
		{"a swap of no key", []operation{
			at(swaps(0, "a", 2), 0, 1), at(reads("a", 2), 2, 3),
		}, ""},
		{"a stale read", []operation{
			at(puts("a", 2), 0, 1), at(puts("b", 3), 2, 3), at(reads("a", 2), 4, 5),
		}, `found "a" at revision 2`},
		{"a read goes back", []operation{
			at(puts("a", 2), 0, 1), at(puts("b", 3), 2, 9), at(reads("b", 3), 3, 4), at(reads("a", 2), 5, 6),
		}, `found "a" at revision 2`},
		{"a lost write", []operation{
			at(puts("a", 2), 0, 1), at(reads("", 0), 2, 3),
		}, `found "" at revision 0`},
		{"a write lost beneath a later one", []operation{
			at(puts("a", 2), 0, 1), at(puts("b", 3), 2, 3), at(misses(9, "a", 2), 4, 5), at(puts("c", 4), 6, 7), at(reads("c", 4), 8, 9),
		}, `found "a" at revision 2`},
		{"a revision given twice", []operation{
			at(puts("a", 5), 0, 1), at(puts("b", 5), 2, 3),
		}, `wrote "b" at revision 5`},
		{"two swaps of one revision", []operation{
			at(puts("a", 2), 0, 1), at(swaps(2, "b", 3), 2, 5), at(swaps(2, "c", 4), 3, 6),
		}, "replaced revision 2"},
		{"a swap refused without a cause", []operation{
			at(puts("a", 2), 0, 1), at(misses(2, "a", 2), 2, 3),
		}, `found "a" at revision 2`},
		{"without an answer, and found later", []operation{
			at(puts("a", 2), 0, 1), at(unanswered(puts("b", 0)), 2, 3), at(reads("a", 2), 4, 5), at(reads("b", 3), 6, 7),
		}, ""},
		{"without an answer, and never found", []operation{
			at(puts("a", 2), 0, 1), at(unanswered(swaps(2, "b", 0)), 2, 3), at(reads("a", 2), 4, 5), at(puts("c", 9), 6, 7),
		}, ""},
		{"without an answer, found and gone again", []operation{
			at(puts("a", 2), 0, 1), at(unanswered(puts("b", 0)), 2, 3), at(reads("b", 3), 4, 5), at(reads("a", 2), 6, 7),
		}, `found "a" at revision 2`},
		{"found before it was asked for", []operation{
			at(reads("b", 3), 0, 1), at(unanswered(puts("b", 0)), 2, 3),
		}, `found "b" at revision 3`},
		{"a read without an answer says nothing", []operation{
			at(puts("a", 2), 0, 1), at(unanswered(reads("", 0)), 2, 3), at(reads("a", 2), 4, 5),
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := linearizable(tc.ops, checkLimit)
			switch {
			case tc.misfit == "" && err != nil:
				t.Error(err)
			case tc.misfit != "" && err == nil:
				t.Error("an order was found")
			case tc.misfit != "" && !strings.Contains(err.Error(), tc.misfit):
				t.Errorf("the error does not name the operation %q: %v", tc.misfit, err)
			}
		})
	}
}

// TestLinearizableOfALongHistory checks what a register really answers, with
// answers that got lost, and then the same with one write taken out.
func TestLinearizableOfALongHistory(t *testing.T) {
	ops := append([]operation{at(puts("first", 1), -1, -1)}, simulate(5000)...)
	if err := linearizable(ops, checkLimit); err != nil {
		t.Fatal(err)
	}
	for i := range ops {
		if op := &ops[i]; i > 2500 && op.kind == read && op.outcome == done {
			op.seen, op.revision = "", 0
			break
		}
	}
	err := linearizable(ops, checkLimit)
	if err == nil || errors.Is(err, errUndecided) || !strings.Contains(err.Error(), "of k from") {
		t.Errorf("a read that finds nothing after 2500 operations: %v", err)
	}
	if err := linearizable(ops, 0); !errors.Is(err, errUndecided) {
		t.Errorf("without any time to search: %v", err)
	}
}

// simulate is the history of one key under four clients that overlap. What they
// expect of it they know from answers.
func simulate(n int) []operation {
	dice, now, known := rand.New(rand.NewPCG(1, 2)), register{"first", 1}, int64(1)
	var ops []operation
	for i := range n {
		op := operation{client: i % 4, key: "k", value: fmt.Sprint(i), expect: known, outcome: done}
		op.kind = []kind{read, put, swap}[dice.IntN(3)]
		switch {
		case op.kind == swap && op.expect != now.revision:
			op.outcome, op.seen, op.revision = missed, now.value, now.revision
		case op.kind == read:
			op.seen, op.revision = now.value, now.revision
		default:
			now = register{op.value, now.revision + 1}
			op.revision = now.revision
		}
		took := time.Duration(dice.IntN(3000)) * time.Microsecond
		op.call = time.Duration(i)*time.Millisecond - took
		op.answer = time.Duration(i)*time.Millisecond + took
		if dice.IntN(20) == 0 {
			op = unanswered(op)
		} else {
			known = op.revision
		}
		ops = append(ops, op)
	}
	return ops
}

func TestHistoryOfRealEtcd(t *testing.T) {
	client := startEtcd(t)
	clients := []*clientv3.Client{client}
	for range 3 {
		another, err := clientv3.New(clientv3.Config{Endpoints: client.Endpoints(), Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, another)
	}
	checker, err := clientv3.New(clientv3.Config{Endpoints: client.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checker.Close() })
	h := StartHistory(clients, HistoryOptions{Pace: time.Millisecond, Timeout: patience, MaxOperations: 2000})
	t.Cleanup(h.Close)
	if err := h.Check(t.Context(), checker); err != nil {
		t.Errorf("while the load runs: %v", err)
	}
	h.loops.Wait()
	if err := h.Check(t.Context(), checker); err != nil {
		t.Error(err)
	}
	r := h.Report()
	t.Log(r)
	if r.Reads < 200 || r.Writes < 200 || r.Missed < 20 || r.Unknown > 0 {
		t.Errorf("not a load that could show anything: %s", r)
	}
	// What a restore of an old backup would do.
	if _, err := checker.Delete(t.Context(), h.key(3)); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(t.Context(), checker); err == nil || !strings.Contains(err.Error(), h.key(3)) {
		t.Errorf("a lost key: %v", err)
	}
}
