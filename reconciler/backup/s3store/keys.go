package s3store

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

// The keys of a Secret for S3.
const (
	keyFile    = "credentials"
	keyConfig  = "config"
	keyID      = "access-key-id"
	keySecret  = "secret-access-key" //nolint:gosec // the name of a key, not a key
	keySession = "session-token"
)

// keys are the credentials and the region in a Secret.
type keys struct {
	id, secret, session, region string
}

// Retrieve implements aws.CredentialsProvider.
func (k *keys) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID: k.id, SecretAccessKey: k.secret, SessionToken: k.session, Source: "Secret",
	}, nil
}

// secretKeys reads the Secret and returns nil for the process's own credentials. The two files are
// not read by the SDK, which would also run the commands in them, as the daemon.
func secretKeys(access driver.Access, profile string) (*keys, error) {
	k := &keys{id: access.Value(keyID), secret: access.Value(keySecret), session: access.Value(keySession)}
	file := access.Value(keyFile)
	switch {
	case file != "" && k.id != "":
		return nil, &driver.Problem{
			Problem: "the Secret has both " + keyFile + " and " + keyID, Next: "leave one of the two out",
		}
	case file == "" && access.Value(keyConfig) != "":
		return nil, driver.Missing(keyFile, "add the file ~/.aws/credentials")
	case file == "" && k.id == "" && k.secret == "" && access.FromEnvironment():
		return nil, nil
	case file == "" && k.id == "":
		return nil, driver.Missing(keyID, "add the ID of the access key")
	case file == "" && k.secret == "":
		return nil, driver.Missing(keySecret, "add the secret of the access key")
	case file == "":
		return k, nil
	}
	if profile == "" {
		profile = "default"
	}
	section := parseProfile(file, profile)
	config := parseProfile(access.Value(keyConfig), profile)
	k = &keys{
		id: section["aws_access_key_id"], secret: section["aws_secret_access_key"], session: section["aws_session_token"],
		region: config["region"],
	}
	if k.id == "" || k.secret == "" {
		return nil, &driver.Problem{
			Problem: "the key " + keyFile + " of the Secret has no aws_access_key_id and aws_secret_access_key" +
				" in the profile " + profile,
			Next: "add them, since roles and commands of other profiles are not followed",
		}
	}
	return k, nil
}

// parseProfile reads one profile of an AWS file. In config, all but the default are
// called "profile NAME".
func parseProfile(file, profile string) map[string]string {
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
