package restore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"pgregory.net/rapid"
)

// 163, I9: whatever was put, deleted and compacted, the keys in the file are hashed as
// etcd's own code does it, for every revision that it can be asked for, and whatever the
// number of keys that are held in memory at once. More histories: -rapid.checks=20000.
func TestAnyHistoryIsHashedAsEtcdDoes(t *testing.T) {
	path, compared := filepath.Join(t.TempDir(), "db"), 0
	rapid.Check(t, func(rt *rapid.T) {
		h := newKeptHistory(rt, path)
		defer h.close()
		for range rapid.IntRange(1, 40).Draw(rt, "moves") {
			h.move()
		}
		compared += h.compare(rapid.SampledFrom([]int{1, 2, keysAtOnce}).Draw(rt, "keys at once"))
	})
	t.Logf("%d files were compared", compared)
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// keptHistory is a history in etcd's own code. Some never wait for a compaction, which
// then has gone any part of its way: in these, one key is never deleted, because etcd's
// hash of no keys depends on how far it has come.
type keptHistory struct {
	*rapid.T
	path    string
	patient bool
	backend backend.Backend
	kv      mvcc.WatchableKV
}

func newKeptHistory(t *rapid.T, path string) *keptHistory {
	h := &keptHistory{T: t, path: path, patient: rapid.Bool().Draw(t, "patient")}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	h.open()
	if !h.patient {
		h.kv.Put([]byte("always"), nil, lease.NoLease)
	}
	return h
}

func (h *keptHistory) open() {
	config := backend.DefaultBackendConfig(zap.NewNop())
	config.Path, config.UnsafeNoFsync = h.path, true
	h.backend = backend.New(config)
	schema.CreateMetaBucket(h.backend.BatchTx())
	h.kv = mvcc.New(zap.NewNop(), h.backend, &lease.FakeLessor{}, mvcc.StoreConfig{CompactionBatchLimit: 2, CompactionSleepInterval: time.Microsecond})
}

func (h *keptHistory) close() {
	h.kv.Close()
	h.backend.Close()
}

// move is one request, or the end of the process, which forgets what it has hashed.
func (h *keptHistory) move() {
	switch rapid.SampledFrom([]string{"put", "put", "put", "delete", "delete range", "transaction", "transaction", "compact", "restart"}).Draw(h.T, "move") {
	case "put":
		h.kv.Put(h.key(), []byte(rapid.StringN(0, 3, -1).Draw(h.T, "value")), lease.NoLease)
	case "delete":
		h.kv.DeleteRange(h.key(), nil)
	case "delete range":
		h.kv.DeleteRange(h.key(), []byte("key-9"))
	case "transaction":
		h.transaction()
	case "compact":
		h.compact(rapid.Int64Range(h.compacted()+1, h.kv.Rev()+1).Draw(h.T, "compaction"))
	case "restart":
		h.close()
		h.open()
	}
}

// key is one of a few, so that they are often written again.
func (h *keptHistory) key() []byte {
	return fmt.Appendf(nil, "key-%d", rapid.IntRange(0, 5).Draw(h.T, "key"))
}

// transaction is some changes at one revision. etcd's API refuses to put and to delete
// a key in one; a put before a deletion is tried here all the same.
func (h *keptHistory) transaction() {
	tx := h.kv.Write(traceutil.TODO())
	defer tx.End()
	deleted := map[string]bool{}
	for range rapid.IntRange(1, 4).Draw(h.T, "changes") {
		key := h.key()
		if rapid.Bool().Draw(h.T, "deletes") {
			tx.DeleteRange(key, nil)
			deleted[string(key)] = true
		} else if !deleted[string(key)] {
			tx.Put(key, []byte("t"), lease.NoLease)
		}
	}
}

func (h *keptHistory) compacted() int64 {
	sum, _, err := h.kv.HashStorage().HashByRev(0)
	if err != nil {
		h.Fatal(err)
	}
	return max(0, sum.CompactRevision)
}

func (h *keptHistory) compact(at int64) {
	done, err := h.kv.Compact(traceutil.TODO(), at)
	if err == nil && h.patient {
		<-done
	}
}

// compare compares the file with what etcd says of a revision, and reports how many
// were compared.
func (h *keptHistory) compare(atOnce int) int {
	at := rapid.Int64Range(max(1, h.compacted()), h.kv.Rev()).Draw(h.T, "asked")
	want, _, err := h.kv.HashStorage().HashByRev(at)
	if err != nil {
		h.Fatal(err)
	}
	if rapid.IntRange(0, 4).Draw(h.T, "compacted meanwhile") == 4 {
		h.compact(h.kv.Rev())
	}
	var file bytes.Buffer
	snapshot := h.backend.Snapshot()
	_, err = snapshot.WriteTo(&file)
	if err != nil || snapshot.Close() != nil {
		h.Fatal(err)
	}
	copied := h.path + ".copy"
	if err := os.WriteFile(copied, file.Bytes(), 0o600); err != nil {
		h.Fatal(err)
	}
	compared, err := agrees(copied, KeyHash{Hash: want.Hash, Revision: at, CompactRevision: want.CompactRevision})
	if err != nil {
		h.Fatal(err)
	}
	if !compared {
		return 0
	}
	err = view(copied, func(keys, _ *bolt.Bucket) error {
		sum, err := history{keys: keys, compacted: max(0, want.CompactRevision), asked: at}.hash(atOnce)
		if err == nil && sum != want.Hash {
			err = fmt.Errorf("%d keys at once: %d, want %d", atOnce, sum, want.Hash)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return 1
}

// agrees compares a file with a hash, and reports whether there was anything to compare:
// then another hash is refused.
func agrees(path string, k KeyHash) (compared bool, err error) {
	if err := k.check(path); err != nil {
		return true, err
	}
	k.Hash++
	return k.check(path) != nil, nil
}
