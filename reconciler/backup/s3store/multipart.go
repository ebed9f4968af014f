package s3store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/sourcegraph/conc"
	"gocloud.dev/blob"

	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/compression"
)

// errOwnUpload ends the upload of the blob package before it begins.
var errOwnUpload = errors.New("uploaded without the blob package")

// store uploads r in place of the blob package, which only prepares the input.
// The SDK's own uploader takes twice the memory: it holds the first part three times
// while it grows, and aborts a failed upload with the ctx that has ended.
func (u uploads) store(
	ctx context.Context, bucket *blob.Bucket, key string, r io.Reader, options *blob.WriterOptions,
) error {
	var in *transfermanager.UploadObjectInput
	only := *options
	only.BeforeWrite = func(as func(any) bool) error {
		if options.BeforeWrite != nil {
			if err := options.BeforeWrite(as); err != nil {
				return err
			}
		}
		as(&in)
		return errOwnUpload
	}
	if err := bucket.Upload(ctx, key, r, &only); !errors.Is(err, errOwnUpload) {
		return err
	}
	return u.upload(ctx, in, r, options)
}

// upload sends one request if one is enough, else parts.
func (u uploads) upload(
	ctx context.Context, in *transfermanager.UploadObjectInput, r io.Reader, options *blob.WriterOptions,
) error {
	first := make([]byte, options.BufferSize)
	n, ended, err := compression.Fill(r, first)
	switch {
	case err != nil:
		return err
	case !ended:
		return u.uploadParts(ctx, in, first, r, options.MaxConcurrency)
	}
	_, err = u.PutObject(ctx, &s3.PutObjectInput{
		Bucket: in.Bucket, Key: in.Key, Body: bytes.NewReader(first[:n]),
		ContentType: in.ContentType, ChecksumAlgorithm: u.checksum(),
		IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch,
		ServerSideEncryption: types.ServerSideEncryption(in.ServerSideEncryption), SSEKMSKeyId: in.SSEKMSKeyID,
	})
	return err
}

// checksum returns the algorithm of the checksum that is sent with each part, "" for none.
func (u uploads) checksum() types.ChecksumAlgorithm {
	if u.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenRequired {
		return ""
	}
	return types.ChecksumAlgorithmCrc32
}

// uploadParts uploads an object in parts, and removes them after an error.
func (u uploads) uploadParts(
	ctx context.Context, in *transfermanager.UploadObjectInput, first []byte, r io.Reader, parallel int,
) error {
	made, err := u.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: in.Bucket, Key: in.Key, ContentType: in.ContentType, ChecksumAlgorithm: u.checksum(),
		ServerSideEncryption: types.ServerSideEncryption(in.ServerSideEncryption), SSEKMSKeyId: in.SSEKMSKeyID,
	})
	if err != nil {
		return err
	}
	p := &parts{u: u, in: in, id: made.UploadId, free: make(chan []byte, parallel)}
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

// parts uploads the parts of one object. While cap(free) of them are sent, one more is
// filled, each in one of cap(free)+1 buffers, which are used again.
type parts struct {
	u    uploads
	in   *transfermanager.UploadObjectInput
	id   *string
	free chan []byte

	mu   sync.Mutex
	sent []types.CompletedPart
	err  error
}

// send sends all parts, the first of which is in buffer. It waits for the parts on their way
// also when one has failed, because an abort must not overtake them.
func (p *parts) send(ctx context.Context, buffer []byte, r io.Reader) error {
	for range cap(p.free) {
		p.free <- nil
	}
	var group conc.WaitGroup // a panic becomes the caller's
	defer group.Wait()
	size := len(buffer)
	n, ended, err := size, false, error(nil)
	for number := int32(1); n > 0; number++ {
		part := buffer[:n]
		group.Go(func() { p.sendOne(ctx, number, part) })
		if buffer = <-p.free; buffer == nil {
			buffer = make([]byte, size)
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

// sendOne sends one part and returns its buffer to free.
func (p *parts) sendOne(ctx context.Context, number int32, part []byte) {
	defer func() { p.free <- part[:cap(part)] }()
	out, err := p.u.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: p.in.Bucket, Key: p.in.Key, UploadId: p.id, PartNumber: &number, Body: bytes.NewReader(part),
		ChecksumAlgorithm: p.u.checksum(),
	})
	if err != nil {
		p.fail(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32})
}

// fail records why the upload fails. Another reason replaces a cancelled ctx, which most
// often is the consequence of something else.
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

// abort drops the parts, also when ctx has ended: then repeatedly, since parts that were on
// their way may arrive after the first abort. Its own error is ignored: the upload is
// most often gone.
func (p *parts) abort(ctx context.Context, cause error) error {
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), driver.CleanupTimeout)
	defer cancel()
	drop := func() {
		_, _ = p.u.AbortMultipartUpload(fresh, &s3.AbortMultipartUploadInput{
			Bucket: p.in.Bucket, Key: p.in.Key, UploadId: p.id,
		})
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
