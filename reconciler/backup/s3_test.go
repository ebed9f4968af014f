package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// contents lists the bucket's objects and the uploads that are under way.
func contents(t *testing.T, s *backuptest.S3) (keys []string) {
	t.Helper()
	store, _, err := Store{Drivers: drivers}.open(t.Context(), "list", s.URL("x"), asking)
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
	s := backuptest.StartS3(t)
	for name, size := range map[string]int{"small": 4096, "one-part": partBytes, "multi-part": 3*partBytes + 4096} {
		url := s.URL("shop/" + name + ".db")
		if _, err := (Store{Drivers: drivers}).ReadManifest(t.Context(), url); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s before: %v", name, err)
		}
		saved, err := Store{Drivers: drivers}.Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(size)), manifestForTest())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if saved.Object != "s3://backups/shop/"+name+".db" {
			t.Errorf("object %q", saved.Object)
		}
		if m, err := (Store{Drivers: drivers}).Verify(t.Context(), url); err != nil || !reflect.DeepEqual(m, saved) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		_, err = Store{Drivers: drivers}.Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(8192)), manifestForTest())
		backuptest.WantError(t, err, "save backup s3://backups/shop/"+name+".db", "never overwrites")
	}
	if keys := contents(t, s); len(keys) != 6 {
		t.Errorf("bucket holds %v", keys)
	}
}

// The store itself refuses to overwrite, for the case that two save at once and
// both found nothing there.
func TestS3RefusesARace(t *testing.T) {
	s := backuptest.StartS3(t)
	for key, size := range map[string]int{"small.db": 4096, "parts.db": 3 * partBytes} {
		first, raced := bytes.NewReader(backuptest.Snapshot(size)), false
		stream := readerFunc(func(p []byte) (int, error) {
			if !raced {
				raced = true
				if _, err := (Store{Drivers: drivers}).Save(t.Context(), s.URL(key), bytes.NewReader(backuptest.Snapshot(2048)), manifestForTest()); err != nil {
					t.Error(err)
				}
			}
			return first.Read(p)
		})
		_, err := Store{Drivers: drivers}.Save(t.Context(), s.URL(key), stream, manifestForTest())
		backuptest.WantError(t, err, "never overwrites")
		if m, err := (Store{Drivers: drivers}).Verify(t.Context(), s.URL(key)); err != nil || m.Size != 2048+32 {
			t.Errorf("the other's backup: %+v, %v", m, err)
		}
	}
	if keys := contents(t, s); len(keys) != 4 {
		t.Errorf("bucket holds %v", keys)
	}
}

func TestS3LeavesNothingOfABadStream(t *testing.T) {
	s := backuptest.StartS3(t)
	for _, size := range []int{1 << 20, 4 * partBytes} {
		for name, bad := range badStreams(size) {
			_, err := Store{Drivers: drivers}.Save(t.Context(), s.URL("bad.db"), bad.stream, manifestForTest())
			backuptest.WantError(t, err, "save backup s3://backups/bad.db", bad.want)
			if keys := contents(t, s); len(keys) != 0 {
				t.Errorf("%s of %d bytes left %v", name, size, keys)
			}
		}
	}
}

// A save that runs out of time aborts its upload all the same.
func TestS3AbortsWhenTheContextEnds(t *testing.T) {
	s := backuptest.StartS3(t)
	ctx, cancel := context.WithCancel(t.Context())
	data := bytes.NewReader(backuptest.Snapshot(4 * partBytes))
	stream := readerFunc(func(p []byte) (int, error) {
		if data.Len() < partBytes {
			cancel()
			return 0, ctx.Err()
		}
		return data.Read(p)
	})
	_, err := Store{Drivers: drivers}.Save(ctx, s.URL("late.db"), stream, manifestForTest())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if keys := contents(t, s); len(keys) != 0 {
		t.Errorf("left %v", keys)
	}
}

