package backup

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

// The keys of a Secret that say how a store is reached.
const (
	keyCA          = "ca.crt"
	keyAWSFile     = "credentials"
	keyAWSConfig   = "config"
	keyAWSID       = "access-key-id"
	keyAWSSecret   = "secret-access-key" //nolint:gosec // the name of a key, not a key
	keyAWSSession  = "session-token"
	keyGoogle      = "credentials.json"
	keyAzure       = "account"
	keyAzureSecret = "key"
)

// googleAttempts bounds how often Google's client asks again, which would else go on
// for as long as the caller waits.
const googleAttempts = 4

// value is one of the Secret's values, without the line feed that a shell adds.
func (st Store) value(key string) string {
	return string(bytes.TrimSpace(st.Credentials[key]))
}

// FromEnvironment reports whether the credentials are the process's own: no Secret was
// given, or one that has a CA and nothing else. A Secret that lacks what a store
// needs must not make quorate use another account.
func (st Store) FromEnvironment() bool {
	_, ca := st.Credentials[keyCA]
	return st.Credentials == nil || ca && len(st.Credentials) == 1
}

// missing makes the error for a Secret that lacks a key.
func (s *object) missing(key, hint string) error {
	return s.problem("the Secret with the credentials lacks the key "+key, hint, nil)
}

// Authority has the certificates of the CAs that the store needs besides the
// system's, in PEM; empty for none.
func (st Store) Authority() []byte {
	if len(st.CA) > 0 {
		return st.CA
	}
	return st.Credentials[keyCA]
}

// trusting is a transport that also trusts the private CA, nil when there is none.
func (s *object) trusting() (*http.Transport, error) {
	ca := s.store.Authority()
	if len(ca) == 0 {
		return nil, nil
	}
	transport := Trusting(ca)
	if transport == nil {
		return nil, s.problem("the CA (key "+keyCA+" of the Secret) has no certificate in PEM", "put the CA's certificate there, from BEGIN CERTIFICATE to END CERTIFICATE", nil)
	}
	s.idle = transport.CloseIdleConnections
	return transport, nil
}

// Trusting is a transport of its own that trusts the CAs, in PEM, besides the
// system's; nil where that holds no certificate.
func Trusting(ca []byte) *http.Transport {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(ca) {
		return nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport
}

// openS3 opens an S3 bucket. The opener of the blob package reads the URL's
// parameters; the client that it makes is then given the credentials and the CA.
func (s *object) openS3(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	keys, err := s.awsKeys()
	if err != nil {
		return nil, err
	}
	transport, err := s.trusting()
	if err != nil {
		return nil, err
	}
	q := u.Query()
	if keys != nil {
		if q.Has("role") {
			return nil, s.problem("the parameter role needs the daemon's own identity, and there is a Secret with credentials", "put the role's own keys into the Secret, or leave one of the two out", nil)
		}
		q.Del("profile")
		if !q.Has("region") && keys.region != "" {
			q.Set("region", keys.region)
		}
	}
	opener := new(s3blob.URLOpener)
	bucket, err := opener.OpenBucketURL(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: q.Encode()})
	if err != nil {
		return nil, err
	}
	var client *s3.Client
	bucket.As(&client)
	return s3blob.OpenBucket(ctx, s3.New(client.Options(), func(o *s3.Options) {
		if keys != nil {
			o.Credentials = keys
		}
		// The SDK's own client keeps its connections, and the CAs that each of them
		// trusts, for 90 seconds, and nobody can use them again or close them.
		if own, ok := o.HTTPClient.(*awshttp.BuildableClient); ok && transport == nil {
			transport = own.GetTransport()
			s.idle = transport.CloseIdleConnections
		}
		if transport != nil {
			o.HTTPClient = &http.Client{Transport: transport}
		}
	}), u.Host, &opener.Options)
}

// awsKeys are what the Secret says for S3.
type awsKeys struct {
	id, secret, session, region string
}

// Retrieve gives the keys to the SDK.
func (k *awsKeys) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: k.id, SecretAccessKey: k.secret, SessionToken: k.session, Source: "Secret"}, nil
}

