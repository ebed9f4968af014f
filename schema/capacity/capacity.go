// Package capacity says how much room a member needs on its volume: for its database, for a copy of that, and for its log.
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

// MostEntries is the largest number of entries before a snapshot that any release has by default: that of those before 3.6.
const MostEntries = 100_000

// Log is how much the log of a member takes at most, in bytes: etcd keeps the entries since the last snapshot, one
// snapshot for so many entries (--snapshot-count), and has the next file ready.
func Log(snapshotCount int64) int64 {
	return max(kept*segment, snapshotCount*entry+2*segment) + segment
}

// LogLeast is how much it takes at least: the file that is written, and the next.
func LogLeast() int64 { return 2 * segment }

// Volume is the size, in bytes, at which a volume is not full before a database reaches its quota: it has room for the
// log, for the database, and for a copy of that. A defragmentation writes one, and so does a member that gets the
// database of another one.
func Volume(quota, snapshotCount int64) int64 {
	return 2*(quota+overrun) + Log(snapshotCount)
}

// Defragmentation is the size, in bytes, below which a volume has no room for a defragmentation of a database whose file
// has a size, and of which some is in use: the copy that it writes stands beside the file and the log.
func Defragmentation(file, inUse int64) int64 { return file + inUse + LogLeast() }

// Quota is the largest quota, in bytes, for which a volume of a size is large enough; not above 0 where there is none.
func Quota(size, snapshotCount int64) int64 { return (size-Log(snapshotCount))/2 - overrun }
