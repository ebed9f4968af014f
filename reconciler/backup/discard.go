package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Discard removes what a Save that was killed left at objectURL: the object, if it
// has no manifest, and in S3 the parts of its upload. Only its maker knows that URL,
// so it must come from a note that was made before that Save, which must not run any
// more. A finished backup is not touched, and is no error; nor is nothing.
func (st Store) Discard(ctx context.Context, objectURL string) error {
	s, ctx, err := st.open(ctx, "discard unfinished backup", objectURL, asking)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.close()
	switch _, err := s.manifestText(ctx); {
	case err == nil:
		return nil
	case !errors.Is(err, ErrNotFound):
		return err
	}
	if err := s.abortUploads(ctx); err != nil {
		return err
	}
	// The Save may run all the same, such as one of a process that was paused: it looks at
	// the object after its manifest, and the manifest is looked at after the object here,
	// so that one of the two removes a manifest without an object.
	for _, key := range []string{s.key, s.key + ManifestSuffix} {
		if err := s.bucket.Delete(ctx, key); err != nil && !s.notFound(err) {
			return s.failed(err)
		}
	}
	return nil
}

// notDiscarded returns an error when the object of a manifest that was just written is gone.
func (s *object) notDiscarded(ctx context.Context) error {
	switch there, err := s.bucket.Exists(ctx, s.key); {
	case err != nil:
		return s.failed(err)
	case !there:
		return s.problem("another process has discarded it meanwhile", "the next backup is taken by the process that is in charge now", nil)
	}
	return nil
}

// abortUploads ends the uploads of the object in S3. Other stores drop unfinished
// ones by themselves, after a week at most.
func (s *object) abortUploads(ctx context.Context) error {
	if s.bucket.AbortUploads == nil {
		return s.removeDrafts()
	}
	if err := s.bucket.AbortUploads(ctx, s.key); err != nil {
		return s.failed(err)
	}
	return nil
}

// removeDrafts removes the files that a file store's upload is written to before it
// gets its name.
func (s *object) removeDrafts() error {
	if s.target.scheme != "file" {
		return nil
	}
	entries, err := os.ReadDir(s.target.bucket)
	if err != nil {
		return s.failed(err)
	}
	for _, entry := range entries {
		stamp, of := strings.CutPrefix(entry.Name(), s.key+".")
		stamp, draft := strings.CutSuffix(stamp, ".tmp")
		if !of || !draft || strings.Contains(stamp, ".") {
			continue
		}
		if err := os.Remove(filepath.Join(s.target.bucket, entry.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return s.failed(err)
		}
	}
	return nil
}
