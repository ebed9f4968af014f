package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gocloud.dev/gcerrors"

	"github.com/quorate/quorate/reconciler/compression"
)

// FormatVersion is the newest manifest format that this build reads and writes:
//
//	1  the object is the snapshot, or what age made of it
//	2  it may be compressed before that
//
// A quorate that knows 1 alone refuses 2 and says that a newer one wrote it, where it
// would else take a good backup for damaged. What 1 can say is written as 1.
const FormatVersion = 2

// plainFormat is the format of a backup that is not compressed.
const plainFormat = 1

// ManifestSuffix is added to a snapshot's key to name its manifest.
const ManifestSuffix = ".manifest.json"

// maxManifestBytes bounds what is read of a manifest; a real one is about 1 KiB.
const maxManifestBytes = 1 << 20

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
	// Revision; 0 also where nobody counted.
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
	// Drill is the newest trial restore. The zero value: there was none.
	Drill Drill `json:"drill,omitzero"`

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

// errBadManifest says that a manifest was read and makes no sense.
var errBadManifest = errors.New("bad manifest")

// writeManifest stores the manifest and reads it back. What is read decides: a
// write that timed out may have been applied.
func (s *object) writeManifest(ctx context.Context, m Manifest, only condition) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return s.problem("the manifest cannot be written as JSON", "report this as a bug", err)
	}
	text = append(text, '\n')
	werr := s.write(ctx, s.key+ManifestSuffix, bytes.NewReader(text), only)
	stored, rerr := s.manifestText(ctx)
	switch {
	case rerr == nil && bytes.Equal(stored, text):
		return nil
	case only.replace && (gcerrors.Code(werr) == gcerrors.FailedPrecondition || errors.Is(werr, errChanged)):
		return errChanged
	case werr != nil:
		return s.failed(werr)
	case rerr != nil:
		return rerr
	}
	return s.problem("the manifest reads back different from what was written", "look at what else writes there, then take a new backup", nil)
}

// readManifest reads and decodes the manifest.
func (s *object) readManifest(ctx context.Context) (Manifest, error) {
	text, err := s.manifestText(ctx)
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, s.badManifest("the manifest is not valid JSON: "+s.cause(err), "the backup cannot be trusted: take a new one")
	}
	switch {
	case m.FormatVersion > FormatVersion:
		return Manifest{}, s.badManifest(fmt.Sprintf("the manifest has format %d and this quorate knows %d", m.FormatVersion, FormatVersion), "use the newer quorate that wrote it")
	case m.Compression != "" && m.Compression != compression.Zstd:
		return Manifest{}, s.badManifest(fmt.Sprintf("the backup is compressed by %q, which this quorate does not know", m.Compression), "use the newer quorate that wrote it")
	case m.FormatVersion < 1 || m.SHA256 == "" || m.Size <= 0:
		return Manifest{}, s.badManifest("the manifest lacks formatVersion, size or sha256", "the backup cannot be trusted: take a new one")
	}
	if m.Object != s.target.name {
		m.Origin, m.Object = m.Object, s.target.name
	}
	return m, nil
}

func (s *object) badManifest(problem, next string) error {
	return &storeError{op: s.op, object: s.target.name, problem: problem, next: next, err: errBadManifest}
}

// manifestText reads the manifest's bytes.
func (s *object) manifestText(ctx context.Context) ([]byte, error) {
	r, err := s.bucket.NewReader(ctx, s.key+ManifestSuffix, nil)
	if notFound(err) {
		return nil, s.absent(ctx, err)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxManifestBytes+1))
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return nil, s.failed(err)
	case len(text) > maxManifestBytes:
		return nil, s.badManifest("the manifest is larger than 1 MiB", "it is not quorate's: correct the object URL")
	}
	return text, nil
}

// annotateTries bounds how often a change of a manifest is tried when others change
// it at the same time.
const annotateTries = 5

// Annotate changes what the manifest at objectURL says about the backup, and nothing
// of what says which bytes it is. Where the store can compare and swap (all but
// file), no change of another is lost: change may be called again, with the newer
// manifest. A manifest stands at any time, the old one or the new.
func (st Store) Annotate(ctx context.Context, objectURL string, change func(*Manifest)) error {
	s, ctx, err := st.open(ctx, "annotate backup", objectURL, asking)
	if err != nil {
		return err
	}
	defer s.close()
	for range annotateTries {
		var lost bool
		if lost, err = s.annotate(ctx, change); !lost {
			return err
		}
	}
	return s.problem("the manifest changes all the time", "look at what else writes there", err)
}

// annotate tries it once. lost says that another was faster.
func (s *object) annotate(ctx context.Context, change func(*Manifest)) (lost bool, err error) {
	// The version is read before the text: a change in between is found, not lost.
	only, err := s.sameManifest(ctx)
	if err != nil {
		return false, err
	}
	old, err := s.readManifest(ctx)
	if err != nil {
		return false, err
	}
	m := old
	change(&m)
	m.FormatVersion, m.Size, m.SHA256 = old.FormatVersion, old.Size, old.SHA256
	m.SnapshotSize, m.Compression = old.SnapshotSize, old.Compression
	m.Encrypted, m.Recipients = old.Encrypted, old.Recipients
	// A copy stays one.
	m.Object = cmp.Or(old.Origin, old.Object)
	err = s.writeManifest(ctx, m, only)
	return errors.Is(err, errChanged), err
}
