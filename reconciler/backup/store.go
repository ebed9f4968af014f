package backup

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"gocloud.dev/blob/fileblob"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

const (
	// partBytes is the smallest part that S3 takes. 10,000 parts of it,
	// S3's limit, are 48 GiB: six times the largest quota that etcd advises.
	partBytes = 5 << 20
	// parallelParts is how many parts travel at a time. One more is being filled.
	parallelParts = 2
	// cleanupTimeout bounds the removal of what a failed save left, which must
	// also happen when the caller's ctx has ended.
	cleanupTimeout = driver.CleanupTimeout
)

// object is an open bucket and the one object in it that an operation is
// about.
type object struct {
	store  Store
	op     string
	target target
	bucket *driver.Bucket
	key    string
	// watch ends the call when nothing moves, and ended is called when it has ended.
	watch *watch
	ended func()
}

// open parses the URL, opens its bucket, and bounds the call, whose ctx it returns: every
// call to a store begins here. Only file stores are touched by that; whether the others
// answer shows with the first request.
func (st Store) open(ctx context.Context, op, objectURL string, how access) (s *object, bounded context.Context, err error) {
	t, err := parseURL(op, objectURL)
	if err != nil {
		return nil, ctx, err
	}
	s = &object{store: st, op: op, target: t, key: t.key}
	ctx, err = s.bound(ctx, how != asking)
	if err == nil {
		err = s.openBucket(ctx, how == saving)
	}
	if err != nil {
		s.ended()
		return nil, ctx, err
	}
	return s, ctx, nil
}

// access is what a call does at a store.
type access int

const (
	// asking moves no database, reading reads one, and saving writes one.
	asking access = iota
	reading
	saving
)

// openBucket opens the bucket of the object.
func (s *object) openBucket(ctx context.Context, saving bool) (err error) {
	t := s.target
	if t.scheme == "file" {
		return s.openDirectory(saving)
	}
	d := s.driver()
	if d == nil {
		return s.problem("this program has no driver for the scheme "+t.scheme, "report this as a bug", nil)
	}
	u := &url.URL{Scheme: t.scheme, Host: t.bucket, RawQuery: t.query.Encode()}
	s.bucket, err = d.Open(ctx, u, s.store.access())
	own := (*driver.Problem)(nil)
	switch {
	case errors.As(err, &own):
		return s.problem(own.Problem, own.Next, own.Err)
	case err != nil:
		return s.failed(err)
	}
	return nil
}

// driver returns the driver of the object's store, nil for a directory.
func (s *object) driver() driver.Driver { return s.store.Drivers[s.target.scheme] }

// openDirectory opens a file store. The root must exist, since a missing one is
// an unmounted volume or a typing error; what is below is made when saving.
func (s *object) openDirectory(saving bool) error {
	if info, err := os.Stat(s.target.root); errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir() {
		return s.problem("the directory "+s.target.root+" does not exist", "create or mount it, or correct the object URL", nil)
	} else if err != nil {
		return s.failed(err)
	}
	bucket, err := fileblob.OpenBucket(filepath.FromSlash(s.target.bucket), &fileblob.Options{
		CreateDir:   saving,
		DirFileMode: 0o750,
		NoTempDir:   true,
		Metadata:    fileblob.MetadataDontWrite,
	})
	if errors.Is(err, os.ErrNotExist) {
		return s.noBackup(err)
	}
	if err != nil {
		return s.failed(err)
	}
	s.bucket = &driver.Bucket{Bucket: bucket}
	s.answered()
	return nil
}

// close releases the bucket. Nothing is pending then, so its error says nothing
// about the backup.
func (s *object) close() {
	_ = s.bucket.Close()
	if s.bucket.CloseIdle != nil {
		s.bucket.CloseIdle()
	}
	s.ended()
}
