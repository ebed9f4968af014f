package execute

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

// BoltSnapshot is what etcd sends of a real database.
func BoltSnapshot(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		return bucket.Put([]byte("k"), []byte("v"))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

// The last look need not be one that compared hashes: what an earlier one saw stays.
func TestManifestKeepsTheHashThatWasSeen(t *testing.T) {
	var m backup.Manifest
	stores.DescribeSource(&m, state.Member{Revision: 8, Hash: 9, HashRevision: 7, CompactRevision: 3, Keys: 5})
	stores.DescribeSource(&m, state.Member{Revision: 7})
	if m.Revision != 8 || m.Hash != 9 || m.HashRevision != 7 || m.CompactRevision != 3 || m.Keys != 5 {
		t.Errorf("manifest %+v", m)
	}
}