// awsKeys reads the Secret, nil when it says nothing about S3. The two files are
// read here and not by the SDK, which would also run the commands that they name,
// as the daemon.
func (s *object) awsKeys() (*awsKeys, error) {
	st := s.store
	keys := &awsKeys{id: st.value(keyAWSID), secret: st.value(keyAWSSecret), session: st.value(keyAWSSession)}
	file := st.value(keyAWSFile)
	switch {
	case file != "" && keys.id != "":
		return nil, s.problem("the Secret has both "+keyAWSFile+" and "+keyAWSID, "leave one of the two out", nil)
	case file == "" && st.value(keyAWSConfig) != "":
		return nil, s.missing(keyAWSFile, "add the file ~/.aws/credentials")
	case file == "" && keys.id == "" && keys.secret == "" && st.FromEnvironment():
		return nil, nil
	case file == "" && keys.id == "":
		return nil, s.missing(keyAWSID, "add the ID of the access key")
	case file == "" && keys.secret == "":
		return nil, s.missing(keyAWSSecret, "add the secret of the access key")
	case file == "":
		return keys, nil
	}
	profile := "default"
	if named := s.target.query.Get("profile"); named != "" {
		profile = named
	}
	section := awsProfile(file, profile)
	config := awsProfile(st.value(keyAWSConfig), profile)
	keys = &awsKeys{section["aws_access_key_id"], section["aws_secret_access_key"], section["aws_session_token"], config["region"]}
	if keys.id == "" || keys.secret == "" {
		return nil, s.problem("the key "+keyAWSFile+" of the Secret has no aws_access_key_id and aws_secret_access_key in the profile "+profile, "add them, since roles and commands of other profiles are not followed", nil)
	}
	return keys, nil
}

// awsProfile reads one profile of an AWS file. In config, all but the default are
// called "profile NAME".
func awsProfile(file, profile string) map[string]string {
	values, inside := map[string]string{}, false
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ = strings.Cut(name, "]")
			inside = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), "profile ")) == profile
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if inside && ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return values
}

// openGoogle opens a bucket of Google Cloud Storage.
func (s *object) openGoogle(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	bucket, err := s.googleBucket(ctx, u)
	if err != nil {
		return nil, err
	}
	var client *storage.Client
	if bucket.As(&client) {
		client.SetRetry(storage.WithMaxAttempts(googleAttempts))
	}
	return bucket, nil
}

func (s *object) googleBucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	transport, err := s.trusting()
	if err != nil {
		return nil, err
	}
	account := s.store.value(keyGoogle)
	if account == "" {
		if transport != nil || !s.store.FromEnvironment() {
			return nil, s.missing(keyGoogle, "add the JSON file of a service account's key, or leave the Secret out to use the daemon's own identity")
		}
		return s.ownGoogle(ctx, u)
	}
	config, err := google.JWTConfigFromJSON([]byte(account), storage.ScopeReadWrite)
	if err != nil {
		// The cause may repeat what stands there.
		return nil, s.problem("the key "+keyGoogle+" of the Secret is not the key of a service account", "put the JSON file there that Google made for the account's key", nil)
	}
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
		s.idle = transport.CloseIdleConnections
	}
	// A token is asked for without the ctx of the call that needs it.
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport, Timeout: answerTime})
	client, err := gcp.NewHTTPClient(transport, config.TokenSource(ctx))
	if err != nil {
		return nil, err
	}
	options := gcsblob.Options{GoogleAccessID: config.Email, PrivateKey: config.PrivateKey}
	q := u.Query()
	if endpoint := q.Get("endpoint"); endpoint != "" {
		// Such as one of Private Service Connect. Reads go there as well.
		options.ClientOptions = []option.ClientOption{option.WithEndpoint(endpoint), storage.WithJSONReads()}
		q.Del("endpoint")
	}
	opener := &gcsblob.URLOpener{Client: client, Options: options}
	return opener.OpenBucketURL(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: q.Encode()})
}

// openAzure opens a container of Azure's blob storage.
func (s *object) openAzure(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	transport, err := s.trusting()
	if err != nil {
		return nil, err
	}
	account, key := s.store.value(keyAzure), s.store.value(keyAzureSecret)
	switch {
	case transport == nil && s.store.FromEnvironment():
		return blob.DefaultURLMux().OpenBucketURL(context.WithoutCancel(ctx), u)
	case account == "":
		return nil, s.missing(keyAzure, "add the storage account's name, or leave the Secret out to use the daemon's own identity")
	case key == "":
		return nil, s.missing(keyAzureSecret, "add one of the storage account's access keys")
	}
	shared, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, s.problem("the key "+keyAzureSecret+" of the Secret is not an access key of a storage account", "put one of the account's two keys there, in base64 as Azure shows it", nil)
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
	return opener.OpenBucketURL(ctx, u)
}
