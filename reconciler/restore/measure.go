package restore

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Measured is what the database in a snapshot says of itself.
type Measured struct {
	// Revision that it has reached, and how many keys there are at it.
	Revision, Keys int64
	// ClusterVersion is the minor that all members of its cluster had, as "3.5.0";
	// StorageVersion that of its storage schema, from 3.6 on. Empty: not in it.
	ClusterVersion, StorageVersion string
}

// Release is the minor of etcd whose data this is, as "3.5.0"; empty if the database
// does not say it. From 3.6 on the storage version says what is in a database.
func (m Measured) Release() string {
	if m.StorageVersion != "" {
		return m.StorageVersion
	}
	return m.ClusterVersion
}

// Measure reads the whole key space of a database that nobody else has open. Memory
// grows with the number of keys, and not with their values.
func Measure(path string) (m Measured, err error) {
	_, m.Revision, err = revisions(path)
	if err != nil {
		return m, err
	}
	err = view(path, func(keys, meta *bolt.Bucket) error {
		m.StorageVersion = string(meta.Get([]byte("storageVersion")))
		if cluster := keys.Tx().Bucket([]byte("cluster")); cluster != nil {
			m.ClusterVersion = string(cluster.Get([]byte("clusterVersion")))
		}
		m.Keys, err = countKeys(keys)
		return err
	})
	return m, err
}

// countKeys counts the keys that are there after the last revision: those that were
// not deleted after they were last written.
func countKeys(keys *bolt.Bucket) (int64, error) {
	live := map[string]struct{}{}
	err := keys.ForEach(func(revision, value []byte) error {
		key, _, err := keyOf(revision, value)
		switch {
		case err != nil:
			return fmt.Errorf("the database is damaged: %w", err)
		case len(key) == 0:
			// By this one a restored cluster begins at a later revision; it is no key.
		case isDeletion(revision):
			delete(live, string(key))
		default:
			live[string(key)] = struct{}{}
		}
		return nil
	})
	return int64(len(live)), err
}
