package backup

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // the scheme azblob
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/gcsblob" // the scheme gs
	"gocloud.dev/blob/s3blob"
)

const (
	// partBytes is the smallest part that S3 takes. 10,000 parts of it,
	// S3's limit, are 48 GiB: six times the largest quota that etcd advises.
	partBytes = 5 << 20
	// parallelParts is how many parts travel at a time. The S3 client holds
	// one more being filled, and the first part twice while it grows.
	parallelParts = 2
	// cleanupTimeout bounds the removal of what a failed save left, which must
	// also happen when the caller's ctx has ended.
	cleanupTimeout = 10 * time.Second
)

// target is an object URL taken apart.
type target struct {
	scheme string
	// bucket is the bucket or container; for file, the object's directory.
	bucket string
	// root is, for file only, the directory that must exist.
	root string
	key  string
	// name is the URL without its query, as errors and manifests show it.
	name  string
	query url.Values
}

// parseURL takes an object URL apart. Its errors repeat nothing of a URL
// that may hold a secret.
func parseURL(op, objectURL string) (target, error) {
	bad := func(problem string) (target, error) {
		return target{}, &storeError{op: op, object: "object URL", problem: problem, next: "write it as s3://bucket/key?endpoint=…&region=…, gs://bucket/key, azblob://container/key or file:///dir/key"}
	}
	u, err := url.Parse(objectURL)
	if err != nil {
		return bad("it is not a URL")
	}
	if u.User != nil {
		return bad("it contains credentials, which belong in quorate's environment")
	}
	t := target{scheme: u.Scheme, bucket: u.Host, key: strings.TrimPrefix(u.Path, "/"), query: u.Query()}
	t.name = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	switch {
	case t.key == "" || path.Clean("/"+t.key) != "/"+t.key:
		return bad("its path is not a plain key: empty, or with //, /./, /../ or / at its end")
	case t.query.Has("prefix") || t.query.Has("key"):
		// The blob package would read these two as a second way to say the key.
		return bad("it has the parameter prefix or key, but the key is its path")
	}
	switch u.Scheme {
	case "s3":
		if problem := prepareS3Query(t.query); problem != "" {
			return bad(problem)
		}
	case "file":
		return fileTarget(t, bad)
	case "gs", "azblob":
	default:
		return bad("its scheme is not s3, gs, azblob or file")
	}
	if t.bucket == "" {
		return bad("it names no bucket")
	}
	return t, nil
}

// prepareS3Query checks the endpoint and puts the bucket in the path: with an
// endpoint of one's own, bucket.HOST rarely resolves, and never for an IP. It
// also turns off the SDK's own check of what it reads: sha256 is checked here,
// and says damage where the SDK would say that the request failed.
func prepareS3Query(q url.Values) (problem string) {
	if !q.Has("response_checksum_validation") {
		q.Set("response_checksum_validation", "when_required")
	}
	if !q.Has("endpoint") {
		return ""
	}
	e, err := url.Parse(q.Get("endpoint"))
	switch {
	case err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https":
		return "its endpoint is not an http or https URL"
	case e.User != nil:
		return "its endpoint contains credentials, which belong in quorate's environment"
	}
	if !q.Has("use_path_style") && !q.Has("s3ForcePathStyle") {
		q.Set("use_path_style", "true")
	}
	return ""
}

// fileTarget fills in a file URL. Its blob bucket is the object's own directory,
// so that looking for one object never walks another's.
func fileTarget(t target, bad func(string) (target, error)) (target, error) {
	full := "/" + t.key
	first, _, nested := strings.Cut(t.key, "/")
	t.root = "/" + first
	if t.query.Has("root") {
		t.root = path.Clean(t.query.Get("root"))
	}
	switch {
	case t.bucket != "":
		return bad("a file URL has three slashes: file:///dir/key")
	case !nested:
		return bad("it names no directory")
	case !strings.HasPrefix(full, strings.TrimSuffix(t.root, "/")+"/"):
		return bad("its path is not below its root")
	}
	for param := range t.query {
		if param != "root" {
			return bad("a file URL takes no parameter but root")
		}
	}
	t.bucket, t.key = path.Dir(full), path.Base(full)
	return t, nil
}

// object is an open bucket and the one object in it that an operation is
// about.
type object struct {
	op     string
	target target
	bucket *blob.Bucket
	key    string
}

