package shards

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// names are those of so many daemons.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("quorate-7d9f8b6c5-%d", i)
	}
	return list
}

// The shard of a cluster is part of what a daemon of another release has to agree on.
func TestTheShardOfAClusterNeverChanges(t *testing.T) {
	for cluster, want := range map[string]int{"shop/orders": 4, "shop/sessions": 2, "billing/orders": 11, "": 8} {
		if got := Of(cluster, 12); got != want {
			t.Errorf("%q: %d, want %d", cluster, got, want)
		}
		if got := Of(cluster, 1); got != 0 {
			t.Errorf("%q of one shard: %d", cluster, got)
		}
	}
}

func TestClustersAreSpreadOverAllShards(t *testing.T) {
	const clusters, shards = 10000, 12
	count := make([]int, shards)
	for i := range clusters {
		count[Of(fmt.Sprintf("team-%d/orders-%d", i%37, i), shards)]++
	}
	if even := clusters / shards; slices.Min(count) < even*8/10 || slices.Max(count) > even*12/10 {
		t.Errorf("clusters of each shard: %v", count)
	}
}

// What daemons of another release would assign, for the two to agree.
func TestAssignmentNeverChanges(t *testing.T) {
	got := Assign([]string{"c", "a", "b", "a"}, 12)
	want := []string{"b", "a", "b", "b", "a", "c", "a", "a", "b", "c", "b", "c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Assign(nil, 12); got != nil {
		t.Errorf("without daemons: %q", got)
	}
}

func loads(assigned []string) map[string]int {
	load := map[string]int{}
	for _, d := range assigned {
		load[d]++
	}
	return load
}

// drawn are daemons and shards of any number.
func drawn(t *rapid.T) (daemons []string, shards int) {
	daemons = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]{1,8}`), 1, 12, rapid.ID).Draw(t, "daemons")
	return daemons, rapid.IntRange(1, 300).Draw(t, "shards")
}

// full are the daemons of an assignment that hold as many as they may.
func full(assigned []string, daemons int) map[string]bool {
	list := map[string]bool{}
	for d, n := range loads(assigned) {
		list[d] = n >= Bound(daemons, len(assigned))
	}
	return list
}

func TestEachShardHasOneDaemonWithinTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		daemons, shards := drawn(t)
		assigned := Assign(daemons, shards)
		if len(assigned) != shards {
			t.Fatalf("%d shards are assigned of %d", len(assigned), shards)
		}
		for d, n := range loads(assigned) {
			if !slices.Contains(daemons, d) {
				t.Errorf("%q is no daemon", d)
			}
			if most := Bound(len(daemons), shards); n > most || n > (5*shards)/(4*len(daemons))+1 {
				t.Errorf("%s holds %d of %d shards, %d at most", d, n, shards, most)
			}
		}
		shuffled := rapid.Permutation(daemons).Draw(t, "shuffled")
		if !slices.Equal(assigned, Assign(shuffled, shards)) {
			t.Error("the order of the daemons matters")
		}
	})
}

// The shards of a daemon that ends move. Another one moves only by a bound: it leaves a daemon
// that is full now, or goes where it had no place before.
func TestADaemonThatEndsMovesItsShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		daemons, shards := drawn(t)
		if len(daemons) < 2 {
			daemons = append(daemons, daemons[0]+"-2")
		}
		gone := rapid.SampledFrom(daemons).Draw(t, "gone")
		left := slices.DeleteFunc(slices.Clone(daemons), func(d string) bool { return d == gone })
		before, after := Assign(daemons, shards), Assign(left, shards)
		wasFull, isFull := full(before, len(daemons)), full(after, len(left))
		for i, d := range before {
			if to := after[i]; d != gone && to != d && !isFull[d] && !wasFull[to] {
				t.Errorf("shard %d moves from %s to %s, and neither is full", i, d, to)
			}
		}
	})
}

// A daemon that is new takes shards; others move only by a bound.
func TestANewDaemonTakesItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		daemons, shards := drawn(t)
		added := daemons[0] + "-new"
		more := append(slices.Clone(daemons), added)
		before, after := Assign(daemons, shards), Assign(more, shards)
		wasFull, isFull := full(before, len(daemons)), full(after, len(more))
		for i, d := range before {
			if to := after[i]; to != added && to != d && !isFull[d] && !wasFull[to] {
				t.Errorf("shard %d moves from %s to %s, and neither is full", i, d, to)
			}
		}
		if taken, most := loads(after)[added], Bound(len(more), shards); taken > most {
			t.Errorf("the new one takes %d of %d shards, %d at most", taken, shards, most)
		}
	})
}

// How many shards move when one of several daemons ends: on the average no more than its
// own and half of that again.
func TestFewShardsMoveByTheBound(t *testing.T) {
	for _, c := range []struct{ daemons, shards int }{{2, 8}, {3, 12}, {3, 30}, {5, 40}, {10, 120}} {
		own, moved := 0, 0
		for try := range 50 {
			daemons := names(c.daemons)
			for i := range daemons {
				daemons[i] += fmt.Sprint("-", try)
			}
			before, after := Assign(daemons, c.shards), Assign(daemons[1:], c.shards)
			for i := range before {
				switch {
				case before[i] == daemons[0]:
					own++
				case before[i] != after[i]:
					moved++
				}
			}
		}
		t.Logf("%d daemons, %d shards: %.1f of the one that ends, and %.1f more", c.daemons, c.shards, float64(own)/50, float64(moved)/50)
		if 2*moved > own {
			t.Errorf("%d daemons, %d shards: %d shards of those that ended, and %d more moved", c.daemons, c.shards, own, moved)
		}
	}
}
