package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azureblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
)

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
	stored, sum := io.Reader(r), func() snapshotSum { return r.sum }
	if len(s.store.Recipients) > 0 {
		encrypted, err := s.encrypt(r)
		if err != nil {
			return snapshotSum{}, err
		}
		stored, sum = encrypted, encrypted.sum
	}
	err := s.write(ctx, s.key, stored, condition{})
	if r.err != nil && !s.muted() {
		return snapshotSum{}, s.problem(r.err.text, "take the snapshot again, and if it fails again look at the member's log and disk", r.err.err)
	}
	if err != nil {
		return snapshotSum{}, s.failed(err)
	}
	return sum(), nil
}

// condition says when a write may happen: when nothing is there, or when what is
// there is to be replaced.
type condition struct {
	replace bool
	// etag and generation are the version that is replaced, as S3 and Azure, and
	// Google name it. Without: any.
	etag       string
	generation int64
}

// errChanged says that a conditional write found another version.
var errChanged = errors.New("it was changed by another")

// sameManifest is the condition that the manifest is still the one of now.
func (s *object) sameManifest(ctx context.Context) (condition, error) {
	attributes, err := s.bucket.Attributes(ctx, s.key+ManifestSuffix)
	if notFound(err) {
		return condition{}, s.absent(ctx, err)
	}
	if err != nil {
		return condition{}, s.failed(err)
	}
	only := condition{replace: true, etag: attributes.ETag}
	var google storage.ObjectAttrs
	if attributes.As(&google) {
		only.generation = google.Generation
	}
	return only, nil
}

// apply puts the condition into what a driver is about to write.
func (c condition) apply(as func(any) bool) {
	var amazon *transfermanager.UploadObjectInput
	var google **storage.ObjectHandle
	var azure *azblob.UploadStreamOptions
	switch {
	case !c.replace:
	case as(&amazon):
		amazon.IfMatch = &c.etag
	case as(&google):
		*google = (*google).If(storage.Conditions{GenerationMatch: c.generation})
	case as(&azure):
		etag := azcore.ETag(c.etag)
		azure.AccessConditions = &azblob.AccessConditions{ModifiedAccessConditions: &azureblob.ModifiedAccessConditions{IfMatch: &etag}}
	}
}

// write stores what r gives under key, if the condition holds. When r fails,
// nothing may be stored, and the drivers differ in how they are told so: S3's
// ends its parts and aborts when it reads the error; the others complete the
// object even then, unless their ctx is cancelled before they are closed.
// Cancelling S3 as well would let the abort overtake the parts under way, which
// then stay.
func (s *object) write(ctx context.Context, key string, r io.Reader, only condition) error {
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
		IfNotExist:     !only.replace,
		BeforeWrite:    s.tuneWriter(source, only),
	})
	if err != nil && ctx.Err() != nil {
		s.abortAgain(ctx, key, err)
	}
	if own := (*storeError)(nil); errors.As(err, &own) {
		// The drivers have put their own words around it.
		return own
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
// leave the parts to be paid for, that buffers 5 MiB at first, not 16, and that
// gets on with stores that speak only a part of S3.
func (s *object) tuneWriter(source *uploadReader, only condition) func(func(any) bool) error {
	return func(as func(any) bool) error {
		if as(&source.file) {
			// A snapshot holds every secret of the cluster it was taken from.
			return source.file.Chmod(0o600)
		}
		only.apply(as)
		var client *s3.Client
		var uploader *transfermanager.Client
		if !s.bucket.As(&client) || !as(&uploader) {
			return nil
		}
		*uploader = *transfermanager.New(s3Uploads{client, s}, func(o *transfermanager.Options) {
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
