package restore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// hashed is a database, and what etcd's own code says of its keys at a revision.
func hashed(t *testing.T, at int64, change func(mvcc.KV)) (string, KeyHash) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	database(t, path, change)
	b := backend.NewDefaultBackend(zap.NewNop(), path)
	kv := mvcc.NewStore(zap.NewNop(), b, &lease.FakeLessor{}, mvcc.StoreConfig{})
	sum, _, err := kv.HashStorage().HashByRev(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return path, KeyHash{Hash: sum.Hash, Revision: at, CompactRevision: sum.CompactRevision}
}

// 163, I9: the keys in a backup are hashed as etcd does it, also where some were deleted
// and the history was compacted, up to a deletion or not, and changed since.
func TestKeysAreHashedAsEtcdDoes(t *testing.T) {
	compact := func(kv mvcc.KV, at int64) {
		done, err := kv.Compact(traceutil.TODO(), at)
		if err != nil {
			t.Fatal(err)
		}
		<-done
	}
	for name, c := range map[string]struct {
		at     int64
		change func(mvcc.KV)
	}{
		"at its end":          {11, nil},
		"before its end":      {7, nil},
		"with a deletion":     {12, func(kv mvcc.KV) { kv.DeleteRange([]byte("key-3"), nil) }},
		"compacted":           {11, func(kv mvcc.KV) { compact(kv, 6) }},
		"written again since": {12, func(kv mvcc.KV) { compact(kv, 11); kv.Put([]byte("key-3"), []byte("new"), 0) }},
		"removed since":       {12, func(kv mvcc.KV) { compact(kv, 11); kv.DeleteRange([]byte("key-3"), nil) }},
		"emptied since": {13, func(kv mvcc.KV) {
			kv.DeleteRange([]byte("key-3"), nil)
			compact(kv, 12)
			kv.DeleteRange([]byte("key"), []byte("key-9\x00"))
		}},
		"compacted at a removal": {13, func(kv mvcc.KV) { kv.DeleteRange([]byte("key-3"), nil); kv.Put([]byte("a"), nil, 0); compact(kv, 12) }},
	} {
		t.Run(name, func(t *testing.T) {
			path, want := hashed(t, c.at, c.change)
			if err := want.check(path); err != nil {
				t.Error(err)
			}
			other := want
			other.Hash++
			if err := other.check(path); err == nil || !strings.Contains(err.Error(), "is not what the cluster had") {
				t.Errorf("another hash: %v", err)
			}
			other.CompactRevision = 3
			if err := other.check(path); err != nil {
				t.Errorf("compacted since: %v", err)
			}
			if err := (KeyHash{}).check(path); err != nil {
				t.Errorf("nobody knows: %v", err)
			}
		})
	}
}

// I9: where a compaction had begun or ended since, some keys may be gone: there is
// nothing to compare.
func TestKeysAreNotHashedAmidACompaction(t *testing.T) {
	for _, mark := range []string{scheduledCompaction, finishedCompaction} {
		t.Run(mark, func(t *testing.T) {
			path, keys := hashed(t, 11, nil)
			keys.Hash++
			if err := keys.check(path); err == nil {
				t.Fatal("another hash is no error")
			}
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte(mark), binary.BigEndian.AppendUint64(nil, 6))
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			if err := keys.check(path); err != nil {
				t.Error(err)
			}
		})
	}
}

// A trial leaves the revisions as they were, lets anybody look, and refuses what a
// restore would.
func TestATrialLeavesRevisionsAsTheyWere(t *testing.T) {
	path, keys := hashed(t, 11, nil)
	without, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(without)
	switchAuthenticationOn(t, path)
	seal(t, path)
	with, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	trial := func(keys KeyHash, taken []byte) (string, error) {
		dir := t.TempDir()
		return dir, Run(Request{
			Volume: dir, Member: "trial", PeerURL: "http://127.0.0.1:2380", Token: "trial", AtLeast: 11, Keys: keys, Trial: true,
			Fetch: func(path string) error { return os.WriteFile(path, taken, 0o600) },
		}, zap.NewNop())
	}
	if _, err := trial(keys, append(without, sum[:]...)); err != nil {
		t.Errorf("of a cluster that never heard of authentication: %v", err)
	}
	dir, err := trial(keys, with)
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "data", "member", "snap", "db")
	if last, reached, err := revisions(made); err != nil || last != 11 || reached != 11 {
		t.Errorf("at %d and %d: %v", last, reached, err)
	}
	if err := keys.check(made); err != nil {
		t.Error(err)
	}
	if authenticates(t, made) {
		t.Error("authentication is on")
	}
	keys.Hash++
	if _, err := trial(keys, with); err == nil || !strings.Contains(err.Error(), "is not what the cluster had") {
		t.Errorf("another hash: %v", err)
	}
}

// What is restored to be used asks for the passwords that the cluster asked for.
func TestARestoreLeavesAuthenticationOn(t *testing.T) {
	dir := volume(t)
	switchAuthenticationOn(t, filepath.Join(dir, "data", "member", "snap", "db"))
	run(t, request(dir))
	if !authenticates(t, filepath.Join(dir, "data", "member", "snap", "db")) {
		t.Error("authentication is off")
	}
}

func switchAuthenticationOn(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		auth, err := tx.CreateBucketIfNotExists(schema.Auth.Name())
		if err != nil {
			return err
		}
		return auth.Put(schema.AuthEnabledKeyName, []byte{1})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// authenticates asks etcd's own code.
func authenticates(t *testing.T, path string) bool {
	t.Helper()
	b := backend.NewDefaultBackend(zap.NewNop(), path)
	on := schema.NewAuthBackend(zap.NewNop(), b).ReadTx().UnsafeReadAuthEnabled()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return on
}
