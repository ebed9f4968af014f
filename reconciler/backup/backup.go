// Package backup keeps etcd snapshots in object stores: it streams them there,
// reads back what was stored, and describes each by a manifest that is written
// last. It knows neither Kubernetes nor etcd's API.
package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gocloud.dev/blob"
)

// FormatVersion is the manifest format that this build writes, and the
// newest that it reads.
const FormatVersion = 1

// ManifestSuffix is added to a snapshot's key to name its manifest.
const ManifestSuffix = ".manifest.json"

// maxManifestBytes bounds what is read of a manifest; a real one is about 1 KiB.
const maxManifestBytes = 1 << 20

// ErrNotFound says that the store answered and holds no manifest at the object
// URL. A store that cannot be asked, refuses or has no such bucket is another
// error: absence must not be concluded from silence.
var ErrNotFound = errors.New("no backup is stored there")

// Manifest describes one stored snapshot. It is written last, once the stored
// bytes have been read back: a snapshot without its manifest does not exist.
type Manifest struct {
	// FormatVersion is FormatVersion of the writer. Set by Save.
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
	// EtcdVersion is the release that this member reported.
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
	// Size of the stored object in bytes, etcd's checksum of 32 bytes included.
	// Set by Save.
	Size int64 `json:"size"`
	// SHA256 of the whole stored object in hexadecimal. Set by Save.
	SHA256 string `json:"sha256"`
	// Reason is one phrase for people, such as "upgrade 3.5.21 → 3.6.16".
	Reason string `json:"reason,omitempty"`
	// TargetVersion is the release that an upgrade after this backup goes to.
	TargetVersion string `json:"targetVersion,omitempty"`
	// Commit is the Git commit that asked for the backup.
	Commit string `json:"commit,omitempty"`
	// Time is when the snapshot was begun, in UTC.
	Time time.Time `json:"time"`
}

// Store says how object stores are reached. The zero value takes credentials from
// the process's environment, as each store's SDK reads it.
type Store struct{}

// Save stores a snapshot stream at objectURL and its manifest beside it,
// and returns the manifest with Object, Size, SHA256 and FormatVersion filled
// in. When it returns no error, the bytes in the store have been read again and
// are those that etcd sent.
//
// Schemes: s3://bucket/key, gs://bucket/key, azblob://container/key and
// file:///dir/key. Credentials come from the process's environment, as each
// store's SDK reads it; an object URL must not contain any. s3 takes endpoint,
// region and the other parameters of gocloud.dev/blob/s3blob; with an endpoint
// and nothing else said, the bucket is put in the path. For file the first
// directory stands for the bucket and must exist, or the one that the parameter
// root names, such as a mount point; directories below it are made.
//
// Nothing is overwritten: an object or a manifest that exists is an error. The
// stream must be a bolt database followed by the sha256 that etcd appends; one
// that is empty, cut short, damaged or fails leaves neither object nor manifest,
// and in S3 no parts of an upload.
//
// Memory does not grow with the snapshot: at most five parts of 5 MiB are held
// at a time, and nothing is put on a local disk. ctx bounds the store's side,
// plus at most twice cleanupTimeout after it has ended. The caller must see to
// it that snapshot.Read returns when ctx ends.
func (st Store) Save(ctx context.Context, objectURL string, snapshot io.Reader, m Manifest) (Manifest, error) {
	s, err := st.open(ctx, "save backup", objectURL, true)
	if err != nil {
		return Manifest{}, err
	}
	defer s.close()
	if err := s.refuseExisting(ctx); err != nil {
		return Manifest{}, err
	}
	sum, err := s.upload(ctx, snapshot)
	if err != nil {
		return Manifest{}, err
	}
	m.FormatVersion, m.Object = FormatVersion, s.target.name
	m.Size, m.SHA256 = sum.size, sum.sha256
	m.Time = m.Time.Round(0).UTC()
	if err := s.confirm(ctx, m); err != nil {
		return Manifest{}, s.discard(ctx, err)
	}
	if err := s.writeManifest(ctx, m); err != nil {
		return Manifest{}, s.discard(ctx, err)
	}
	return m, nil
}

