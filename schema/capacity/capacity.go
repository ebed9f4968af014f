// Package capacity computes the volume size that a member needs for its database, a copy of the database, and its log.
package capacity

const (
	// segment is the size of a file of the log, in bytes: server/storage/wal, SegmentSizeBytes. etcd makes each in full.
	segment = 64_000_000
	// kept is how many files of the log etcd keeps although it no longer needs them (--max-wals).
	kept = 5
	// entry is how large an entry of the log is taken to be, in bytes: most are smaller, and one has at most
	// max-request-bytes, 1.5Mi by default.
	entry = 16 << 10
	// overrun is how far a database grows past its quota, in bytes: etcd looks at its size before a batch of writes.
	overrun = 64 << 20
)

// MostEntries is the largest default of --snapshot-count in any release, that of the releases before 3.6.
const MostEntries = 100_000

// Log returns the maximum size of a member's log, in bytes. etcd keeps all entries since the last snapshot, takes a
// snapshot every snapshotCount entries (--snapshot-count), and preallocates the next file.
func Log(snapshotCount int64) int64 {
	return max(kept*segment, snapshotCount*entry+2*segment) + segment
}

// LogLeast returns the minimum size of a member's log, in bytes: the current file and the preallocated next file.
func LogLeast() int64 { return 2 * segment }

// Volume returns the volume size, in bytes, that a database can reach its quota on: it fits the log, the database and a
// copy. Defragmentation writes a copy, and so does a member that receives a snapshot from the leader.
func Volume(quota, snapshotCount int64) int64 {
	return 2*(quota+overrun) + Log(snapshotCount)
}

// Defragmentation returns the minimum volume size, in bytes, for defragmenting a database with the given file size and
// bytes in use: the copy is written beside the file and the log.
func Defragmentation(file, inUse int64) int64 { return file + inUse + LogLeast() }

// Quota returns the largest quota, in bytes, that a volume of the given size fits; 0 or less when no quota fits.
func Quota(size, snapshotCount int64) int64 { return (size-Log(snapshotCount))/2 - overrun }
