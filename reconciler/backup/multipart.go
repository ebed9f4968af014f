package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/sourcegraph/conc"

	"github.com/quorate/quorate/reconciler/compression"
)

// uploadS3 stores what r gives, as the driver would, which also says what it would send.
// The SDK's own uploader takes twice the memory: it holds the first part three times
// while it grows, and aborts a failed upload under the ctx that has ended.
func (s *object) uploadS3(ctx context.Context, client *s3.Client, in *transfermanager.UploadObjectInput, r io.Reader) error {
	u := s3Uploads{client, s}
	err := u.upload(ctx, in, r)
	switch code := status(err); {
	case code == http.StatusPreconditionFailed && in.IfMatch != nil:
		return errChanged
	case code == http.StatusPreconditionFailed:
		return s.exists(err)
	case code == http.StatusNotFound:
		return s.noBucket(err)
	}
	return err
}

// upload sends one request where one is enough, else parts.
func (u s3Uploads) upload(ctx context.Context, in *transfermanager.UploadObjectInput, r io.Reader) error {
	first := make([]byte, partBytes)
	n, ended, err := compression.Fill(r, first)
	switch {
	case err != nil:
		return err
	case !ended:
		return u.uploadParts(ctx, in, first, r)
	}
	_, err = u.PutObject(ctx, &s3.PutObjectInput{
		Bucket: in.Bucket, Key: in.Key, Body: bytes.NewReader(first[:n]), ContentType: in.ContentType, ChecksumAlgorithm: u.checksum(),
		IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch,
		ServerSideEncryption: types.ServerSideEncryption(in.ServerSideEncryption), SSEKMSKeyId: in.SSEKMSKeyID,
	})
	return err
}

// checksum is the algorithm of the checksums that are sent with each part, "" for none.
func (u s3Uploads) checksum() types.ChecksumAlgorithm {
	if u.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenRequired {
		return ""
	}
	return types.ChecksumAlgorithmCrc32
}

// uploadParts makes an object of parts. What fails leaves none.
func (u s3Uploads) uploadParts(ctx context.Context, in *transfermanager.UploadObjectInput, first []byte, r io.Reader) error {
	made, err := u.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: in.Bucket, Key: in.Key, ContentType: in.ContentType, ChecksumAlgorithm: u.checksum(),
		ServerSideEncryption: types.ServerSideEncryption(in.ServerSideEncryption), SSEKMSKeyId: in.SSEKMSKeyID,
	})
	if err != nil {
		return err
	}
	p := &parts{u: u, in: in, id: made.UploadId, free: make(chan []byte, parallelParts)}
	if err := p.send(ctx, first, r); err != nil {
		return p.abort(ctx, err)
	}
	slices.SortFunc(p.sent, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
	_, err = u.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: in.Bucket, Key: in.Key, UploadId: p.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: p.sent},
		IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch,
	})
	if err != nil {
		return p.abort(ctx, err)
	}
	return nil
}

// parts are the parts of one object. While parallelParts of them travel, one more is
// filled: so many buffers there are, and each is used again.
type parts struct {
	u    s3Uploads
	in   *transfermanager.UploadObjectInput
	id   *string
	free chan []byte

	mu   sync.Mutex
	sent []types.CompletedPart
	err  error
}

// send sends them all, the first of which is read already, and waits for those under way
// also when one has failed: an abort must not overtake them.
func (p *parts) send(ctx context.Context, buffer []byte, r io.Reader) error {
	for range parallelParts {
		p.free <- nil
	}
	var group conc.WaitGroup // a panic becomes the caller's
	defer group.Wait()
	n, ended, err := len(buffer), false, error(nil)
	for number := int32(1); n > 0; number++ {
		part := buffer[:n]
		group.Go(func() { p.sendOne(ctx, number, part) })
		if buffer = <-p.free; buffer == nil {
			buffer = make([]byte, partBytes)
		}
		if p.failed() != nil || ended {
			break
		}
		if n, ended, err = compression.Fill(r, buffer); err != nil {
			p.fail(err)
			break
		}
	}
	group.Wait()
	return p.failed()
}

// sendOne sends one part, and gives its buffer back.
func (p *parts) sendOne(ctx context.Context, number int32, part []byte) {
	defer func() { p.free <- part[:cap(part)] }()
	out, err := p.u.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: p.in.Bucket, Key: p.in.Key, UploadId: p.id, PartNumber: &number, Body: bytes.NewReader(part), ChecksumAlgorithm: p.u.checksum(),
	})
	if err != nil {
		p.fail(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32})
}

// fail notes why the upload fails. The end of its ctx is most often the consequence of
// something else.
func (p *parts) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil || errors.Is(p.err, context.Canceled) {
		p.err = err
	}
}

func (p *parts) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// abort drops the parts, also when ctx has ended: then again, since parts that were under
// way may come to the store after the first abort. Its own error is no news: the upload is
// most often gone.
func (p *parts) abort(ctx context.Context, cause error) error {
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	drop := func() {
		_, _ = p.u.AbortMultipartUpload(fresh, &s3.AbortMultipartUploadInput{Bucket: p.in.Bucket, Key: p.in.Key, UploadId: p.id})
	}
	drop()
	if ctx.Err() != nil {
		for range 3 {
			time.Sleep(200 * time.Millisecond)
			drop()
		}
	}
	return cause
}
