package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/gcerrors"

	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/backup/manifest"
	"github.com/quorate/quorate/reconciler/compression"
)

// ManifestSuffix is added to a snapshot's key to name its manifest.
const ManifestSuffix = ".manifest.json"

// maxManifestBytes bounds what is read of a manifest; a real one is about 1 KiB.
const maxManifestBytes = 1 << 20

type (
	// Manifest describes one stored snapshot.
	Manifest = manifest.Manifest
	// Drill is what a trial restore of a backup found.
	Drill = manifest.Drill
	// Verified is what the restore step must know of a backup.
	Verified = manifest.Verified
)

const (
	// FormatVersion is the newest manifest format that this build reads and writes.
	FormatVersion = manifest.FormatVersion
	// DrillPassed is the Result of a trial restore that found the backup good.
	DrillPassed = manifest.DrillPassed
)

// errBadManifest says that a manifest was read and makes no sense.
var errBadManifest = errors.New("bad manifest")

// writeManifest signs the manifest, where the store has a key for that, and stores it.
func (s *object) writeManifest(ctx context.Context, m *Manifest) error {
	err := m.Sign(s.store.Key)
	var text []byte
	if err == nil {
		text, err = m.Encode()
	}
	if err != nil {
		return s.problem("the manifest cannot be written as JSON", "report this as a bug", err)
	}
	return s.writeText(ctx, text, condition{})
}

// writeText stores a manifest and reads it back. What is read decides: a write that
// timed out may have been applied.
func (s *object) writeText(ctx context.Context, text []byte, only condition) error {
	werr := s.write(ctx, s.key+ManifestSuffix, bytes.NewReader(text), only)
	stored, rerr := s.manifestText(ctx)
	switch {
	case rerr == nil && bytes.Equal(stored, text):
		return nil
	case only.replace && (gcerrors.Code(werr) == gcerrors.FailedPrecondition || errors.Is(werr, driver.ErrChanged)):
		return driver.ErrChanged
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
	return s.decode(text)
}

func (s *object) decode(text []byte) (Manifest, error) {
	m, err := manifest.Decode(text)
	if err != nil {
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
	if s.notFound(err) {
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
	return st.rewrite(ctx, "annotate backup", objectURL, func(_ *object, text []byte, old Manifest) ([]byte, error) {
		m := old
		change(&m)
		m.FormatVersion, m.Size, m.SHA256 = old.FormatVersion, old.Size, old.SHA256
		m.SnapshotSize, m.Compression = old.SnapshotSize, old.Compression
		m.Encrypted, m.Recipients, m.Signature = old.Encrypted, old.Recipients, old.Signature
		m.Object = old.Object // a copy stays one
		return manifest.Edit(text, old, m)
	})
}

// SignManifest signs the manifest that somebody else has written, if it is the one with
// this digest, see manifest.Digest. One that is signed already is left as it is.
func (st Store) SignManifest(ctx context.Context, objectURL, digest string) error {
	return st.rewrite(ctx, "sign backup manifest", objectURL, func(s *object, text []byte, old Manifest) ([]byte, error) {
		is, err := manifest.Digest(text)
		switch {
		case err != nil || old.Signature != nil:
			return nil, err
		case is != digest:
			return nil, s.problem("the manifest is not the one that was written", "look at who else writes to the store, and take a new backup", nil)
		}
		return manifest.SignText(text, st.Key)
	})
}

// rewrite changes a manifest that is stored; to nil says that it stays.
func (st Store) rewrite(ctx context.Context, op, objectURL string, change func(s *object, text []byte, old Manifest) ([]byte, error)) error {
	s, ctx, err := st.open(ctx, op, objectURL, asking)
	if err != nil {
		return err
	}
	defer s.close()
	for range annotateTries {
		if err = s.rewriteOnce(ctx, change); !errors.Is(err, driver.ErrChanged) {
			return err
		}
	}
	return s.problem("the manifest changes all the time", "look at what else writes there", err)
}

// rewriteOnce tries it once. driver.ErrChanged says that another was faster.
func (s *object) rewriteOnce(ctx context.Context, change func(s *object, text []byte, old Manifest) ([]byte, error)) error {
	// The version is read before the text: a change in between is found, not lost.
	only, err := s.sameManifest(ctx)
	if err != nil {
		return err
	}
	text, err := s.manifestText(ctx)
	if err != nil {
		return err
	}
	old, err := s.decode(text)
	if err == nil {
		text, err = change(s, text, old)
	}
	if err != nil || text == nil {
		return err
	}
	return s.writeText(ctx, text, only)
}
