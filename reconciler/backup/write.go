package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"

	"gocloud.dev/blob"

	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/backup/manifest"
	"github.com/quorate/quorate/reconciler/compression"
)

// refuseExisting makes sure that neither the object nor its manifest exists.
func (s *object) refuseExisting(ctx context.Context) error {
	for _, key := range []string{s.key, s.key + ManifestSuffix} {
		_, err := s.bucket.Attributes(ctx, key)
		switch {
		case err == nil:
			return s.exists(nil)
		case !s.notFound(err):
			return s.failed(err)
		}
	}
	return nil
}

// upload streams the snapshot into the object, compressed and then encrypted where the
// store is so, and notes in the manifest what it has measured on the way.
func (s *object) upload(ctx context.Context, snapshot io.Reader, m *Manifest) error {
	plain := newSnapshotReader(snapshot)
	stored := &source{}
	err := s.seal(plain, stored, m)
	if err == nil {
		err = s.write(ctx, s.key, stored, condition{})
	}
	if plain.err != nil && !s.muted() && (ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrSilent)) {
		return s.problem(plain.err.text, "take the snapshot again, and if it fails again look at the member's log and disk", plain.err.err)
	}
	if err != nil {
		return s.failed(err)
	}
	sum := plain.sum
	if stored.hash != nil {
		m.SnapshotSize, sum = sum.size, stored.sum()
	}
	m.Size, m.SHA256 = sum.size, sum.sha256
	return nil
}

// seal reads the snapshot as the store keeps it, and says in the manifest how.
func (s *object) seal(plain io.Reader, stored *source, m *Manifest) (err error) {
	m.FormatVersion, m.Compression = manifest.PlainFormat, ""
	m.Encrypted, m.Recipients = len(s.store.Recipients) > 0, s.store.Recipients
	stored.r = plain
	if s.store.Compress {
		var shrinks bool
		if stored.r, shrinks, err = compression.Compress(plain); err != nil {
			return err
		}
		if shrinks {
			m.FormatVersion, m.Compression = FormatVersion, compression.Zstd
		}
	}
	if m.Encrypted {
		if stored.r, err = s.encrypt(stored.r); err != nil {
			return err
		}
	}
	if !m.IsSnapshot() {
		stored.hash = sha256.New()
	}
	return nil
}

// condition says when a write may happen: when nothing is there, or when what is
// there is to be replaced.
type condition struct {
	replace bool
	// apply has the store compare the version that is replaced. nil: any is.
	apply func(as func(any) bool)
}

// sameManifest is the condition that the manifest is still the one of now.
func (s *object) sameManifest(ctx context.Context) (condition, error) {
	attributes, err := s.bucket.Attributes(ctx, s.key+ManifestSuffix)
	if s.notFound(err) {
		return condition{}, s.absent(ctx, err)
	}
	if err != nil {
		return condition{}, s.failed(err)
	}
	only := condition{replace: true}
	if s.bucket.IfUnchanged != nil {
		only.apply = s.bucket.IfUnchanged(attributes)
	}
	return only, nil
}

// write stores what r gives under key, if the condition holds. When r fails,
// nothing may be stored, and the stores differ in how they are told so: Google's and
// Azure's drivers complete the object even then, unless their ctx is cancelled
// before they are closed. An upload of the driver's own is not cancelled, since its
// parts are waited for.
func (s *object) write(ctx context.Context, key string, r io.Reader, only condition) error {
	uploading, cancel := context.WithCancel(ctx)
	defer cancel()
	source := &uploadReader{r: r, fail: cancel}
	options := &blob.WriterOptions{
		BufferSize:     partBytes,
		MaxConcurrency: parallelParts,
		ContentType:    "application/octet-stream",
		IfNotExist:     !only.replace,
		BeforeWrite: func(as func(any) bool) error {
			if as(&source.file) {
				// A snapshot holds every secret of the cluster it was taken from.
				return source.file.Chmod(0o600)
			}
			if only.apply != nil {
				only.apply(as)
			}
			return nil
		},
	}
	if s.bucket.Upload == nil {
		return s.bucket.Bucket.Upload(uploading, key, source, options)
	}
	source.fail = func() {}
	return s.judgeUpload(s.bucket.Upload(ctx, key, source, options), only)
}

// judgeUpload says what an error of a driver's own upload means.
func (s *object) judgeUpload(err error, only condition) error {
	switch code := s.answer(err).Status; {
	case errors.Is(err, driver.ErrExists):
		return s.exists(nil)
	case code == http.StatusPreconditionFailed && only.replace:
		return driver.ErrChanged
	case code == http.StatusPreconditionFailed:
		return s.exists(err)
	case code == http.StatusNotFound:
		return s.noBucket(err)
	}
	return err
}

// uploadReader is what a driver reads an object from.
type uploadReader struct {
	r    io.Reader
	fail func()
	// file is the file that a file store writes to.
	file *os.File
	end  error
}

// Read reports the end by itself, never with data: when it does, the driver has
// written all that came before.
func (u *uploadReader) Read(p []byte) (int, error) {
	if u.end != nil {
		return 0, u.finish()
	}
	n, err := u.r.Read(p)
	u.end = err
	if n > 0 || err == nil {
		return n, nil
	}
	return 0, u.finish()
}

// finish ends the object: a file is put on its disk, since a backup must outlive
// the power cut that may follow it.
func (u *uploadReader) finish() error {
	if errors.Is(u.end, io.EOF) && u.file != nil {
		if err := u.file.Sync(); err != nil {
			u.end = err
		}
	}
	if !errors.Is(u.end, io.EOF) {
		u.fail()
	}
	return u.end
}

// discard removes what this save wrote, and returns the error with what became
// of it. The manifest goes first: none may ever stand without its snapshot.
func (s *object) discard(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	for _, key := range []string{s.key + ManifestSuffix, s.key} {
		if err := s.bucket.Delete(ctx, key); err != nil && !s.notFound(err) {
			return &leftoverError{cause, s.cause(err)}
		}
	}
	return cause
}
