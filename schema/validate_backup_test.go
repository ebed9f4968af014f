package schema

import (
	"encoding/json"
	"testing"
)

func TestValidateClusterURL(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{"host and port", "https://etcd.example.com:2379", ""},
		{"slash at the end", "http://etcd:2379/", ""},
		{"IPv6", "https://[fd00::1]:2379", ""},
		{"IPv6 without a port", "https://[fd00::1]", "has no port: write https://[fd00::1]:2379"},
		{"empty port", "https://etcd:", "has no port: write https://etcd:2379"},
		{"impossible port", "https://etcd:65536", "has the port \"65536\", and there are 1 to 65535"},
		{"port zero", "https://etcd:0", "has the port \"0\""},
		{"other scheme", "unix:///run/etcd.sock", "is no URL of an etcd cluster"},
		{"15 query", "https://etcd:2379?token=hunter2", "must end with the port: write https://etcd:2379"},
		{"15 user alone", "https://hunter2@etcd:2379", "must not hold a user or password"},
		{"15 password that is no URL", "https://root:hunter2%zz@etcd:2379", "is no URL of an etcd cluster"},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := one(backupText(`source: {clusterURL: "`+c.url+`"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`)).Problems
			expectOne(t, problems, c.want)
			expectNoSecret(t, problems)
		})
	}
}

func TestValidateDestination15(t *testing.T) {
	for _, c := range []struct{ name, destination, want string }{
		{"private key within a text", "encryption: {recipients: [\"key: age-secret-key-1hunter2\"]}", "is a private key"},
		{"key of another kind", "encryption: {recipients: [\"ssh-ed25519 hunter2\"]}", "is not a public key of age"},
		{"secret as the name of a Secret", "credentials: {secretName: \"hunter2/KEY+\"}", "spec.destination.credentials.secretName: is not the name of a Secret: write the name only"},
		{"199 compression of another kind", "compression: Gzip", `spec.destination.compression: "Gzip" is not one of Zstd, None`},
		{"199 compression in lower case", "compression: none", "did you mean None"},
		{"199 no compression", "compression: None", ""},
		{"199 compression as by default", "compression: Zstd", ""},
	} {
		t.Run("15 "+c.name, func(t *testing.T) {
			problems := one(backupText(`source: {clusterURL: "https://etcd:2379"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}", `+c.destination+"}")).Problems
			expectOne(t, problems, c.want)
			expectNoSecret(t, problems)
		})
	}
}

func TestValidateSchemeInCapitals(t *testing.T) {
	text := backupText(`source: {clusterURL: "HTTPS://etcd:2379", tls: {secretName: etcd}}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`)
	expectOne(t, one(text).Problems, "")
}

func TestValidateObjectURLSpeaksOfOneBackup(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{"12 bucket alone", "s3://b", "spec.source.objectURL: name the object, as in s3://bucket/orders.db"},
		{"12 other scheme", "https://b/x", "the scheme must be s3, gs, azblob or file, as in s3://bucket/orders.db"},
		{"15 secret", "s3://b/x?token=hunter2", "looks like a secret, which must not be in Git: name a Secret as credentials.secretName"},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := one(restoreText("again", `source: {objectURL: "`+c.url+`"}`)).Problems
			expectOne(t, problems, c.want)
			expectNoSecret(t, problems)
		})
	}
}

// 199: what a file does not say of compression changes no spec's hash, so that no backup
// is taken again by a newer quorate.
func TestCompressionChangesNoHashByDefault(t *testing.T) {
	text, err := json.Marshal(Destination{ObjectURLTemplate: "s3://b/{{ .UID }}"})
	if err != nil || string(text) != `{"objectURLTemplate":"s3://b/{{ .UID }}"}` {
		t.Errorf("%s, %v", text, err)
	}
	set := one(backupText(`source: {clusterURL: "https://etcd:2379"}`, `destination: {objectURLTemplate: "s3://b/{{ .UID }}"}`))
	if len(set.Backups) != 1 || set.Backups[0].Spec.Destination.Compression != "" {
		t.Errorf("%+v", set.Backups)
	}
}

// 199: a destination that names no place may say how what goes there is compressed; one
// that names a place says all of it.
func TestCompressionOfAnotherDestination(t *testing.T) {
	cluster := Destination{ObjectURLTemplate: "s3://b/{{ .UID }}", Compression: CompressionNone}
	for name, c := range map[string]struct {
		own  Destination
		want Compression
	}{
		"nothing":  {Destination{}, CompressionNone},
		"its own":  {Destination{Compression: CompressionZstd}, CompressionZstd},
		"a place":  {Destination{ObjectURLTemplate: "s3://c/{{ .UID }}"}, ""},
		"the same": {Destination{Compression: CompressionNone}, CompressionNone},
	} {
		if got := c.own.Or(cluster); got.Compression != c.want {
			t.Errorf("%s: %q, want %q", name, got.Compression, c.want)
		}
	}
}
