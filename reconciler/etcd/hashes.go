package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/starvation"
)

// hashTime bounds one hash by the size of the database in bytes: 10 s, and a second for
// each 32 MiB, a tenth of the speed that was measured with small keys in memory. A member
// that claims to have more than mostHashed has no more time for that.
func hashTime(size int64) time.Duration {
	return 10*time.Second + time.Duration(min(max(0, size), mostHashed)>>25)*time.Second
}

// mostHashed is twelve times the largest database that etcd advises.
const mostHashed = 100 << 30

// patience is how long a comparison waits.
type patience struct {
	// hash bounds one hash by the size of the database in bytes.
	hash func(size int64) time.Duration
	// handOver is how long a hash takes that no leader is asked for: clients notice less of
	// a leadership that moves.
	handOver time.Duration
}

func patient() patience { return patience{hash: hashTime, handOver: 250 * time.Millisecond} }

// compareHashes asks every voter for the hash of its key space at one revision that all of
// them have, and returns why that tells nothing, or "". A member reads its whole database
// for it under a lock that every write, and behind the first of these every read, waits for,
// in each release from 3.4 to 3.7: so one is asked after the other, the leader last, and the
// next only when the one before answers reads again. Where one is not done in its time, by
// the size of its database, the others are left alone. A leader that reads stops all writes:
// where the others took long, it hands the leadership to one of them first, but not to one
// that stops next: that would hand it on at once, and all would have to be compared again.
//
// A compaction between two answers makes them incomparable. So does one at the newest
// revision, whose hash a member keeps until it restarts: then all are asked once more.
func compareHashes(ctx context.Context, answers []*answer, p patience) (incomparable string) {
	asked := inTurn(answers)
	revision := lowestRevision(asked)
	for range 2 {
		if problem := hashAll(ctx, asked, revision, p); problem != "" || sameThing(asked) {
			return problem
		}
		before := revision
		revision, asked = again(ctx, asked), inTurn(asked)
		if revision == before {
			revision = 0 // nobody writes, so that the newest is the same
		}
	}
	return "the members have compacted at different revisions"
}

// inTurn are the members that can be compared, the leader last.
func inTurn(answers []*answer) []*answer {
	asked := slices.DeleteFunc(slices.Clone(answers), func(a *answer) bool { return !a.complete() })
	slices.SortStableFunc(asked, func(a, b *answer) int { return cmp.Compare(a.leads(), b.leads()) })
	return asked
}

// leads is 1 for the leader, 0 for another member.
func (a *answer) leads() int {
	if a.status.Leader == a.status.Header.MemberId {
		return 1
	}
	return 0
}

// lowestRevision is the newest one that all of them have.
func lowestRevision(asked []*answer) (revision int64) {
	for _, a := range asked {
		if at := a.status.Header.Revision; revision == 0 || at < revision {
			revision = at
		}
	}
	return revision
}

// again asks the members where they are now, and returns the newest revision that all of
// them have.
func again(ctx context.Context, asked []*answer) int64 {
	eachMember(len(asked), func(i int) {
		ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
		defer cancel()
		_ = asked[i].askStatus(ctx) // else it stays what it was
	})
	return lowestRevision(asked)
}

// hashAll asks one after the other, and tells of the first that gives no answer.
func hashAll(ctx context.Context, asked []*answer, revision int64, p patience) (problem string) {
	var slowest time.Duration
	heir := slices.IndexFunc(asked, func(a *answer) bool { return a.leads() == 0 && !a.endpoint.Stops && !a.status.IsLearner })
	for _, a := range asked {
		moved := a.leads() == 1 && heir >= 0 && slowest >= p.handOver && a.handOver(ctx, asked[heir])
		begun := time.Now()
		if err := a.askHash(ctx, revision, p.hash(a.status.DbSize)); err != nil {
			a.problem = "hash of its keys: " + err.Error()
			return a.speaksFor() + ": " + a.problem
		}
		if a.hash.Revision == 0 {
			return "" // the others would be asked in vain
		}
		slowest = max(slowest, time.Since(begun))
		if moved {
			again(ctx, asked) // a round tells who leads at its end
		}
	}
	return ""
}

// handOver moves the leadership to another member, and reports whether that was done. A
// leader that keeps it is compared all the same.
func (a *answer) handOver(ctx context.Context, to *answer) bool {
	ctx, cancel := starvation.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	_, err := a.client.etcd.MoveLeader(ctx, to.status.Header.MemberId)
	return err == nil
}

// askHash asks the member for its hash, and waits until it has caught up with what it
// could not apply meanwhile.
func (a *answer) askHash(ctx context.Context, revision int64, limit time.Duration) error {
	hashing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	hash, err := a.client.HashKV(hashing, revision)
	switch {
	case errors.Is(err, ErrCompacted):
		a.hash = Hash{}
		return nil
	case hashing.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("not done in %s", limit)
	case err != nil:
		return err
	}
	a.hash = hash
	reading, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	a.keys, _, _ = a.client.CountKeys(ctx, hash.Revision) // what is unknown is not compared
	return a.askRead(reading)
}

// sameThing reports whether the hashes are of the same thing.
func sameThing(asked []*answer) bool {
	for _, a := range asked {
		if a.hash.Revision == 0 || a.hash.Revision != asked[0].hash.Revision || a.hash.Compacted != asked[0].hash.Compacted {
			return false
		}
	}
	return true
}
