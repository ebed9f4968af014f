package backuptest

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

const (
	versitygwModule = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
	Secret          = "s3-test-secret-do-not-print"
)

// versitygwBinary is an S3 server on a directory: the one that QUORATE_VERSITYGW
// names, else one that is built once and kept in the user's cache.
var versitygwBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("QUORATE_VERSITYGW"); path != "" {
		return exec.LookPath(path)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "quorate", "bin")
	path := filepath.Join(bin, "versitygw")
	if out, err := exec.Command("go", "version", "-m", path).Output(); err == nil && bytes.Contains(out, []byte("versity/versitygw\tv1.8.0")) {
		return path, nil
	}
	build := exec.Command("go", "install", versitygwModule)
	build.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	build.Dir = os.TempDir()
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New("go install " + versitygwModule + ": " + string(out))
	}
	return path, nil
})

// S3 is a running S3 server with the bucket "backups".
type S3 struct {
	// Dir holds the buckets as directories, Address is where it listens.
	Dir, Address string

	cmd *exec.Cmd
}

// StartS3 starts a server that ends with the test, and puts its credentials into
// the environment.
func StartS3(t *testing.T) *S3 {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the S3 server keeps its metadata in extended attributes")
	}
	binary, err := versitygwBinary()
	if err != nil {
		t.Fatalf("S3 server: %v", err)
	}
	SetCredentials(t, "tester", Secret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := &S3{Dir: t.TempDir(), Address: FreeAddress(t)}
	if err := os.Mkdir(s.Dir+"/backups", 0o755); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(binary, "--port", s.Address, "--quiet", "posix", "--sidecar", t.TempDir(), s.Dir)
	s.cmd.Env = []string{"ROOT_ACCESS_KEY=tester", "ROOT_SECRET_KEY=" + Secret}
	var log bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("S3 server: %v", err)
	}
	t.Cleanup(s.Stop)
	for range 200 {
		conn, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = conn.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Stop()
	t.Fatalf("the S3 server does not listen:\n%s", log.String())
	return nil
}

// Stop ends the server as a crash would.
func (s *S3) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// URL is the object URL of a key in the bucket.
func (s *S3) URL(key string) string {
	return "s3://backups/" + key + "?region=us-east-1&endpoint=http://" + s.Address
}

// SetCredentials puts credentials into the environment for the time of the test.
func SetCredentials(t *testing.T, id, secret string) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", id)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
}

// FreeAddress is a loopback address that nothing listened at a moment ago.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
