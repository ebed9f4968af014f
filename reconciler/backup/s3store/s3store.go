// Package s3store is the driver for S3: Amazon's own, and the many stores that speak a part of it.
package s3store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

// Driver opens S3 buckets.
type Driver struct{}

// Open opens an S3 bucket. The opener of the blob package reads the URL's
// parameters; the client that it makes is then given the credentials and the CA.
func (Driver) Open(ctx context.Context, u *url.URL, access driver.Access) (*driver.Bucket, error) {
	q := u.Query()
	keys, err := secretKeys(access, q.Get("profile"))
	if err != nil {
		return nil, err
	}
	transport, err := access.Transport()
	if err != nil {
		return nil, err
	}
	if keys != nil {
		if q.Has("role") {
			return nil, &driver.Problem{
				Problem: "the parameter role needs the daemon's own identity, and there is a Secret with credentials",
				Next:    "put the role's own keys into the Secret, or leave one of the two out",
			}
		}
		q.Del("profile")
		if !q.Has("region") && keys.region != "" {
			q.Set("region", keys.region)
		}
	}
	opener := new(s3blob.URLOpener)
	opened, err := opener.OpenBucketURL(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: q.Encode()})
	if err != nil {
		return nil, err
	}
	var client *s3.Client
	opened.As(&client)
	client = s3.New(client.Options(), func(o *s3.Options) {
		if keys != nil {
			o.Credentials = keys
		}
		// The SDK's own client keeps its connections, and the CAs that each of them
		// trusts, for 90 seconds, and nobody can use them again or close them.
		if own, ok := o.HTTPClient.(*awshttp.BuildableClient); ok && transport == nil {
			transport = own.GetTransport()
		}
		if transport != nil {
			o.HTTPClient = &http.Client{Transport: transport}
		}
	})
	bucket := &driver.Bucket{IfUnchanged: ifUnchanged}
	if transport != nil {
		bucket.CloseIdle = transport.CloseIdleConnections
	}
	if bucket.Bucket, err = s3blob.OpenBucket(ctx, client, u.Host, &opener.Options); err != nil {
		return nil, err
	}
	own := uploads{Client: client, bucket: u.Host, custom: q.Has("endpoint")}
	bucket.Upload = func(ctx context.Context, key string, r io.Reader, options *blob.WriterOptions) error {
		return own.store(ctx, bucket.Bucket, key, r, options)
	}
	bucket.AbortUploads = own.abortAll
	return bucket, nil
}

// ifUnchanged is the condition that the object is still the one with these attributes.
func ifUnchanged(attributes *blob.Attributes) func(as func(any) bool) {
	etag := attributes.ETag
	return func(as func(any) bool) {
		var in *transfermanager.UploadObjectInput
		if as(&in) {
			in.IfMatch = &etag
		}
	}
}

// Answer returns what S3 has answered.
func (Driver) Answer(err error) (a driver.Answer) {
	var api interface {
		error
		ErrorCode() string
		ErrorMessage() string
	}
	if errors.As(err, &api) {
		a.Code, a.Text = api.ErrorCode(), api.ErrorCode()
		if m := api.ErrorMessage(); m != "" && m != a.Text {
			a.Text += ": " + m
		}
	}
	a.Status = status(err)
	return a
}

// status returns the HTTP status in an error of S3, 0 when there is none.
func status(err error) int {
	var answer interface {
		error
		HTTPStatusCode() int
	}
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}
