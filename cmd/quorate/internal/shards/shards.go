// Package shards divides clusters among several daemons. Which shard a cluster belongs to
// follows from its name, and which daemon should hold a shard from the names of the daemons
// that are alive: both are pure, so that all daemons that know the same daemons agree without
// asking each other. What is exclusive is the shard's lease, and not what is computed here: two
// daemons that know different ones wait for each other.
package shards

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
)

const (
	// points is how often each daemon stands on the ring: with one point each, the daemon
	// behind the largest gap would be full long before the others.
	points = 64
	// A daemon holds at most loadOver/loadUnder times its even part, rounded up. A smaller
	// bound is more even, and moves more shards when a daemon comes or goes.
	loadOver, loadUnder = 5, 4
	// hashBits of a hash are left out, so that it is never negative.
	hashBits = 32
)

// Of returns the shard of a cluster, from 0 to shards-1, by its namespace/name. It changes only
// with the number of shards.
func Of(cluster string, shards int) int {
	return int(hash("cluster "+cluster)>>hashBits) % max(shards, 1)
}

// Bound returns how many of the shards one of so many daemons holds at most.
func Bound(daemons, shards int) int {
	if daemons == 0 {
		return 0
	}
	return (loadOver*shards + loadUnder*daemons - 1) / (loadUnder * daemons)
}

// Assign returns which of the daemons should hold each shard; nil without daemons. It is
// consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2018): each shard
// belongs to the first daemon after it on a ring that holds less than Bound. The shards
// of a daemon that ends move, and a new daemon gets some of each other one; beyond that a
// shard moves only where a daemon is at its bound, before or after.
func Assign(daemons []string, shards int) []string {
	daemons = slices.Compact(slices.Sorted(slices.Values(daemons)))
	if len(daemons) == 0 {
		return nil
	}
	ring := ringOf(daemons)
	bound, load := Bound(len(daemons), shards), map[string]int{}
	assigned := make([]string, shards)
	for shard := range assigned {
		at, _ := slices.BinarySearchFunc(ring, hash("shard "+strconv.Itoa(shard)), func(p point, at uint64) int { return cmp.Compare(p.at, at) })
		for load[ring[at%len(ring)].daemon] >= bound {
			at++
		}
		assigned[shard] = ring[at%len(ring)].daemon
		load[assigned[shard]]++
	}
	return assigned
}

// point is one place of a daemon on the ring.
type point struct {
	at     uint64
	daemon string
}

func ringOf(daemons []string) []point {
	ring := make([]point, 0, points*len(daemons))
	for _, d := range daemons {
		for i := range points {
			ring = append(ring, point{hash("daemon " + d + " " + strconv.Itoa(i)), d})
		}
	}
	slices.SortFunc(ring, func(a, b point) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.daemon, b.daemon)) })
	return ring
}

// hash must stay what it is: daemons of two releases agree on it.
func hash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:8])
}