// open parses the URL and opens its bucket. Only file stores are
// touched by that; whether the others answer shows with the first request.
func (Store) open(ctx context.Context, op, objectURL string, saving bool) (*object, error) {
	t, err := parseURL(op, objectURL)
	if err != nil {
		return nil, err
	}
	s := &object{op: op, target: t, key: t.key}
	u := &url.URL{Scheme: t.scheme, Host: t.bucket, RawQuery: t.query.Encode()}
	switch t.scheme {
	case "file":
		return s, s.openDirectory(saving)
	case "s3":
		s.bucket, err = new(s3blob.URLOpener).OpenBucketURL(ctx, u)
	default:
		// The opener keeps a token source for the process's lifetime, and that
		// keeps this ctx: one with a deadline would fail the next backup.
		s.bucket, err = blob.DefaultURLMux().OpenBucketURL(context.WithoutCancel(ctx), u)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	return s, nil
}

// openDirectory opens a file store. The root must exist, since a missing one is
// an unmounted volume or a typing error; what is below is made when saving.
func (s *object) openDirectory(saving bool) error {
	if info, err := os.Stat(s.target.root); errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir() {
		return s.problem("the directory "+s.target.root+" does not exist", "create or mount it, or correct the object URL", nil)
	} else if err != nil {
		return s.failed(err)
	}
	var err error
	s.bucket, err = fileblob.OpenBucket(filepath.FromSlash(s.target.bucket), &fileblob.Options{
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
	return nil
}

// close releases the bucket. Nothing is pending then, so its error says nothing
// about the backup.
func (s *object) close() { _ = s.bucket.Close() }

// refuseExisting makes sure that neither the object nor its manifest exists.
func (s *object) refuseExisting(ctx context.Context) error {
	for _, key := range []string{s.key, s.key + ManifestSuffix} {
		_, err := s.bucket.Attributes(ctx, key)
		switch {
		case err == nil:
			return s.exists(nil)
		case !notFound(err):
			return s.failed(err)
		}
	}
	return nil
}

// upload streams the snapshot into the object and measures it on the way.
func (s *object) upload(ctx context.Context, snapshot io.Reader) (snapshotSum, error) {
	r := newSnapshotReader(snapshot)
	err := s.write(ctx, s.key, r)
	if r.err != nil {
		return r.sum, s.problem(r.err.text, "take the snapshot again, and if it fails again look at the member's log and disk", r.err.err)
	}
	if err != nil {
		return r.sum, s.failed(err)
	}
	return r.sum, nil
}

// write stores what r gives under key, if nothing is there. When r fails,
// nothing may be stored, and the drivers differ in how they are told so: S3's
// ends its parts and aborts when it reads the error; the others complete the
// object even then, unless their ctx is cancelled before they are closed.
// Cancelling S3 as well would let the abort overtake the parts under way, which
// then stay.
func (s *object) write(ctx context.Context, key string, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	source := &uploadReader{r: r, fail: cancel}
	if s.target.scheme == "s3" {
		source.fail = func() {}
	}
	err := s.bucket.Upload(ctx, key, source, &blob.WriterOptions{
		BufferSize:     partBytes,
		MaxConcurrency: parallelParts,
		ContentType:    "application/octet-stream",
		IfNotExist:     true,
		BeforeWrite:    s.tuneWriter(source),
	})
	if err != nil && ctx.Err() != nil {
		s.abortAgain(ctx, key, err)
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

// abortAgain repeats the abort of an S3 upload whose ctx has ended: parts that
// were under way then may have come to the store after the first abort.
func (s *object) abortAgain(ctx context.Context, key string, err error) {
	var client *s3.Client
	var failed interface {
		error
		UploadID() string
	}
	if !errors.As(err, &failed) || !s.bucket.As(&client) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	id := failed.UploadID()
	for range 3 {
		time.Sleep(200 * time.Millisecond)
		// Its error is no news: the upload is most often gone.
		_, _ = client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.target.bucket, Key: &key, UploadId: &id})
	}
}

// tuneWriter reaches through the blob package to the drivers. Of a file store it
// takes the file. For S3 it replaces the uploader by one that aborts a failed
// upload under a fresh ctx, where the default would use the cancelled one and
// leave the parts to be paid for, and that buffers 5 MiB at first, not 16.
func (s *object) tuneWriter(source *uploadReader) func(func(any) bool) error {
	return func(as func(any) bool) error {
		if as(&source.file) {
			// A snapshot holds every secret of the cluster it was taken from.
			return source.file.Chmod(0o600)
		}
		var client *s3.Client
		var uploader *transfermanager.Client
		if !s.bucket.As(&client) || !as(&uploader) {
			return nil
		}
		*uploader = *transfermanager.New(client, func(o *transfermanager.Options) {
			o.PartSizeBytes = partBytes
			o.MultipartUploadThreshold = partBytes
			o.Concurrency = parallelParts
			o.FailTimeout = cleanupTimeout
			o.RequestChecksumCalculation = client.Options().RequestChecksumCalculation
		})
		return nil
	}
}

// discard removes what this save wrote, and returns the error with what became
// of it. The manifest goes first: none may ever stand without its snapshot.
func (s *object) discard(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	for _, key := range []string{s.key + ManifestSuffix, s.key} {
		if err := s.bucket.Delete(ctx, key); err != nil && !notFound(err) {
			return &leftoverError{cause, s.cause(err)}
		}
	}
	return cause
}
