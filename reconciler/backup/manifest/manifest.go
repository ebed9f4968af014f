// Package manifest is what is written beside the snapshot of a backup: its words, its
// form as JSON, and what of it is signed. It knows no store.
package manifest

import (
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup/signing"
)

// FormatVersion is the newest manifest format that this build reads and writes:
//
//	1  the object is the snapshot, or what age made of it
//	2  it may be compressed before that
//
// A quorate that knows 1 alone refuses 2 and says that a newer one wrote it, where it
// would else take a good backup for damaged. What 1 can say is written as 1.
const FormatVersion = 2

// PlainFormat is the format of a backup that is not compressed.
const PlainFormat = 1

// Manifest describes one stored snapshot. It is written last, once the stored
// bytes have been read back: a snapshot without its manifest does not exist.
type Manifest struct {
	// FormatVersion is the format that a reader must know. Set by Save.
	FormatVersion int `json:"formatVersion"`
	// Object is the object URL without its query: where the snapshot was
	// written, and nothing secret. Set by Save.
	Object string `json:"object"`
	// Namespace and Name are those of the cluster.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// ClusterID is etcd's cluster ID in hexadecimal.
	ClusterID string `json:"clusterID,omitempty"`
	// Member is the name of the member that the snapshot was taken from.
	Member string `json:"member,omitempty"`
	// EtcdVersion is the release that this member reported, or of an adopted snapshot
	// the minor that is noted in it, as "3.5.0".
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// StorageVersion is the storage schema that it reported; empty before 3.6.
	StorageVersion string `json:"storageVersion,omitempty"`
	// Revision is the key-value revision read just before the snapshot: what is
	// stored is at this revision or a later one.
	Revision int64 `json:"revision,omitempty"`
	// Hash is etcd's HashKV at HashRevision, computed from CompactRevision on.
	// HashRevision 0 means that no hash was taken.
	Hash            uint32 `json:"hash,omitempty"`
	HashRevision    int64  `json:"hashRevision,omitempty"`
	CompactRevision int64  `json:"compactRevision,omitempty"`
	// Keys is how many keys the member had at HashRevision, or an adopted snapshot at
	// Revision; 0 also where they were not counted.
	Keys int64 `json:"keys,omitempty"`
	// Size of the stored object in bytes: the snapshot with etcd's checksum of 32
	// bytes, or what zstd and age made of it.
	// Set by Save.
	Size int64 `json:"size"`
	// SnapshotSize is the size of the snapshot itself; 0 where it is stored as it is,
	// or was encrypted by a quorate that did not note it. Set by Save.
	SnapshotSize int64 `json:"snapshotSize,omitempty"`
	// Compression is compression.Zstd, or "" where the snapshot is not compressed. Set by Save.
	Compression string `json:"compression,omitempty"`
	// SHA256 of the whole stored object in hexadecimal. Set by Save.
	SHA256 string `json:"sha256"`
	// Encrypted says that the object is a file of age (age-encryption.org), and the
	// snapshot is in it. Recipients are the public keys whose owners can decrypt.
	// Set by Save.
	Encrypted  bool     `json:"encrypted,omitempty"`
	Recipients []string `json:"recipients,omitempty"`
	// Reason is one phrase for people, such as "upgrade 3.5.21 → 3.6.16".
	Reason string `json:"reason,omitempty"`
	// TargetVersion is the release that an upgrade after this backup goes to.
	TargetVersion string `json:"targetVersion,omitempty"`
	// Commit is the Git commit that asked for the backup.
	Commit string `json:"commit,omitempty"`
	// Schedule is the EtcdBackupSchedule that asked for the backup, as
	// "namespace/name"; Request is the name of the EtcdBackup that did.
	Schedule string `json:"schedule,omitempty"`
	Request  string `json:"request,omitempty"`
	// ScheduleUID is the UID of the schedule's record in Kubernetes: schedules of
	// the same name in two Kubernetes clusters may share a place, and none removes
	// what the other has taken.
	ScheduleUID string `json:"scheduleUID,omitempty"`
	// Time is when the snapshot was begun, in UTC.
	Time time.Time `json:"time"`
	// Drill is the newest trial restore. The zero value: there was none. It is not signed.
	Drill Drill `json:"drill,omitzero"`
	// Signature is that of all but itself and Drill; nil for an unsigned
	// manifest. Set by Save.
	Signature *signing.Signature `json:"signature,omitempty"`

	// Forged says that Signature is not that of what the manifest says.
	Forged bool `json:"-"`
	// Origin is Object as the manifest has it, where that is not where it was
	// read: somebody copied the backup here. "" for one that lies where it was
	// written. A copy can be restored, and is never removed by quorate.
	Origin string `json:"-"`
}

// DrillPassed is the Result of a trial restore that found the backup good.
const DrillPassed = "passed"

// Drill is what a trial restore of a backup found.
type Drill struct {
	// Time is when it began, in UTC.
	Time time.Time `json:"time"`
	// Duration from then until the restored etcd had answered: what a real
	// recovery would take.
	Duration time.Duration `json:"durationNanoseconds"`
	// Result is DrillPassed, or a sentence that says what was wrong.
	Result string `json:"result"`
	// Keys, Revision and Hash (HashKV at the manifest's HashRevision) are those of
	// the restored etcd; 0 when it did not come that far.
	Keys     int64  `json:"keys,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Hash     uint32 `json:"hash,omitempty"`
}

// URL is the object URL of a listed backup: its Object with the query of the URL
// that it was listed by, which says how the store is reached.
func (m Manifest) URL(prefixURL string) string {
	if _, query, ok := strings.Cut(prefixURL, "?"); ok {
		return m.Object + "?" + query
	}
	return m.Object
}

// IsSnapshot reports whether the stored object is the snapshot, and nothing that was
// made of it.
func (m Manifest) IsSnapshot() bool { return !m.Encrypted && m.Compression == "" }