// Verify reads the manifest and the whole object at objectURL, and checks
// that the object is what the manifest says and what etcd sent: size, sha256,
// the checksum that etcd appended, and the database's first page. It returns
// the manifest. Errors: ErrNotFound when there is no manifest; otherwise one
// that says what is wrong. It does not open the database: a trial restore does.
func (st Store) Verify(ctx context.Context, objectURL string) (Manifest, error) {
	s, err := st.open(ctx, "verify backup", objectURL, false)
	if err != nil {
		return Manifest{}, err
	}
	defer s.close()
	m, err := s.readManifest(ctx)
	if err != nil {
		return Manifest{}, err
	}
	return m, s.confirm(ctx, m)
}

// ReadManifest reads the manifest of the backup at objectURL: the cheap way to
// ask whether a backup exists. It does not look at the snapshot. Errors:
// ErrNotFound when the store says that there is none.
func (st Store) ReadManifest(ctx context.Context, objectURL string) (Manifest, error) {
	s, err := st.open(ctx, "read backup manifest", objectURL, false)
	if err != nil {
		return Manifest{}, err
	}
	defer s.close()
	return s.readManifest(ctx)
}

// Sign is a URL by which anybody can read the backup until expiry has passed: a
// restore has no credentials of its own. Stores that give out none are an error.
func (st Store) Sign(ctx context.Context, objectURL string, expiry time.Duration) (string, error) {
	s, err := st.open(ctx, "offer backup", objectURL, false)
	if err != nil {
		return "", err
	}
	defer s.close()
	signed, err := s.bucket.SignedURL(ctx, s.key, &blob.SignedURLOptions{Expiry: expiry})
	if err != nil {
		return "", s.problem("this store gives out no URL by which a pod could read the backup", "put the backup into S3, Google Cloud Storage or Azure, or recover from a member", err)
	}
	return signed, nil
}

// confirm reads the stored object and compares it with the manifest.
func (s *object) confirm(ctx context.Context, m Manifest) error {
	r, err := s.bucket.NewReader(ctx, s.key, nil)
	if notFound(err) {
		return s.problem("the manifest is there but the snapshot is not", "restore the object, or take a new backup", nil)
	}
	if err != nil {
		return s.failed(err)
	}
	check := newSnapshotReader(r)
	// What fails is kept in check.err.
	_, _ = io.Copy(io.Discard, check)
	_ = r.Close()
	if check.err != nil && check.err.err != nil {
		// Here the stream comes from the store, not from etcd: a broken read is
		// the store's failure.
		return s.failed(check.err.err)
	}
	sum := check.sum
	damaged := "this backup cannot be restored: take a new one"
	switch {
	case check.err != nil:
		return s.problem("the stored object is damaged", damaged, check.err)
	case sum.size != m.Size:
		return s.problem(fmt.Sprintf("the stored object has %d bytes and should have %d", sum.size, m.Size), damaged, nil)
	case sum.sha256 != m.SHA256:
		return s.problem(fmt.Sprintf("the stored object has sha256 %s and should have %s", sum.sha256, m.SHA256), damaged, nil)
	}
	return nil
}

// writeManifest stores the manifest and reads it back. What is read decides: a
// write that timed out may have been carried out.
func (s *object) writeManifest(ctx context.Context, m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return s.problem("the manifest cannot be written as JSON", "report this as a bug", err)
	}
	text = append(text, '\n')
	werr := s.write(ctx, s.key+ManifestSuffix, bytes.NewReader(text))
	stored, rerr := s.manifestText(ctx)
	switch {
	case rerr == nil && bytes.Equal(stored, text):
		return nil
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
		return Manifest{}, s.problem("the manifest is not valid JSON", "the backup cannot be trusted: take a new one", err)
	}
	switch {
	case m.FormatVersion > FormatVersion:
		return Manifest{}, s.problem(fmt.Sprintf("the manifest has format %d and this quorate knows %d", m.FormatVersion, FormatVersion), "use the newer quorate that wrote it", nil)
	case m.FormatVersion < 1 || m.SHA256 == "" || m.Size <= 0:
		return Manifest{}, s.problem("the manifest lacks formatVersion, size or sha256", "the backup cannot be trusted: take a new one", nil)
	}
	return m, nil
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
		return nil, s.problem("the manifest is larger than 1 MiB", "it is not quorate's: correct the object URL", nil)
	}
	return text, nil
}
