// Package backup keeps etcd snapshots in object stores: it streams them there,
// reads back what was stored, and describes each by a manifest that is written
// last. It knows neither Kubernetes nor etcd's API.
package backup

import (
	"context"
	"errors"
	"io"
	"time"

	"gocloud.dev/blob"

	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/backup/signing"
)

// ErrNotFound says that the store answered and holds no manifest at the object
// URL. A store that cannot be asked, refuses or has no such bucket is another
// error: absence must not be concluded from silence.
var ErrNotFound = errors.New("no backup is stored there")

// ErrDamaged says that the store gave an object, and that it is not what its manifest
// says. A read that broke off is another error.
var ErrDamaged = errors.New("the stored object is damaged")

// Store says how object stores are reached, and who can read what is kept there.
// The zero value takes credentials from the process's environment, as each store's
// SDK reads it, and keeps snapshots as etcd sent them.
type Store struct {
	// Credentials are the data of a Secret, as schema.CredentialsSpec documents its
	// keys. nil, or with the key ca.crt alone: the process's environment is used. A
	// file store needs none.
	Credentials map[string][]byte
	// CA has certificates, in PEM, of CAs to trust besides the system's. Default: the
	// key ca.crt of Credentials.
	CA []byte
	// Compress says that snapshots are stored compressed, as zstd does it. What is read
	// is decompressed as its manifest says, in any case.
	Compress bool
	// Recipients are age's public keys of those who can decrypt. Default: snapshots
	// are not encrypted by quorate.
	Recipients []string
	// Identity is age's private key, as age-keygen writes it, for reading encrypted
	// snapshots. Without it, Verify checks the bytes that are stored, and not what is
	// in them.
	Identity string
	// Key signs the manifests that Save and Adopt write. nil: they are not signed.
	Key *signing.Key
	// Drivers are those of the stores that are no directories, which are read and written without one.
	Drivers driver.Set
	// Calls says how long and how often stores are called. Default: with the defaults of
	// each.
	Calls *Calls
}

// Save stores a snapshot stream at objectURL and its manifest beside it,
// and returns the manifest with what Save sets in it filled
// in. When it returns no error, the bytes in the store have been read again and
// are those that etcd sent.
//
// Schemes: s3://bucket/key, gs://bucket/key, azblob://container/key and
// file:///dir/key. An object URL must not contain credentials. s3 takes endpoint,
// region and the other parameters of gocloud.dev/blob/s3blob; with an endpoint
// and nothing else said, the bucket is put in the path. For file the first
// directory stands for the bucket and must exist, or the one that the parameter
// root names, such as a mount point; directories below it are made.
//
// With an endpoint the store need not speak all of S3: no checksums are sent but those
// that it must have (request_checksum_calculation=when_supported in the URL sends them),
// and where it knows no conditional writes, it is asked what is there just before.
//
// Nothing is overwritten: an object or a manifest that exists is an error. The
// stream must be a bolt database followed by the sha256 that etcd appends; one
// that is empty, cut short, damaged or fails leaves neither object nor manifest,
// and in S3 no parts of an upload.
//
// Memory does not grow with the snapshot: at most three parts of 5 MiB are held
// at a time, and compression takes 4 MiB. Nothing is put on a local disk. It ends when
// nothing moves for the stall time of Calls, and ctx bounds the store's side, plus at
// most twice cleanupTimeout after that. The caller must see to it that snapshot.Read
// returns when ctx ends, which is best that of Calls.Watch.
func (st Store) Save(ctx context.Context, objectURL string, snapshot io.Reader, m Manifest) (Manifest, error) {
	s, ctx, err := st.open(ctx, "save backup", objectURL, saving)
	if err != nil {
		return Manifest{}, err
	}
	defer s.close()
	if err := s.quickly(ctx, s.refuseExisting); err != nil {
		return Manifest{}, err
	}
	if err := s.upload(ctx, s.watch.snapshot(ctx, snapshot), &m); err != nil {
		return Manifest{}, err
	}
	m.Object, m.Time = s.target.name, m.Time.Round(0).UTC()
	if err := s.confirm(ctx, m); err != nil {
		return Manifest{}, s.discard(ctx, err)
	}
	if err := s.writeManifest(ctx, &m); err != nil {
		return Manifest{}, s.discard(ctx, err)
	}
	if err := s.notDiscarded(ctx); err != nil {
		return Manifest{}, s.discard(ctx, err)
	}
	s.saved()
	return m, nil
}

// Verify reads the manifest and the whole object at objectURL, and checks
// that the object is what the manifest says and what etcd sent: size, sha256,
// the checksum that etcd appended, and the database's first page. It returns
// the manifest. Errors: ErrNotFound when there is no manifest; ErrDamaged when the object
// is another; otherwise one that says what is wrong. It does not open the database: a trial restore does.
func (st Store) Verify(ctx context.Context, objectURL string) (Manifest, error) {
	s, ctx, err := st.open(ctx, "verify backup", objectURL, reading)
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

// Open reads the snapshot of the backup at objectURL, as etcd sent it: decrypted if it
// is encrypted, for which the Store needs the Identity, and decompressed. The stream is checked on the way: one that
// is not what the manifest says ends with an error in place of io.EOF, and nothing
// of it may be used. Close may be called at any time. Errors: as for Verify.
func (st Store) Open(ctx context.Context, objectURL string) (io.ReadCloser, Manifest, error) {
	s, ctx, err := st.open(ctx, "read backup", objectURL, reading)
	if err != nil {
		return nil, Manifest{}, err
	}
	m, err := s.readManifest(ctx)
	if err != nil {
		s.close()
		return nil, Manifest{}, err
	}
	r, err := s.openStored(ctx, m, true)
	if err != nil {
		s.close()
		return nil, Manifest{}, err
	}
	return r, m, nil
}

// ReadManifest reads the manifest of the backup at objectURL: the cheap way to
// ask whether a backup exists. It does not look at the snapshot. Errors:
// ErrNotFound when the store says that there is none.
func (st Store) ReadManifest(ctx context.Context, objectURL string) (Manifest, error) {
	s, ctx, err := st.open(ctx, "read backup manifest", objectURL, asking)
	if err != nil {
		return Manifest{}, err
	}
	defer s.close()
	return s.readManifest(ctx)
}

// Sign is a URL by which anybody can read the backup until expiry has passed: a
// restore has no credentials of its own. Stores that give out none are an error.
func (st Store) Sign(ctx context.Context, objectURL string, expiry time.Duration) (string, error) {
	const op = "offer backup"
	const problem, next = "this store gives out no URL by which a pod could read the backup", "put the backup into S3, Google Cloud Storage or Azure, or recover from a member"
	if t, err := parseURL(op, objectURL); err == nil && t.scheme == "file" {
		return "", (&object{op: op, target: t}).problem(problem, next, nil)
	}
	s, ctx, err := st.open(ctx, op, objectURL, asking)
	if err != nil {
		return "", err
	}
	defer s.close()
	signed, err := s.bucket.SignedURL(ctx, s.key, &blob.SignedURLOptions{Expiry: expiry})
	if err != nil && s.muted() {
		return "", s.silent()
	}
	if err != nil {
		return "", s.problem(problem, next, err)
	}
	return signed, nil
}
