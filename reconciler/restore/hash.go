package restore

import (
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// KeyHash is etcd's HashKV of a backup: of all keys and values up to Revision, of
// which those up to CompactRevision were compacted. The zero value: nobody knows.
type KeyHash struct {
	Hash                      uint32
	Revision, CompactRevision int64
}

// tombstoned is the length of the key of a deletion in etcd's database: a revision,
// which is two numbers and a dash, and a mark.
const tombstoned = 18

// check compares the keys in a database with what etcd said of them. Where the
// history was compacted since, or just then, there is nothing to compare.
//
// It computes what etcd's HashKV does (server/storage/mvcc/hash.go), which etcd's
// own code offers only for a database that it may write to.
func (k KeyHash) check(path string) error {
	if k.Revision == 0 {
		return nil
	}
	return view(path, func(keys, meta *bolt.Bucket) error {
		compacted := max(0, k.CompactRevision) // -1 is etcd's word for never
		if mainRevision(meta.Get([]byte(finishedCompaction))) != compacted || mainRevision(meta.Get([]byte(scheduledCompaction))) != compacted {
			return nil
		}
		hash := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		_, _ = hash.Write([]byte("key"))
		err := keys.ForEach(func(key, value []byte) error {
			revision := mainRevision(key)
			if revision > k.Revision || revision == compacted && len(key) == tombstoned {
				return nil
			}
			_, _ = hash.Write(key)
			_, _ = hash.Write(value)
			return nil
		})
		if err == nil && hash.Sum32() != k.Hash {
			err = fmt.Errorf("the hash of its keys at revision %d is %d, and etcd said %d when the backup was taken: what is in it is not what the cluster had, so take another backup",
				k.Revision, hash.Sum32(), k.Hash)
		}
		return err
	})
}
