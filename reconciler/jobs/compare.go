package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/etcd"
)

// DrillResult is what was found when a backup was restored on trial.
type DrillResult struct {
	// Problem says why the backup is not what the cluster had; empty for a good one.
	Problem string `json:"problem,omitempty"`
	// Keys, Revision and Hash are those of the restored etcd. Hash is 0 where
	// history was compacted between the hash and the snapshot.
	Keys     int64  `json:"keys"`
	Revision int64  `json:"revision"`
	Hash     uint32 `json:"hash,omitempty"`
}

// comparePace is the time between two looks at an etcd that starts.
const comparePace = 500 * time.Millisecond

// Compare waits until the etcd at the address, which has begun with a backup,
// answers, and compares it with what the backup's manifest says. The error says that it came to no
// judgement before ctx ended.
func Compare(ctx context.Context, address string, b backup.Verified) (DrillResult, error) {
	client, err := etcd.Dial(etcd.Endpoint{Member: "etcd", Host: drillHost, Address: address})
	if err != nil {
		return DrillResult{}, err
	}
	defer client.Close()
	for {
		result, err := compareOnce(ctx, client, b)
		if err == nil {
			return result, nil
		}
		select {
		case <-ctx.Done():
			return DrillResult{}, fmt.Errorf("the etcd that began with the backup does not answer: %w", err)
		case <-time.After(comparePace):
		}
	}
}

// compareOnce is one look. Its error is that etcd is not ready to be looked at.
func compareOnce(ctx context.Context, m *etcd.Conn, want backup.Verified) (DrillResult, error) {
	keys, at, err := m.CountKeys(ctx, 0)
	if errors.Is(err, etcd.ErrCorrupt) {
		return DrillResult{Problem: "etcd has the alarm CORRUPT in it, and serves nobody"}, nil
	}
	if err != nil {
		return DrillResult{}, err
	}
	r := DrillResult{Keys: keys, Revision: at}
	if r.Revision < want.Revision {
		r.Problem = fmt.Sprintf("it is at revision %d, and the cluster was at %d when the backup was begun", r.Revision, want.Revision)
		return r, nil
	}
	if want.HashRevision == 0 {
		return r, nil
	}
	r.Problem, err = compareKeys(ctx, m, want)
	if r.Problem != "" || err != nil {
		return r, err
	}
	// Hashing a large key space takes a while: only the drill as a whole is bounded.
	hash, err := m.HashKV(ctx, want.HashRevision)
	switch {
	case errors.Is(err, etcd.ErrCompacted):
		return r, nil
	case err != nil:
		return r, err
	case max(0, hash.Compacted) != max(0, want.CompactRevision):
		return r, nil
	}
	r.Hash = hash.Sum
	if r.Hash != want.Hash {
		r.Problem = fmt.Sprintf("the hash of its keys at revision %d is %d, and etcd said %d when the backup was taken", want.HashRevision, r.Hash, want.Hash)
	}
	return r, nil
}

// compareKeys counts the keys at the revision at which they were counted when the
// backup was taken, which also tells where history was compacted since the hash.
func compareKeys(ctx context.Context, m *etcd.Conn, want backup.Verified) (problem string, err error) {
	if want.Keys == 0 {
		return "", nil
	}
	switch keys, _, err := m.CountKeys(ctx, want.HashRevision); {
	case errors.Is(err, etcd.ErrCompacted):
		return "", nil
	case err != nil:
		return "", err
	case keys != want.Keys:
		return fmt.Sprintf("it has %d keys at revision %d, and etcd had %d when the backup was taken", keys, want.HashRevision, want.Keys), nil
	}
	return "", nil
}
