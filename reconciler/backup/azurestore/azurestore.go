// Package azurestore is the driver for Azure's blob storage.
package azurestore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

// The keys of a Secret for Azure.
const (
	keyAccount = "account"
	keySecret  = "key"
)

// Driver opens containers of Azure's blob storage.
type Driver struct{}

// Open opens a container of Azure's blob storage.
func (Driver) Open(ctx context.Context, u *url.URL, access driver.Access) (*driver.Bucket, error) {
	transport, err := access.Transport()
	if err != nil {
		return nil, err
	}
	bucket := &driver.Bucket{IfUnchanged: ifUnchanged}
	if transport != nil {
		bucket.CloseIdle = transport.CloseIdleConnections
	}
	account, key := access.Value(keyAccount), access.Value(keySecret)
	switch {
	case transport == nil && access.FromEnvironment():
		bucket.Bucket, err = blob.DefaultURLMux().OpenBucketURL(context.WithoutCancel(ctx), u)
		if err != nil {
			return nil, err
		}
		return bucket, nil
	case account == "":
		return nil, driver.Missing(keyAccount,
			"add the storage account's name, or leave the Secret out to use the daemon's own identity")
	case key == "":
		return nil, driver.Missing(keySecret, "add one of the storage account's access keys")
	}
	shared, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, &driver.Problem{
			Problem: "the key " + keySecret + " of the Secret is not an access key of a storage account",
			Next:    "put one of the account's two keys there, in base64 as Azure shows it",
		}
	}
	options := &container.ClientOptions{}
	if transport != nil {
		options.ClientOptions = azcore.ClientOptions{Transport: &http.Client{Transport: transport}}
	}
	opener := &azureblob.URLOpener{
		ServiceURLOptions: azureblob.ServiceURLOptions{AccountName: account},
		MakeClient: func(service azureblob.ServiceURL, name azureblob.ContainerName) (*container.Client, error) {
			at, err := url.JoinPath(string(service), string(name))
			if err != nil {
				return nil, err
			}
			return container.NewClientWithSharedKeyCredential(at, shared, options)
		},
	}
	if bucket.Bucket, err = opener.OpenBucketURL(ctx, u); err != nil {
		return nil, err
	}
	return bucket, nil
}

// ifUnchanged is the condition that the blob is still the one with these attributes.
func ifUnchanged(attributes *blob.Attributes) func(as func(any) bool) {
	etag := azcore.ETag(attributes.ETag)
	return func(as func(any) bool) {
		var options *azblob.UploadStreamOptions
		if as(&options) {
			options.AccessConditions = &azblob.AccessConditions{
				ModifiedAccessConditions: &azure.ModifiedAccessConditions{IfMatch: &etag},
			}
		}
	}
}

// Answer returns what Azure has answered.
func (Driver) Answer(err error) driver.Answer {
	answer := (*azcore.ResponseError)(nil)
	if !errors.As(err, &answer) {
		return driver.Answer{}
	}
	// Its own text is the whole answer, over many lines.
	text := fmt.Sprintf("%d %s", answer.StatusCode, answer.ErrorCode)
	return driver.Answer{Status: answer.StatusCode, Code: answer.ErrorCode, Text: text}
}
