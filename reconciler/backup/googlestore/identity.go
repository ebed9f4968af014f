package googlestore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"

	"cloud.google.com/go/compute/metadata"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/iamcredentials/v1"
	"google.golang.org/api/option"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

// openAsDaemon opens a bucket of Google Cloud Storage with the daemon's own identity, which is
// looked up each time: the server that gives a pod its identity may not answer yet when the
// pod is new, an account may be bound later, and the opener that the blob package registers
// keeps its first result, even that there was none, until the process ends.
func openAsDaemon(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	q := u.Query()
	if anonymous, _ := strconv.ParseBool(q.Get("anonymous")); anonymous || os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		return blob.DefaultURLMux().OpenBucketURL(ctx, u) // without any identity
	}
	// Tokens are requested with the ctx of this call, also after it.
	params := google.CredentialsParams{UniverseDomain: q.Get("universe_domain")}
	creds, err := gcp.DefaultCredentialsWithParams(context.WithoutCancel(ctx), params)
	if err != nil {
		return nil, &driver.Problem{
			Problem: "no credentials for the store were found",
			Next:    "give quorate the store's credentials in a Secret, or an identity at Google", Err: err,
		}
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), creds.TokenSource)
	if err != nil {
		return nil, err
	}
	options := gcsblob.Options{}
	if universe, err := creds.GetUniverseDomain(); err == nil && universe != "" {
		options.ClientOptions = []option.ClientOption{option.WithUniverseDomain(universe)}
	}
	signsAs(ctx, creds, client, &options)
	opener := &gcsblob.URLOpener{Client: client, TokenSource: gcp.CredentialsTokenSource(creds), Options: options}
	return opener.OpenBucketURL(ctx, u)
}

// signsAs makes the service account of an identity sign URLs: with its key, if the identity
// has one, else by Google's IAM, which requires the account to have the role Service
// Account Token Creator on itself. An identity without an account cannot sign.
func signsAs(ctx context.Context, creds *google.Credentials, client *gcp.HTTPClient, options *gcsblob.Options) {
	var file struct {
		Email         string `json:"client_email"`
		PrivateKey    string `json:"private_key"`
		Impersonation string `json:"service_account_impersonation_url"`
	}
	_ = json.Unmarshal(creds.JSON, &file) // a machine's own identity has no file
	options.GoogleAccessID = file.Email
	if file.PrivateKey != "" {
		options.PrivateKey = []byte(file.PrivateKey)
		return
	}
	if file.Impersonation != "" { // …/serviceAccounts/EMAIL:generateAccessToken
		options.GoogleAccessID, _, _ = strings.Cut(path.Base(file.Impersonation), ":")
	}
	if options.GoogleAccessID == "" && len(creds.JSON) == 0 {
		options.GoogleAccessID, _ = metadata.NewClient(nil).EmailWithContext(ctx, "")
	}
	options.MakeSignBytes = func(ctx context.Context) gcsblob.SignBytesFunc {
		return func(payload []byte) ([]byte, error) {
			all := append(options.ClientOptions, option.WithHTTPClient(&client.Client))
			service, err := iamcredentials.NewService(ctx, all...)
			if err != nil {
				return nil, err
			}
			signed, err := service.Projects.ServiceAccounts.SignBlob("projects/-/serviceAccounts/"+options.GoogleAccessID,
				&iamcredentials.SignBlobRequest{Payload: base64.StdEncoding.EncodeToString(payload)}).Context(ctx).Do()
			if err != nil {
				return nil, err
			}
			return base64.StdEncoding.DecodeString(signed.SignedBlob)
		}
	}
}
