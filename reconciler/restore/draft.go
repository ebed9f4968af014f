package restore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// The buckets of a database that grow with what clients keep. etcd's code for restoring
// reads none of them, but for the last revision in the bucket key.
const (
	bucketKey   = "key"
	bucketLease = "lease"
)

// restoreInPlace makes the data directory draft out of the database at path, which it
// moves there: the volume needs room for one copy of it. etcd's own code copies what it
// restores, so it is given a database without what clients keep, and what it makes of
// the rest is written back.
func restoreInPlace(path, draft string, config snapshot.RestoreConfig, log *zap.Logger) error {
	small := path + ".small"
	defer func() { _ = os.Remove(small) }()
	if err := makeWay(small); err != nil {
		return err
	}
	if err := withDatabases(path, small, copySmall); err != nil {
		return unfit(err)
	}
	config.SnapshotPath, config.OutputDataDir, config.SkipHashCheck = small, draft, true
	if err := snapshot.NewV3(log).Restore(config); err != nil {
		return unfit(err)
	}
	made := filepath.Join(draft, "member", "snap", "db")
	if err := withDatabases(made, path, writeBack); err != nil {
		return err
	}
	return os.Rename(path, made)
}

// withDatabases opens one database to read and another one to write.
func withDatabases(from, to string, do func(from, to *bolt.Tx) error) error {
	source, err := bolt.Open(from, 0o400, &bolt.Options{ReadOnly: true, Timeout: boltTimeout})
	if err != nil {
		return fmt.Errorf("open the database %s: %w", from, err)
	}
	defer func() { _ = source.Close() }()
	// As etcd opens it.
	target, err := bolt.Open(to, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, Timeout: boltTimeout})
	if err != nil {
		return fmt.Errorf("open the database %s: %w", to, err)
	}
	err = source.View(func(read *bolt.Tx) error {
		return target.Update(func(write *bolt.Tx) error { return do(read, write) })
	})
	return errors.Join(err, target.Close())
}

// boltTimeout bounds the wait for a database that somebody else has open.
const boltTimeout = 10 * time.Second

// copySmall copies all buckets, of the keys the last one without its value, and no lease.
func copySmall(from, to *bolt.Tx) error {
	return from.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		if string(name) == bucketLease {
			return nil
		}
		made, err := to.CreateBucket(name)
		if err != nil {
			return err
		}
		if string(name) != bucketKey {
			return copyPairs(bucket, made)
		}
		if last, _ := bucket.Cursor().Last(); last != nil {
			return made.Put(last, nil)
		}
		return nil
	})
}

// writeBack replaces the buckets of a database by those that etcd has made of them, and
// adds the revisions that it has added.
func writeBack(from, to *bolt.Tx) error {
	return from.ForEach(func(name []byte, made *bolt.Bucket) error {
		if string(name) == bucketKey {
			return addRevisions(made, to.Bucket(name))
		}
		if to.Bucket(name) != nil {
			if err := to.DeleteBucket(name); err != nil {
				return err
			}
		}
		bucket, err := to.CreateBucket(name)
		if err != nil {
			return err
		}
		return copyPairs(made, bucket)
	})
}

// addRevisions adds to the keys what is not among them.
func addRevisions(from, to *bolt.Bucket) error {
	return from.ForEach(func(revision, value []byte) error {
		if to.Get(revision) != nil {
			return nil
		}
		return to.Put(revision, value)
	})
}

func copyPairs(from, to *bolt.Bucket) error { return from.ForEach(to.Put) }

// copyDatabase copies the database of a stopped member, which stays as it is.
func copyDatabase(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// takeChecksumOff compares a snapshot with the checksum that etcd sends at its end, and
// leaves the database.
func takeChecksumOff(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(takeOff(f), f.Close())
}

func takeOff(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size() - sha256.Size
	if size <= 0 || size%smallestPage != 0 {
		return fmt.Errorf("%w: it has %d bytes, and a snapshot that etcd sends is a database and its checksum", ErrUnfit, info.Size())
	}
	hash, said := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(hash, f, size); err != nil {
		return err
	}
	if _, err := io.ReadFull(f, said); err != nil {
		return err
	}
	if got := hash.Sum(nil); !bytes.Equal(got, said) {
		return fmt.Errorf("%w: its checksum is %x, and etcd sent %x", ErrUnfit, got, said)
	}
	return f.Truncate(size)
}

// smallestPage divides the size of each database: etcd itself tells by it whether there
// is a checksum.
const smallestPage = 512
