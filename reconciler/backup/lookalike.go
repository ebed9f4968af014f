package backup

import (
	"context"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// s3Uploads is S3 as an upload sees it, for stores that speak only a part of it:
//
//	a condition is refused as such    the store is asked what is there, and if that
//	                                  allows it, written to without the condition
//	a condition is ignored            with an endpoint of one's own, the same is asked
//	                                  before every write
//	an abort is not known, or late    there is nothing to abort
//
// Nothing is remembered: the next write tries the condition again.
type s3Uploads struct {
	*s3.Client
	s *object
}

// PutObject stores a small object.
func (u s3Uploads) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
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

// CompleteMultipartUpload makes an object of the parts that are there.
func (u s3Uploads) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return guarded(ctx, u, *in.Key, in.IfMatch, func(conditional bool) (*s3.CompleteMultipartUploadOutput, error) {
		if conditional {
			return u.Client.CompleteMultipartUpload(ctx, in, opts...)
		}
		plain := *in
		plain.IfMatch, plain.IfNoneMatch = nil, nil
		return u.Client.CompleteMultipartUpload(ctx, &plain, opts...)
	})
}

// AbortMultipartUpload drops the parts of an upload. Where the store knows no aborts,
// that is no reason to keep an unfinished backup.
func (u s3Uploads) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	out, err := u.Client.AbortMultipartUpload(ctx, in, opts...)
	if unknownToStore(err) || status(err) == http.StatusNotFound {
		return &s3.AbortMultipartUploadOutput{}, nil
	}
	return out, err
}

// guarded writes with a condition, and without one where the store knows none.
func guarded[T any](ctx context.Context, u s3Uploads, key string, etag *string, write func(conditional bool) (*T, error)) (*T, error) {
	if u.s.target.query.Has("endpoint") {
		if err := u.allowed(ctx, key, etag); err != nil {
			return nil, err
		}
	}
	out, err := write(true)
	if !unknownToStore(err) && status(err) != http.StatusBadRequest {
		return out, err
	}
	if again := u.allowed(ctx, key, etag); status(again) != 0 {
		// Asking failed as well: the condition was not what is wrong.
		return nil, err
	} else if again != nil {
		return nil, again
	}
	return write(false)
}

// allowed asks for the object under key: the version with that etag must be there, or
// none where etag is nil.
func (u s3Uploads) allowed(ctx context.Context, key string, etag *string) error {
	head, err := u.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &u.s.target.bucket, Key: &key})
	absent := status(err) == http.StatusNotFound
	switch {
	case err != nil && !absent:
		return err
	case etag == nil && absent:
		return nil
	case etag == nil:
		return u.s.exists(nil)
	case absent || head.ETag == nil || *head.ETag != *etag:
		return errChanged
	}
	return nil
}

// unknownToStore reports whether the store answered that it does not know how to do
// what it was asked for.
func unknownToStore(err error) bool {
	code := status(err)
	return code == http.StatusNotImplemented || code == http.StatusMethodNotAllowed
}
