// Package googlestore is the driver for Google Cloud Storage.
package googlestore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

const (
	// keyAccount is the key of a Secret for Google.
	keyAccount = "credentials.json"
	// attempts bounds how often Google's client asks again, which would else go on
	// for as long as the caller waits.
	attempts = 4
	// tokenTimeout bounds the request for a token, which is made without the ctx of the call that needs it.
	tokenTimeout = time.Minute
)

// Driver opens buckets of Google Cloud Storage.
type Driver struct{}

// Open opens a bucket of Google Cloud Storage.
func (Driver) Open(ctx context.Context, u *url.URL, access driver.Access) (*driver.Bucket, error) {
	bucket := &driver.Bucket{IfUnchanged: ifUnchanged}
	var err error
	if bucket.Bucket, bucket.CloseIdle, err = open(ctx, u, access); err != nil {
		return nil, err
	}
	var client *storage.Client
	if bucket.As(&client) {
		client.SetRetry(storage.WithMaxAttempts(attempts))
	}
	return bucket, nil
}

// open also returns what closes the idle connections, nil where they are shared with others.
func open(ctx context.Context, u *url.URL, access driver.Access) (*blob.Bucket, func(), error) {
	transport, err := access.Transport()
	if err != nil {
		return nil, nil, err
	}
	account := access.Value(keyAccount)
	if account == "" {
		if transport != nil || !access.FromEnvironment() {
			return nil, nil, driver.Missing(keyAccount,
				"add the JSON file of a service account's key, or leave the Secret out to use the daemon's own identity")
		}
		bucket, err := openAsDaemon(ctx, u)
		return bucket, nil, err
	}
	config, err := google.JWTConfigFromJSON([]byte(account), storage.ScopeReadWrite)
	if err != nil {
		// The cause may repeat what stands there.
		return nil, nil, &driver.Problem{
			Problem: "the key " + keyAccount + " of the Secret is not the key of a service account",
			Next:    "put the JSON file there that Google made for the account's key",
		}
	}
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	// A token is asked for without the ctx of the call that needs it.
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport, Timeout: tokenTimeout})
	client, err := gcp.NewHTTPClient(transport, config.TokenSource(ctx))
	if err != nil {
		return nil, nil, err
	}
	options := gcsblob.Options{GoogleAccessID: config.Email, PrivateKey: config.PrivateKey}
	q := u.Query()
	if endpoint := q.Get("endpoint"); endpoint != "" {
		// Such as one of Private Service Connect. Reads go there as well.
		options.ClientOptions = []option.ClientOption{option.WithEndpoint(endpoint), storage.WithJSONReads()}
		q.Del("endpoint")
	}
	opener := &gcsblob.URLOpener{Client: client, Options: options}
	bucket, err := opener.OpenBucketURL(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: q.Encode()})
	return bucket, transport.CloseIdleConnections, err
}

// ifUnchanged is the condition that the object is still of the generation with these attributes.
func ifUnchanged(attributes *blob.Attributes) func(as func(any) bool) {
	var was storage.ObjectAttrs
	attributes.As(&was)
	return func(as func(any) bool) {
		var object **storage.ObjectHandle
		if as(&object) {
			*object = (*object).If(storage.Conditions{GenerationMatch: was.Generation})
		}
	}
}

// Answer returns what Google has answered.
func (Driver) Answer(err error) driver.Answer {
	answer := (*googleapi.Error)(nil)
	if !errors.As(err, &answer) {
		return driver.Answer{}
	}
	return driver.Answer{Status: answer.Code, Text: fmt.Sprintf("%d %s", answer.Code, answer.Message)}
}
