package restore

import (
	"crypto/sha256"
	"encoding/binary"
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

// keysAtOnce bounds the memory for keys that were written after a compaction: 16
// bytes each in a map that is some 40 MiB when it is full. Where there are more keys,
// what is older is read once for each part of them.
const keysAtOnce = 1 << 20

// check compares the keys in a database with what etcd said of them. Where the
// history was compacted since, or just then, there is nothing to compare.
//
// It computes what etcd's HashKV does (server/storage/mvcc/hash.go), which etcd's
// own code offers only for a database that it may write to, with an index of all keys
// in memory.
func (k KeyHash) check(path string) error {
	if k.Revision == 0 {
		return nil
	}
	return view(path, func(keys, meta *bolt.Bucket) error {
		compacted := max(0, k.CompactRevision) // -1 is etcd's word for never
		if mainRevision(meta.Get([]byte(finishedCompaction))) != compacted || mainRevision(meta.Get([]byte(scheduledCompaction))) != compacted {
			return nil
		}
		sum, err := history{keys: keys, compacted: compacted, asked: k.Revision}.hash(keysAtOnce)
		if err == nil && sum != k.Hash {
			err = fmt.Errorf("the hash of its keys at revision %d is %d, and etcd said %d when the backup was taken: %w", k.Revision, sum, k.Hash, ErrHashMismatch)
		}
		return err
	})
}

// history is the entries of a database, of which those up to a revision were
// compacted, as HashKV sees them when it is asked for that or a later revision.
type history struct {
	keys             *bolt.Bucket
	compacted, asked int64
}

// hash is what HashKV answers in every release since 3.4:
//
//	later than asked                          left out
//	later than the compaction                 hashed
//	a deletion at the compaction              left out: some releases keep it, others do not
//	a value that was replaced or deleted      left out: a compaction at what is asked
//	since the compaction, up to what is       would remove it
//	asked
//	a value that was not                      hashed
//
// But if there is no key at what is asked, etcd takes the empty list of what it keeps
// for none, and nothing is left out as replaced.
func (h history) hash(atOnce int) (uint32, error) {
	left, err := h.replaced(atOnce)
	if err != nil {
		return 0, err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = sum.Write([]byte("key"))
	i := -1
	err = h.each(0, h.asked, func(revision, value []byte) error {
		i++
		if left.has(i) || mainRevision(revision) == h.compacted && isDeletion(revision) {
			return nil
		}
		_, _ = sum.Write(revision)
		_, _ = sum.Write(value)
		return nil
	})
	return sum.Sum32(), err
}

// replaced marks the entries, counted from the first one, that the compaction has
// kept and whose keys were written or deleted since. It is empty where there is no key
// at what is asked.
func (h history) replaced(atOnce int) (marks, error) {
	if h.compacted == 0 {
		return nil, nil
	}
	var replaced marks
	old, added := 0, 0 // keys at the compaction, and how many more at what is asked
	written := map[digest]bool{}
	mark := func() (err error) {
		if len(written) == 0 {
			return nil
		}
		old, err = h.mark(written, &replaced)
		clear(written)
		return err
	}
	err := h.each(h.compacted+1, h.asked, func(revision, value []byte) error {
		key, version, err := keyOf(revision, value)
		if err != nil {
			return err
		}
		switch {
		case isDeletion(revision):
			added-- // etcd notes the deletion of a key that is there, and no other
		case version == 1:
			added++
		}
		written[digestOf(key)] = true
		if len(written) == atOnce {
			return mark()
		}
		return nil
	})
	if err == nil {
		err = mark()
	}
	if old+added == 0 {
		return nil, err
	}
	return replaced, err
}

// mark marks what the compaction has kept of some keys, and counts the keys that
// there were then: it has kept one value of each.
func (h history) mark(written map[digest]bool, replaced *marks) (keys int, err error) {
	i := 0
	err = h.each(0, h.compacted, func(revision, value []byte) error {
		if !isDeletion(revision) {
			keys++
		}
		key, _, err := keyOf(revision, value)
		if err == nil && written[digestOf(key)] {
			replaced.set(i)
		}
		i++
		return err
	})
	return keys, err
}

// each goes through the entries of these revisions in their order.
func (h history) each(from, to int64, do func(revision, value []byte) error) error {
	c := h.keys.Cursor()
	for revision, value := c.Seek(binary.BigEndian.AppendUint64(nil, uint64(from))); revision != nil && mainRevision(revision) <= to; revision, value = c.Next() {
		if err := do(revision, value); err != nil {
			return err
		}
	}
	return nil
}

// isDeletion reports whether an entry says that a key was deleted: after the revision,
// which is two numbers and a dash, it has a mark.
func isDeletion(revision []byte) bool { return len(revision) == 18 }

// keyOf reads the key of an entry, and how often it was written since it was created.
func keyOf(revision, entry []byte) (key []byte, version uint64, err error) {
	key, version, ok := fieldsOf(entry)
	if !ok {
		err = fmt.Errorf("the entry of revision %d is damaged", mainRevision(revision))
	}
	return key, version, err
}

// fieldsOf reads two fields of etcd's mvccpb.KeyValue, and copies nothing: its value
// may be large.
func fieldsOf(entry []byte) (key []byte, version uint64, ok bool) {
	const keyField, versionField = 1<<3 | 2, 4 << 3
	for len(entry) > 0 {
		field, n := binary.Uvarint(entry)
		if n <= 0 {
			return nil, 0, false
		}
		number, m := binary.Uvarint(entry[n:])
		if m <= 0 {
			return nil, 0, false
		}
		entry = entry[n+m:]
		switch isText := field&7 == 2; { // else it is a number
		case field == versionField:
			version = number
		case isText && number > uint64(len(entry)), !isText && field&7 != 0:
			return nil, 0, false
		case isText:
			if field == keyField {
				key = entry[:number]
			}
			entry = entry[number:]
		}
	}
	return key, version, true
}

// digest stands for a key, which may be long.
type digest [16]byte

func digestOf(key []byte) digest {
	sum := sha256.Sum256(key)
	return digest(sum[:16])
}

// marks are numbers from 0 on, one bit each.
type marks []uint64

func (m *marks) set(i int) {
	for len(*m) <= i/64 {
		*m = append(*m, 0)
	}
	(*m)[i/64] |= 1 << (i % 64)
}

func (m marks) has(i int) bool { return i/64 < len(m) && m[i/64]>>(i%64)&1 == 1 }