func TestS3Refusals(t *testing.T) {
	s := backuptest.StartS3(t)
	query := "?region=us-east-1&endpoint=http://" + s.Address
	save := func(url string) error {
		_, err := Store{Drivers: drivers}.Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
		return err
	}
	backuptest.WantError(t, save("s3://nowhere/k.db"+query), "the bucket nowhere does not exist")
	_, err := Store{Drivers: drivers}.ReadManifest(t.Context(), "s3://nowhere/k.db"+query)
	backuptest.WantError(t, err, "the bucket nowhere does not exist")
	if errors.Is(err, ErrNotFound) {
		t.Error("a missing bucket must not pass for a missing backup")
	}
	for credentials, want := range map[[2]string]string{
		{"tester", "wrong-" + backuptest.Secret}: "permission denied",
		// Amazon's code for this one is InvalidAccessKeyId, with a status of 403.
		{"nobody", backuptest.Secret}: "No user exists",
	} {
		backuptest.SetCredentials(t, credentials[0], credentials[1])
		_, rerr := Store{Drivers: drivers}.ReadManifest(t.Context(), s.URL("k.db"))
		_, verr := Store{Drivers: drivers}.Verify(t.Context(), s.URL("k.db"))
		for _, err := range []error{rerr, verr, save(s.URL("k.db"))} {
			backuptest.WantError(t, err, want)
			if strings.Contains(err.Error(), backuptest.Secret) || errors.Is(err, ErrNotFound) {
				t.Errorf("%v", err)
			}
		}
		t.Log(rerr)
	}
	backuptest.SetCredentials(t, "", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	err = save(s.URL("k.db"))
	backuptest.WantError(t, err, "no credentials for the store were found")
	t.Log(err)
	if keys := filesBelow(t, s.Dir+"/backups"); len(keys) != 0 {
		t.Errorf("left %v", keys)
	}
}

func TestS3Unreachable(t *testing.T) {
	backuptest.SetCredentials(t, "tester", backuptest.Secret)
	url := "s3://backups/k.db?region=us-east-1&endpoint=http://" + backuptest.FreeAddress(t)
	_, err := Store{Drivers: drivers}.ReadManifest(t.Context(), url)
	backuptest.WantError(t, err, "cannot be reached", "connection refused")
	if errors.Is(err, ErrNotFound) {
		t.Error("silence must not pass for a missing backup")
	}
	t.Log(err)
}

func TestS3FindsDamage(t *testing.T) {
	s := backuptest.StartS3(t)
	if _, err := (Store{Drivers: drivers}).Save(t.Context(), s.URL("k.db"), bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest()); err != nil {
		t.Fatal(err)
	}
	data := backuptest.Snapshot(4096)
	data[1000] ^= 1
	if err := os.WriteFile(s.Dir+"/backups/k.db", data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Store{Drivers: drivers}.Verify(t.Context(), s.URL("k.db"))
	backuptest.WantError(t, err, "verify backup s3://backups/k.db", "damaged")
	t.Log(err)
}

// The server is cut off in the middle of an upload, and refuses from then on.
func TestS3ServerCutMidUpload(t *testing.T) {
	s := backuptest.StartS3(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	data := bytes.NewReader(backuptest.Snapshot(6 * partBytes))
	stream := io.MultiReader(io.LimitReader(data, 3*partBytes), readerFunc(func([]byte) (int, error) {
		s.Stop()
		return 0, io.EOF
	}), data)
	_, err := Store{Drivers: drivers}.Save(ctx, s.URL("cut.db"), stream, manifestForTest())
	backuptest.WantError(t, err, "save backup s3://backups/cut.db")
	if ctx.Err() != nil {
		t.Error("the save lasted until its context ended")
	}
	t.Log(err)
	if files := filesBelow(t, s.Dir+"/backups"); len(files) != 0 {
		for _, f := range files {
			if !strings.Contains(f, ".sgwtmp") {
				t.Errorf("left %v", f)
			}
		}
	}
}

// A server that takes the connection and then says nothing is bounded by ctx.
func TestS3SilentServer(t *testing.T) {
	backuptest.SetCredentials(t, "tester", backuptest.Secret)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = Store{Drivers: drivers}.Save(ctx, "s3://backups/k.db?region=us-east-1&endpoint=http://"+l.Addr().String(), bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
	backuptest.WantError(t, err, "did not answer in time")
	t.Log(err)
}

func TestS3MemoryIsBounded(t *testing.T) {
	s := backuptest.StartS3(t)
	const size, ceiling = 192 << 20, memoryBound
	peak := heapPeak(func() {
		if _, err := (Store{Drivers: drivers}).Save(t.Context(), s.URL("big.db"), endlessSnapshot(size), manifestForTest()); err != nil {
			t.Error(err)
		}
	})
	t.Logf("peak heap %d MiB for a snapshot of %d MiB", peak>>20, size>>20)
	if peak > ceiling {
		t.Errorf("peak heap %d bytes", peak)
	}
}

// 204: a call keeps no connection: the next one cannot use it, and a daemon that asks
// hundreds of stores would hold as many, with the CAs that each of them trusts.
func TestS3KeepsNoConnection(t *testing.T) {
	backuptest.SetCredentials(t, "tester", backuptest.Secret)
	var open atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		case http.StateActive, http.StateIdle:
		}
	}
	server.Start()
	defer server.Close()
	for range 3 {
		_, err := Store{Drivers: drivers}.ReadManifest(t.Context(), "s3://backups/k.db?region=us-east-1&use_path_style=true&endpoint="+server.URL)
		backuptest.WantError(t, err, "the bucket backups does not exist")
	}
	for range 500 {
		if open.Load() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections are open after the calls", open.Load())
}
