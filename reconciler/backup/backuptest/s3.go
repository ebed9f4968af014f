package backuptest

import (
	"os"
	"runtime"
	"testing"

	"github.com/quorate/quorate/test/needs"
)

// Secret is the secret of every test store's credentials, which nothing may
// print.
const Secret = "s3-test-secret-do-not-print"

// S3 is a running S3 server with the bucket "backups".
type S3 struct {
	// Dir holds the buckets as directories, Address is where it listens.
	Dir, Address string

	*Process
	scheme string
}

// NewS3 describes an S3 server that a test has started itself, without TLS.
func NewS3(dir, address string, p *Process) *S3 {
	return &S3{Dir: dir, Address: address, Process: p, scheme: "http"}
}

// StartS3 starts a server that ends with the test, and puts its credentials into
// the environment.
func StartS3(t *testing.T) *S3 {
	t.Helper()
	SetCredentials(t, "tester", Secret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return startS3(t, "http")
}

// StartS3TLS starts a server that speaks TLS. Nothing in the environment helps to
// reach it: what S3Secret returns does, with the certificate's CA.
func StartS3TLS(t *testing.T, c Certificate) *S3 {
	t.Helper()
	SetCredentials(t, "", "")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return startS3(t, "https", "--cert", c.CertFile, "--key", c.KeyFile)
}

func startS3(t *testing.T, scheme string, args ...string) *S3 {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the S3 server keeps its metadata in extended attributes")
	}
	binary := needs.Server(t, "versitygw")
	s := &S3{Dir: t.TempDir(), Address: FreeAddress(t), scheme: scheme}
	if err := os.Mkdir(s.Dir+"/backups", 0o755); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--port", s.Address, "--quiet"}, args...)
	args = append(args, "posix", "--sidecar", t.TempDir(), s.Dir)
	s.Process = Start(t, s.Address, []string{"ROOT_ACCESS_KEY=tester", "ROOT_SECRET_KEY=" + Secret}, binary, args...)
	return s
}

// S3Secret is the data of a Secret with the credentials of every S3 server here.
func S3Secret() map[string][]byte {
	return map[string][]byte{"access-key-id": []byte("tester\n"), "secret-access-key": []byte(Secret + "\n")}
}

// URL is the object URL of a key in the bucket.
func (s *S3) URL(key string) string {
	return "s3://backups/" + key + "?region=us-east-1&endpoint=" + s.scheme + "://" + s.Address
}

// SetCredentials puts credentials into the environment for the time of the test.
func SetCredentials(t *testing.T, id, secret string) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", id)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
}
