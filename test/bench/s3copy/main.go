// Command s3copy puts a file into S3, or gets one from there, with the transfer
// manager of the AWS SDK at its defaults: what a person's own tool does.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/s3blob" // the scheme s3
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "s3copy:", err)
		os.Exit(1)
	}
}

// run is s3copy put|get FILE URL; the URL's path is the key.
func run(ctx context.Context, args []string) error {
	if len(args) != 3 || args[0] != "put" && args[0] != "get" {
		return errors.New("use it as: s3copy put|get FILE s3://BUCKET/KEY?PARAMETERS")
	}
	u, err := url.Parse(args[2])
	if err != nil {
		return err
	}
	client, err := connect(ctx, u)
	if err != nil {
		return fmt.Errorf("open the bucket %s: %w", u.Host, err)
	}
	transfer, key := transfermanager.New(client), strings.TrimPrefix(u.Path, "/")
	if args[0] == "put" {
		err = put(ctx, transfer, args[1], u.Host, key)
	} else {
		err = get(ctx, transfer, args[1], u.Host, key)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", args[0], key, err)
	}
	return nil
}

// connect reads the URL's parameters as quorate does.
func connect(ctx context.Context, u *url.URL) (*s3.Client, error) {
	bucket, err := blob.OpenBucket(ctx, (&url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: u.RawQuery}).String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = bucket.Close() }()
	var client *s3.Client
	if !bucket.As(&client) {
		return nil, errors.New("it is not in S3")
	}
	return client, nil
}

func put(ctx context.Context, transfer *transfermanager.Client, file, bucket, key string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = transfer.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: &bucket, Key: &key, Body: f})
	return err
}

func get(ctx context.Context, transfer *transfermanager.Client, file, bucket, key string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = transfer.DownloadObject(ctx, &transfermanager.DownloadObjectInput{Bucket: &bucket, Key: &key, WriterAt: f})
	return errors.Join(err, f.Close())
}
