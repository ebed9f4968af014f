package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/quorate/quorate/reconciler/compression"
)

// storedReader reads the snapshot in a stored object, decrypted where it can be and
// decompressed, and checks the object against its manifest. In place of the end of a bad one it
// returns an error.
type storedReader struct {
	s      *object
	m      Manifest
	body   io.Reader
	stored *source
	// plain is nil for an encrypted object that is read as it is stored.
	plain *snapshotReader
	close func() error
}

// openStored opens the object of a manifest. An encrypted one is decrypted when
// the store has a private key, or must be.
func (s *object) openStored(ctx context.Context, m Manifest, mustDecrypt bool) (*storedReader, error) {
	raw, err := s.bucket.NewReader(ctx, s.key, nil)
	if s.notFound(err) {
		return nil, s.problem("the manifest is there but the snapshot is not", "restore the object, or take a new backup", nil)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	r := &storedReader{s: s, m: m, stored: &source{r: s.watch.reader(ctx, raw)}, close: raw.Close}
	r.body = r.stored
	if !m.IsSnapshot() {
		r.stored.hash = sha256.New()
	}
	if m.Encrypted && !mustDecrypt && s.store.Identity == "" {
		return r, nil
	}
	if err := r.unseal(); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return r, nil
}

// unseal has the snapshot read, and not what is stored of it.
func (r *storedReader) unseal() (err error) {
	if r.m.Encrypted {
		if r.body, err = r.s.decrypt(r.m, r.stored); err != nil {
			return err
		}
	}
	if r.body, err = compression.Decompress(r.body, r.m.Compression); err != nil {
		return r.s.problem("the snapshot cannot be decompressed", "report this as a bug", err)
	}
	r.plain = newSnapshotReader(r.body)
	r.body = r.plain
	return nil
}

func (r *storedReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil {
		err = r.judge(err)
	}
	return n, err
}

// Close ends the reading. What was not read to its end was not checked.
func (r *storedReader) Close() error {
	err := r.close()
	r.s.close()
	return err
}

// judge says what the end of the stream means.
func (r *storedReader) judge(end error) error {
	switch {
	case r.stored.err != nil:
		// A broken read is the store's failure, not damage.
		return r.s.failed(r.stored.err)
	case !errors.Is(end, io.EOF):
		return r.s.damaged("the stored object is damaged", end)
	}
	sum := r.sum()
	switch {
	case sum.size != r.m.Size:
		return r.s.damaged(fmt.Sprintf("the stored object has %d bytes and should have %d", sum.size, r.m.Size), nil)
	case sum.sha256 != r.m.SHA256:
		return r.s.damaged(fmt.Sprintf("the stored object has sha256 %s and should have %s", sum.sha256, r.m.SHA256), nil)
	case r.plain != nil && r.m.SnapshotSize > 0 && r.plain.sum.size != r.m.SnapshotSize:
		return r.s.damaged(fmt.Sprintf("the snapshot in the stored object has %d bytes and should have %d", r.plain.sum.size, r.m.SnapshotSize), nil)
	}
	return io.EOF
}

// sum is what was measured of the stored object, read to its end.
func (r *storedReader) sum() snapshotSum {
	if r.m.IsSnapshot() {
		return r.plain.sum
	}
	return r.stored.sum()
}

// confirm reads the stored object and compares it with the manifest.
func (s *object) confirm(ctx context.Context, m Manifest) error {
	r, err := s.openStored(ctx, m, false)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	_ = r.close()
	return err
}
