package reconciler

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	versitygwModule = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
	s3TestSecret    = "s3-test-secret-do-not-print"
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

// s3Server is a running S3 server with the bucket "backups".
type s3Server struct {
	dir  string
	addr string
	cmd  *exec.Cmd
}

// startS3 starts a server that ends with the test, and puts its credentials into
// the environment.
func startS3(t *testing.T) *s3Server {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the S3 server keeps its metadata in extended attributes")
	}
	binary, err := versitygwBinary()
	if err != nil {
		t.Fatalf("S3 server: %v", err)
	}
	setS3Credentials(t, "tester", s3TestSecret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := &s3Server{dir: t.TempDir(), addr: freeAddress(t)}
	if err := os.Mkdir(s.dir+"/backups", 0o755); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(binary, "--port", s.addr, "--quiet", "posix", "--sidecar", t.TempDir(), s.dir)
	s.cmd.Env = []string{"ROOT_ACCESS_KEY=tester", "ROOT_SECRET_KEY=" + s3TestSecret}
	var log bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("S3 server: %v", err)
	}
	t.Cleanup(s.stop)
	for range 200 {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			_ = conn.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	t.Fatalf("the S3 server does not listen:\n%s", log.String())
	return nil
}

func (s *s3Server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *s3Server) url(key string) string {
	return "s3://backups/" + key + "?region=us-east-1&endpoint=http://" + s.addr
}

func setS3Credentials(t *testing.T, id, secret string) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", id)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
}

