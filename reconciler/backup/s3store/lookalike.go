package s3store

import (
	"context"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

// uploads are the calls of S3 by which objects are uploaded, for stores that implement a part of it:
//
//	a condition is refused            the object is looked up, and written without the
//	                                  condition if the condition holds
//	a condition is ignored            with an endpoint in the URL, the object is looked up
//	                                  before every write
//	an abort is unknown, or late      there is nothing to abort
//
// The next write tries the condition again.
type uploads struct {
	*s3.Client

	bucket string
	// custom is true when the URL has an endpoint: the store may be any.
	custom bool
}

// PutObject stores a small object.
func (u uploads) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	return guarded(ctx, u, *in.Key, in.IfMatch, func(conditional bool) (*s3.PutObjectOutput, error) {
		if conditional {
			return u.Client.PutObject(ctx, in, opts...)
		}
		plain := *in
		plain.IfMatch, plain.IfNoneMatch = nil, nil
		if body, ok := in.Body.(io.Seeker); ok {
			if _, err := body.Seek(0, io.SeekStart); err != nil {
				return nil, err
			}
		}
		return u.Client.PutObject(ctx, &plain, opts...)
	})
}

// CompleteMultipartUpload makes an object of the uploaded parts.
func (u uploads) CompleteMultipartUpload(
	ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.CompleteMultipartUploadOutput, error) {
	return guarded(ctx, u, *in.Key, in.IfMatch, func(conditional bool) (*s3.CompleteMultipartUploadOutput, error) {
		if conditional {
			return u.Client.CompleteMultipartUpload(ctx, in, opts...)
		}
		plain := *in
		plain.IfMatch, plain.IfNoneMatch = nil, nil
		return u.Client.CompleteMultipartUpload(ctx, &plain, opts...)
	})
}

// AbortMultipartUpload drops the parts of an upload. A store without aborts is no error, so that its unfinished backups
// can be removed as well.
func (u uploads) AbortMultipartUpload(
	ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.AbortMultipartUploadOutput, error) {
	out, err := u.Client.AbortMultipartUpload(ctx, in, opts...)
	if unknownToStore(err) || status(err) == http.StatusNotFound {
		return &s3.AbortMultipartUploadOutput{}, nil
	}
	return out, err
}

// guarded writes with a condition, or without one when the store does not support conditions.
func guarded[T any](
	ctx context.Context, u uploads, key string, etag *string, write func(conditional bool) (*T, error),
) (*T, error) {
	if u.custom {
		if err := u.allowed(ctx, key, etag); err != nil {
			return nil, err
		}
	}
	out, err := write(true)
	if !unknownToStore(err) && status(err) != http.StatusBadRequest {
		return out, err
	}
	if again := u.allowed(ctx, key, etag); status(again) != 0 {
		// The lookup failed as well, so the condition is not what the store refused.
		return nil, err
	} else if again != nil {
		return nil, again
	}
	return write(false)
}

// allowed looks the object up: it must have that etag, or must not exist where etag is nil.
func (u uploads) allowed(ctx context.Context, key string, etag *string) error {
	head, err := u.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &u.bucket, Key: &key})
	absent := status(err) == http.StatusNotFound
	switch {
	case err != nil && !absent:
		return err
	case etag == nil && absent:
		return nil
	case etag == nil:
		return driver.ErrExists
	case absent || head.ETag == nil || *head.ETag != *etag:
		return driver.ErrChanged
	}
	return nil
}

// unknownToStore reports whether the store has answered that it does not implement the call.
func unknownToStore(err error) bool {
	code := status(err)
	return code == http.StatusNotImplemented || code == http.StatusMethodNotAllowed
}

// abortAll aborts all unfinished uploads of an object.
func (u uploads) abortAll(ctx context.Context, key string) error {
	pages := s3.NewListMultipartUploadsPaginator(u.Client, &s3.ListMultipartUploadsInput{Bucket: &u.bucket, Prefix: &key})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if unknownToStore(err) {
			// The store drops parts by itself, or never.
			return nil
		}
		if err != nil {
			return err
		}
		for _, upload := range page.Uploads {
			if *upload.Key != key {
				continue
			}
			abort := &s3.AbortMultipartUploadInput{Bucket: &u.bucket, Key: upload.Key, UploadId: upload.UploadId}
			if _, err := u.AbortMultipartUpload(ctx, abort); err != nil {
				return err
			}
		}
	}
	return nil
}