// freeAddress is a loopback address that nothing listened at a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// contents lists the bucket's objects and the uploads that are under way.
func (s *s3Server) contents(t *testing.T) (keys []string) {
	t.Helper()
	store, err := openBackupStore(t.Context(), "list", s.url("x"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer store.close()
	var client *s3.Client
	if !store.bucket.As(&client) {
		t.Fatal("no S3 client")
	}
	bucket := "backups"
	objects, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects.Contents {
		keys = append(keys, *o.Key)
	}
	uploads, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range uploads.Uploads {
		keys = append(keys, "upload of "+*u.Key)
	}
	return keys
}

func TestS3SaveAndVerify(t *testing.T) {
	s := startS3(t)
	for name, size := range map[string]int{"small": 4096, "one-part": backupPartBytes, "multi-part": 3*backupPartBytes + 4096} {
		url := s.url("shop/" + name + ".db")
		if _, err := ReadManifest(t.Context(), url); !errors.Is(err, ErrNoBackup) {
			t.Errorf("%s before: %v", name, err)
		}
		saved, err := SaveBackup(t.Context(), url, bytes.NewReader(snapshotOf(size)), manifestForTest())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if saved.Object != "s3://backups/shop/"+name+".db" {
			t.Errorf("object %q", saved.Object)
		}
		if m, err := VerifyBackup(t.Context(), url); err != nil || m != saved {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		_, err = SaveBackup(t.Context(), url, bytes.NewReader(snapshotOf(8192)), manifestForTest())
		wantErrorText(t, err, "save backup s3://backups/shop/"+name+".db", "never overwrites")
	}
	if keys := s.contents(t); len(keys) != 6 {
		t.Errorf("bucket holds %v", keys)
	}
}

// The store itself refuses to overwrite, for the case that two save at once and
// both found nothing there.
func TestS3RefusesARace(t *testing.T) {
	s := startS3(t)
	for key, size := range map[string]int{"small.db": 4096, "parts.db": 3 * backupPartBytes} {
		first, raced := bytes.NewReader(snapshotOf(size)), false
		stream := readerFunc(func(p []byte) (int, error) {
			if !raced {
				raced = true
				if _, err := SaveBackup(t.Context(), s.url(key), bytes.NewReader(snapshotOf(2048)), manifestForTest()); err != nil {
					t.Error(err)
				}
			}
			return first.Read(p)
		})
		_, err := SaveBackup(t.Context(), s.url(key), stream, manifestForTest())
		wantErrorText(t, err, "never overwrites")
		if m, err := VerifyBackup(t.Context(), s.url(key)); err != nil || m.Size != 2048+32 {
			t.Errorf("the other's backup: %+v, %v", m, err)
		}
	}
	if keys := s.contents(t); len(keys) != 4 {
		t.Errorf("bucket holds %v", keys)
	}
}

func TestS3LeavesNothingOfABadStream(t *testing.T) {
	s := startS3(t)
	for _, size := range []int{1 << 20, 4 * backupPartBytes} {
		for name, bad := range badStreams(size) {
			_, err := SaveBackup(t.Context(), s.url("bad.db"), bad.stream, manifestForTest())
			wantErrorText(t, err, "save backup s3://backups/bad.db", bad.want)
			if keys := s.contents(t); len(keys) != 0 {
				t.Errorf("%s of %d bytes left %v", name, size, keys)
			}
		}
	}
}

// A save that runs out of time aborts its upload all the same.
func TestS3AbortsWhenTheContextEnds(t *testing.T) {
	s := startS3(t)
	ctx, cancel := context.WithCancel(t.Context())
	data := bytes.NewReader(snapshotOf(4 * backupPartBytes))
	stream := readerFunc(func(p []byte) (int, error) {
		if data.Len() < backupPartBytes {
			cancel()
			return 0, ctx.Err()
		}
		return data.Read(p)
	})
	_, err := SaveBackup(ctx, s.url("late.db"), stream, manifestForTest())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if keys := s.contents(t); len(keys) != 0 {
		t.Errorf("left %v", keys)
	}
}

func TestS3Refusals(t *testing.T) {
	s := startS3(t)
	query := "?region=us-east-1&endpoint=http://" + s.addr
	save := func(url string) error {
		_, err := SaveBackup(t.Context(), url, bytes.NewReader(snapshotOf(4096)), manifestForTest())
		return err
	}
	wantErrorText(t, save("s3://nowhere/k.db"+query), "the bucket nowhere does not exist")
	_, err := ReadManifest(t.Context(), "s3://nowhere/k.db"+query)
	wantErrorText(t, err, "the bucket nowhere does not exist")
	if errors.Is(err, ErrNoBackup) {
		t.Error("a missing bucket must not pass for a missing backup")
	}
	for credentials, want := range map[[2]string]string{
		{"tester", "wrong-" + s3TestSecret}: "permission denied",
		// Amazon's code for this one is InvalidAccessKeyId, with a status of 403.
		{"nobody", s3TestSecret}: "No user exists",
	} {
		setS3Credentials(t, credentials[0], credentials[1])
		_, rerr := ReadManifest(t.Context(), s.url("k.db"))
		_, verr := VerifyBackup(t.Context(), s.url("k.db"))
		for _, err := range []error{rerr, verr, save(s.url("k.db"))} {
			wantErrorText(t, err, want)
			if strings.Contains(err.Error(), s3TestSecret) || errors.Is(err, ErrNoBackup) {
				t.Errorf("%v", err)
			}
		}
		t.Log(rerr)
	}
	setS3Credentials(t, "", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	err = save(s.url("k.db"))
	wantErrorText(t, err, "no credentials for the store were found")
	t.Log(err)
	if keys := filesBelow(t, s.dir+"/backups"); len(keys) != 0 {
		t.Errorf("left %v", keys)
	}
}

func TestS3Unreachable(t *testing.T) {
	setS3Credentials(t, "tester", s3TestSecret)
	url := "s3://backups/k.db?region=us-east-1&endpoint=http://" + freeAddress(t)
	_, err := ReadManifest(t.Context(), url)
	wantErrorText(t, err, "cannot be reached", "connection refused")
	if errors.Is(err, ErrNoBackup) {
		t.Error("silence must not pass for a missing backup")
	}
	t.Log(err)
}

func TestS3FindsDamage(t *testing.T) {
	s := startS3(t)
	if _, err := SaveBackup(t.Context(), s.url("k.db"), bytes.NewReader(snapshotOf(4096)), manifestForTest()); err != nil {
		t.Fatal(err)
	}
	data := snapshotOf(4096)
	data[1000] ^= 1
	if err := os.WriteFile(s.dir+"/backups/k.db", data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := VerifyBackup(t.Context(), s.url("k.db"))
	wantErrorText(t, err, "verify backup s3://backups/k.db", "damaged")
	t.Log(err)
}

// The server is cut off in the middle of an upload, and refuses from then on.
func TestS3ServerCutMidUpload(t *testing.T) {
	s := startS3(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	data := bytes.NewReader(snapshotOf(6 * backupPartBytes))
	stream := io.MultiReader(io.LimitReader(data, 3*backupPartBytes), readerFunc(func([]byte) (int, error) {
		s.stop()
		return 0, io.EOF
	}), data)
	_, err := SaveBackup(ctx, s.url("cut.db"), stream, manifestForTest())
	wantErrorText(t, err, "save backup s3://backups/cut.db")
	if ctx.Err() != nil {
		t.Error("the save lasted until its context ended")
	}
	t.Log(err)
	if files := filesBelow(t, s.dir+"/backups"); len(files) != 0 {
		for _, f := range files {
			if !strings.Contains(f, ".sgwtmp") {
				t.Errorf("left %v", f)
			}
		}
	}
}

// A server that takes the connection and then says nothing is bounded by ctx.
func TestS3SilentServer(t *testing.T) {
	setS3Credentials(t, "tester", s3TestSecret)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = SaveBackup(ctx, "s3://backups/k.db?region=us-east-1&endpoint=http://"+l.Addr().String(), bytes.NewReader(snapshotOf(4096)), manifestForTest())
	wantErrorText(t, err, "did not answer in time")
	t.Log(err)
}

func TestS3MemoryIsBounded(t *testing.T) {
	s := startS3(t)
	const size, ceiling = 192 << 20, 64 << 20
	peak := heapPeak(func() {
		if _, err := SaveBackup(t.Context(), s.url("big.db"), endlessSnapshot(size), manifestForTest()); err != nil {
			t.Error(err)
		}
	})
	t.Logf("peak heap %d MiB for a snapshot of %d MiB", peak>>20, size>>20)
	if peak > ceiling {
		t.Errorf("peak heap %d bytes", peak)
	}
}
